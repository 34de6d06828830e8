package com.example;

import static org.junit.jupiter.api.Assertions.*;

import com.example.it.Started;
import com.sun.net.httpserver.HttpServer;
import io.ratelimited.core.RateLimitExceededException;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;
import org.springframework.ai.anthropic.AnthropicChatModel;
import org.springframework.ai.chat.model.ChatModel;
import org.springframework.ai.chat.prompt.Prompt;
import org.springframework.ai.openai.OpenAiChatModel;

class ApplicationTest {

    @Test
    void modelsSendNothingWhileTheirClientPausesAndRetriesOfTheirSdkCount() throws IOException {
        List<String> requests = new CopyOnWriteArrayList<>();
        HttpServer models = HttpServer.create(new InetSocketAddress("localhost", 0), 0);
        models.createContext("/", exchange -> {
            String path = exchange.getRequestURI().getPath();
            requests.add(path);
            if (path.equals("/busy")) {
                exchange.getResponseHeaders().set("Retry-After", "3600");
            }
            exchange.sendResponseHeaders(path.equals("/busy") ? 429 : 500, -1);
            exchange.close();
        });
        models.start();
        String address = "http://localhost:" + models.getAddress().getPort();
        try (Started application = new Started(
                Application.class,
                "--spring.ai.openai.base-url=" + address + "/openai",
                "--spring.ai.anthropic.base-url=" + address + "/anthropic")) {
            ChatModel openAi = application.bean(OpenAiChatModel.class);
            ChatModel anthropic = application.bean(AnthropicChatModel.class);
            // Its second attempt, after an error of the server, finds no call left.
            assertRejected("calls", () -> openAi.call("Hello"));
            assertEquals(1, requests.size(), requests::toString);
            assertRejected("calls", () -> anthropic.call("Hello"));
            assertEquals(1, requests.size(), requests::toString);
        }
        requests.clear();
        try (Started application = new Started(
                Application.class,
                "--rate-limit.limits.calls.rate=100/h",
                "--spring.ai.openai.base-url=" + address + "/openai",
                "--spring.ai.anthropic.base-url=" + address + "/anthropic")) {
            assertEquals(429, application.bean(Application.Partner.class).status(address + "/busy"));
            for (ChatModel model :
                    List.of(application.bean(OpenAiChatModel.class), application.bean(AnthropicChatModel.class))) {
                assertThrows(RateLimitExceededException.class, () -> model.call("Hello"));
                assertRejected("clients.model", () -> model.stream(new Prompt("Hello")).blockLast());
            }
            assertEquals(List.of("/busy"), requests);
        } finally {
            models.stop(0);
        }
    }

    private static void assertRejected(String limit, Runnable call) {
        Throwable cause = assertThrows(RuntimeException.class, call::run);
        while (cause != null && !(cause instanceof RateLimitExceededException)) {
            cause = cause.getCause();
        }
        assertEquals(limit, assertInstanceOf(RateLimitExceededException.class, cause).limit());
    }
}
