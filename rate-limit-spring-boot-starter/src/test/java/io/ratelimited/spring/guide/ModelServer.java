package io.ratelimited.spring.guide;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.jspecify.annotations.Nullable;
import org.springframework.ai.chat.messages.AssistantMessage;
import org.springframework.ai.chat.metadata.ChatResponseMetadata;
import org.springframework.ai.chat.metadata.DefaultUsage;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.model.ChatResponse;
import org.springframework.ai.chat.model.Generation;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.web.client.RestClient;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Flux;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/**
 * A language model on this machine, and its client. Of the question "uses 30" it reports a usage of 30 tokens: in the
 * answer, or in the last event of its stream. "breaks" is answered 500, and the stream of "hangs" does not end.
 */
final class ModelServer implements ChatModel, AutoCloseable {

    private static final JsonMapper JSON = JsonMapper.shared();

    private final ExecutorService threads = Executors.newCachedThreadPool();
    private final CountDownLatch closed = new CountDownLatch(1);
    private final HttpServer server;
    private final String url;
    /** What streams yield instead of what the server sends. */
    private volatile @Nullable Flux<ChatResponse> instead;

    ModelServer() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/chat", this::answer);
        server.setExecutor(threads);
        server.start();
        url = "http://localhost:" + server.getAddress().getPort() + "/chat";
    }

    private void answer(HttpExchange exchange) throws IOException {
        JsonNode request = JSON.readTree(exchange.getRequestBody().readAllBytes());
        String question = request.get("question").asString();
        boolean stream = request.get("stream").asBoolean();
        exchange.getResponseHeaders().set("Content-Type", stream ? "text/event-stream" : "application/json");
        exchange.sendResponseHeaders(question.equals("breaks") ? 500 : 200, 0);
        try (OutputStream body = exchange.getResponseBody()) {
            String usage = "{\"usage\": {\"total_tokens\": " + question.replaceAll("\\D", "") + "}}";
            if (!stream) {
                send(body, question.startsWith("uses") ? usage : "{}");
                return;
            }
            send(body, "data: {\"text\": \"Good\"}\n\n");
            if (question.equals("hangs")) {
                closed.await();
            }
            send(body, "data: {\"text\": \"bye\"}\n\ndata: " + usage + "\n\ndata: [DONE]\n\n");
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    private static void send(OutputStream body, String text) throws IOException {
        body.write(text.getBytes(StandardCharsets.UTF_8));
        body.flush();
    }

    @Override
    public ChatResponse call(Prompt prompt) {
        return response(JSON.readTree(RestClient.create(url)
                .post()
                .body(request(prompt, false))
                .retrieve()
                .body(String.class)));
    }

    @Override
    public Flux<ChatResponse> stream(Prompt prompt) {
        Flux<ChatResponse> elements = instead;
        if (elements != null) {
            return elements;
        }
        return WebClient.create(url)
                .post()
                .bodyValue(request(prompt, true))
                .retrieve()
                .bodyToFlux(String.class)
                .takeWhile(event -> !event.equals("[DONE]"))
                .map(event -> response(JSON.readTree(event)));
    }

    private static Map<String, Object> request(Prompt prompt, boolean stream) {
        return Map.of("question", prompt.getContents(), "stream", stream);
    }

    void streamsYield(@Nullable Flux<ChatResponse> elements) {
        instead = elements;
    }

    /** An element that reports a usage, or none. */
    static ChatResponse used(int tokens) {
        return new ChatResponse(
                List.of(),
                ChatResponseMetadata.builder()
                        .usage(new DefaultUsage(0, tokens, null))
                        .build());
    }

    private static ChatResponse response(JsonNode json) {
        ChatResponseMetadata.Builder metadata = ChatResponseMetadata.builder();
        if (json.has("usage")) {
            metadata.usage(
                    new DefaultUsage(0, json.get("usage").get("total_tokens").asInt(), null));
        }
        return new ChatResponse(
                json.has("text")
                        ? List.of(new Generation(
                                new AssistantMessage(json.get("text").asString())))
                        : List.of(),
                metadata.build());
    }

    @Override
    public void close() {
        closed.countDown();
        server.stop(0);
        threads.shutdownNow();
    }
}
