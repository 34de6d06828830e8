package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIOException;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Threads;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.autoconfigure.client.ClientRateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.client.UnlimitedOkHttpAutoConfiguration;
import io.ratelimited.spring.okhttp.RateLimitInterceptor;
import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.AtomicInteger;
import okhttp3.Cache;
import okhttp3.CacheControl;
import okhttp3.Call;
import okhttp3.Callback;
import okhttp3.Interceptor;
import okhttp3.MediaType;
import okhttp3.OkHttpClient;
import okhttp3.Protocol;
import okhttp3.Request;
import okhttp3.Response;
import okhttp3.ResponseBody;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.ai.anthropic.http.okhttp.AnthropicHttpClientBuilderCustomizer;
import org.springframework.ai.openai.http.okhttp.OpenAiHttpClientBuilderCustomizer;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.http.client.autoconfigure.HttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.imperative.ImperativeHttpClientAutoConfiguration;
import org.springframework.boot.restclient.autoconfigure.RestClientAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationContext;
import org.springframework.web.client.RestClient;

/** Calls of OkHttp, as the SDKs of models send them. */
@Tag("slow")
class OkHttpTest {

    private static final String PLACES = "rate-limit.clients.model.limits=places";

    private final ManualTicker ticker = new ManualTicker();
    private final ConcurrentLinkedQueue<String> seen = new ConcurrentLinkedQueue<>();
    private final CountDownLatch testEnds = new CountDownLatch(1);
    private final ExecutorService threads = Executors.newCachedThreadPool();
    private HttpServer server;
    private String url;

    @AfterEach
    void stop() {
        testEnds.countDown();
        threads.shutdownNow();
        if (server != null) {
            server.stop(0);
        }
    }

    private void start() throws IOException {
        server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext("/", this::answer);
        server.start();
        url = "http://localhost:" + server.getAddress().getPort();
    }

    private void answer(HttpExchange exchange) throws IOException {
        String path = exchange.getRequestURI().getPath();
        seen.add(path);
        switch (path) {
            case "/busy" -> {
                exchange.getResponseHeaders().set("Retry-After", "30");
                exchange.sendResponseHeaders(429, -1);
            }
            case "/moved" -> {
                String foreign = "http://127.0.0.1:" + server.getAddress().getPort() + "/busy";
                exchange.getResponseHeaders().set("Location", foreign);
                exchange.sendResponseHeaders(302, -1);
            }
            case "/left9", "/left8", "/left0" -> {
                exchange.getResponseHeaders().set("X-RateLimit-Limit", "10");
                exchange.getResponseHeaders().set("X-RateLimit-Remaining", path.substring(5));
                exchange.getResponseHeaders().set("X-RateLimit-Reset", "30");
                exchange.sendResponseHeaders(200, -1);
            }
            case "/page" -> {
                // The stored response has headers that its confirmation has not.
                boolean isStored = exchange.getRequestHeaders().containsKey("If-None-Match");
                if (!isStored) {
                    exchange.getResponseHeaders().set("X-RateLimit-Limit", "10");
                    exchange.getResponseHeaders().set("X-RateLimit-Remaining", "0");
                    exchange.getResponseHeaders().set("X-RateLimit-Reset", "30");
                }
                exchange.getResponseHeaders().set("ETag", "\"1\"");
                exchange.sendResponseHeaders(isStored ? 304 : 200, -1);
            }
            case "/fresh" -> {
                exchange.getResponseHeaders().set("Cache-Control", "max-age=86400");
                exchange.sendResponseHeaders(200, -1);
            }
            case "/away" -> {
                exchange.getResponseHeaders().set("Location", url + "/fresh");
                exchange.sendResponseHeaders(302, -1);
            }
            case "/stream" -> {
                exchange.sendResponseHeaders(200, 0);
                exchange.getResponseBody().write("data: Good\n\n".getBytes(StandardCharsets.UTF_8));
                exchange.getResponseBody().flush();
                try {
                    testEnds.await();
                } catch (InterruptedException ex) {
                    Thread.currentThread().interrupt();
                }
            }
            default -> exchange.sendResponseHeaders(204, -1);
        }
        exchange.close();
    }

    private ApplicationContextRunner runner(String... properties) {
        return Contexts.runner(ticker)
                .withConfiguration(AutoConfigurations.of(
                        ClientRateLimitAutoConfiguration.class,
                        UnlimitedOkHttpAutoConfiguration.class,
                        HttpClientAutoConfiguration.class,
                        ImperativeHttpClientAutoConfiguration.class,
                        RestClientAutoConfiguration.class))
                .withPropertyValues(
                        "rate-limit.clients.model.hosts=localhost",
                        "rate-limit.limits.places.algorithm=concurrency",
                        "rate-limit.limits.places.max-concurrent=1")
                .withPropertyValues(properties);
    }

    /** A client without connections reuse, whose calls a further interceptor may answer instead of the network. */
    private static OkHttpClient client(ApplicationContext context, Interceptor... inner) {
        OkHttpClient.Builder client = new OkHttpClient.Builder()
                .retryOnConnectionFailure(false)
                .addInterceptor(context.getBean(RateLimitInterceptor.class));
        List.of(inner).forEach(client::addInterceptor);
        return client.build();
    }

    private static Interceptor answering(int status) {
        return chain -> new Response.Builder()
                .request(chain.request())
                .protocol(Protocol.HTTP_1_1)
                .code(status)
                .message("")
                .body(ResponseBody.create("text", MediaType.get("text/plain")))
                .build();
    }

    private static Call call(OkHttpClient client, String url) {
        return client.newCall(new Request.Builder().url(url).build());
    }

    private static int status(OkHttpClient client, String url) throws IOException {
        try (Response response = call(client, url).execute()) {
            return response.code();
        }
    }

    /** Completes as the callback of {@code enqueue} does. */
    private static CompletableFuture<Response> enqueue(Call call) {
        CompletableFuture<Response> result = new CompletableFuture<>();
        call.enqueue(new Callback() {

            @Override
            public void onFailure(Call failed, IOException failure) {
                result.completeExceptionally(failure);
            }

            @Override
            public void onResponse(Call answered, Response response) {
                result.complete(response);
            }
        });
        return result;
    }

    private static Throwable failure(CompletableFuture<?> result) {
        return result.handle((value, failure) -> failure).join();
    }

    /** As SDKs do: three attempts, if an exception of I/O or the status says so. */
    private static Object withRetries(OkHttpClient client, String url) {
        for (int attempt = 1; ; attempt++) {
            try {
                int status = status(client, url);
                if (status < 429 || attempt == 3) {
                    return status;
                }
            } catch (IOException ex) {
                if (attempt == 3) {
                    return ex;
                }
            } catch (RateLimitExceededException ex) {
                return ex;
            }
        }
    }

    private static long places(ApplicationContext context) {
        return context.getBean(RateLimits.class).peek("places", null).remaining();
    }

    @Test
    void nothingIsSentWhileTheClientPauses() throws Exception {
        start();
        runner("rate-limit.clients.model.policy=reject").run(context -> {
            OkHttpClient client = client(context);
            RestClient other = context.getBean(RestClient.Builder.class).build();
            assertThat(other.get()
                            .uri(url + "/busy")
                            .<Integer>exchange((request, response) ->
                                    response.getStatusCode().value()))
                    .isEqualTo(429);
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> status(client, url + "/chat"))
                    .satisfies(rejection -> assertThat(rejection.limit()).isEqualTo("clients.model"));
            assertThat(withRetries(client, url + "/chat")).isInstanceOf(RateLimitExceededException.class);
            for (int attempt = 1; attempt <= 3; attempt++) {
                assertThat(failure(enqueue(call(client, url + "/chat"))))
                        .isInstanceOf(IOException.class)
                        .hasCauseInstanceOf(RateLimitExceededException.class);
            }
            assertThat(seen).containsExactly("/busy");
            ticker.advance(Duration.ofSeconds(30));
            assertThat(status(client, url + "/chat")).isEqualTo(204);
            assertThat(enqueue(call(client, url + "/chat")).join().code()).isEqualTo(204);
            assertThat(withRetries(client, url + "/busy")).isInstanceOf(RateLimitExceededException.class);
            assertThat(seen).containsExactly("/busy", "/chat", "/chat", "/busy");
        });
    }

    @Test
    void eachAttemptCounts() {
        runner(
                        "rate-limit.clients.model.limits=calls",
                        "rate-limit.clients.model.policy=reject",
                        "rate-limit.limits.calls.rate=5/h")
                .run(context -> {
                    AtomicInteger sent = new AtomicInteger();
                    OkHttpClient client = client(context, chain -> {
                        sent.incrementAndGet();
                        return answering(500).intercept(chain);
                    });
                    assertThat(withRetries(client, "http://localhost/chat")).isEqualTo(500);
                    assertThat(withRetries(client, "http://localhost/chat"))
                            .isInstanceOf(RateLimitExceededException.class);
                    assertThat(sent).hasValue(5);
                    assertThat(status(client, "http://other.example/chat")).isEqualTo(500);
                    assertThat(sent).as("a host of no client").hasValue(6);
                });
    }

    @Test
    void anotherHostBehindARedirectDoesNotCount() throws Exception {
        start();
        runner("rate-limit.clients.model.policy=reject").run(context -> {
            OkHttpClient client = client(context);
            assertThat(status(client, url + "/moved")).isEqualTo(429);
            assertThat(status(client, url + "/chat")).isEqualTo(204);
            assertThat(seen).containsExactly("/moved", "/busy", "/chat");
        });
    }

    @Test
    void aResponseBehindARedirectThatStatesNothingEndsNoQuota() throws Exception {
        start();
        runner("rate-limit.clients.model.policy=reject").run(context -> {
            OkHttpClient client = client(context);
            for (String path : List.of("/left9", "/left8", "/away", "/fresh", "/left0", "/fresh")) {
                assertThat(status(client, url + path)).as(path).isEqualTo(200);
            }
            assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(() -> status(client, url + "/away"));
        });
    }

    @Test
    void aStreamHoldsItsPlaceUntilItIsClosed() throws Exception {
        start();
        runner(PLACES, "rate-limit.clients.model.policy=reject").run(context -> {
            OkHttpClient client = client(context);
            Response stream = call(client, url + "/stream").execute();
            assertThat(stream.body().source().readUtf8Line()).isEqualTo("data: Good");
            assertThat(places(context)).isZero();
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> status(client, url + "/chat"))
                    .satisfies(rejection -> assertThat(rejection.limit()).isEqualTo("places"));
            stream.close();
            assertThat(places(context)).isOne();
            Call cancelled = call(client, url + "/stream");
            Response broken = cancelled.execute();
            cancelled.cancel();
            assertThatIOException().isThrownBy(() -> broken.body().string());
            assertThat(places(context)).isOne();
            assertThatIOException().isThrownBy(() -> status(client, "http://localhost:1/"));
            assertThat(places(context)).as("no connection").isOne();
        });
    }

    /** Nobody closes the body of a web socket. */
    @Test
    void aCallThatTheCacheAnswersTakesNoPermitAndItsHeadersAreOld() {
        runner("rate-limit.clients.model.limits=scarce", "rate-limit.limits.scarce.rate=1/h")
                .run(context -> {
                    OkHttpClient client = client(context, chain -> cached(chain.request()));
                    assertThat(status(client, "http://localhost/a")).isEqualTo(200);
                    assertThat(status(client, "http://localhost/a")).isEqualTo(200);
                    assertThat(context.getBean(RateLimits.class)
                                    .peek("scarce", null)
                                    .remaining())
                            .isEqualTo(1);
                });
    }

    @Test
    void aRedirectToAResponseOfTheCacheTakesAPermit(@TempDir File directory) throws Exception {
        start();
        runner("rate-limit.clients.model.limits=scarce", "rate-limit.limits.scarce.rate=9/d")
                .run(context -> {
                    try (Cache cache = new Cache(directory, 1_000_000)) {
                        OkHttpClient client =
                                client(context).newBuilder().cache(cache).build();
                        for (String path : List.of("/fresh", "/fresh", "/away", "/away")) {
                            assertThat(status(client, url + path)).isEqualTo(200);
                        }
                        assertThat(seen).containsExactly("/fresh", "/away", "/away");
                        assertThat(context.getBean(RateLimits.class)
                                        .peek("scarce", null)
                                        .remaining())
                                .isEqualTo(6);
                    }
                });
    }

    @Test
    void aCallThatMayOnlyBeAnsweredByTheCacheTakesNoPermit() {
        runner("rate-limit.clients.model.limits=scarce", "rate-limit.limits.scarce.rate=1/h")
                .run(context -> {
                    Request stored = new Request.Builder()
                            .url("http://localhost/a")
                            .cacheControl(CacheControl.FORCE_CACHE)
                            .build();
                    try (Response missing = client(context).newCall(stored).execute()) {
                        assertThat(missing.code()).isEqualTo(504);
                    }
                    assertThat(context.getBean(RateLimits.class)
                                    .peek("scarce", null)
                                    .remaining())
                            .isEqualTo(1);
                });
    }

    @Test
    void headersOfAStoredResponseThatIsConfirmedAreOld(@TempDir File directory) throws Exception {
        start();
        runner("rate-limit.clients.model.policy=reject").run(context -> {
            try (Cache cache = new Cache(directory, 1_000_000)) {
                OkHttpClient client = client(context).newBuilder().cache(cache).build();
                assertThat(status(client, url + "/page")).isEqualTo(200);
                assertThatExceptionOfType(RateLimitExceededException.class)
                        .isThrownBy(() -> status(client, url + "/page"));
                ticker.advance(Duration.ofSeconds(30));
                assertThat(status(client, url + "/page")).isEqualTo(200);
                assertThat(status(client, url + "/page")).isEqualTo(200);
                assertThat(cache.hitCount()).isEqualTo(2);
            }
        });
    }

    private static Response cached(Request request) {
        Response.Builder response = new Response.Builder()
                .request(request)
                .protocol(Protocol.HTTP_1_1)
                .code(200)
                .message("")
                .header("X-RateLimit-Limit", "10")
                .header("X-RateLimit-Remaining", "0")
                .header("X-RateLimit-Reset", "60");
        return response.cacheResponse(response.build())
                .body(ResponseBody.create("text", MediaType.get("text/plain")))
                .build();
    }

    @Test
    void aResponseThatIsReadOrSwitchesProtocolsGivesItsPlaceBack() {
        runner(PLACES).run(context -> {
            Response read =
                    call(client(context, answering(200)), "http://localhost/").execute();
            assertThat(places(context)).isZero();
            assertThat(read.body().string()).isEqualTo("text");
            assertThat(read.body().contentType()).hasToString("text/plain; charset=utf-8");
            assertThat(read.body().contentLength()).isEqualTo(4);
            assertThat(places(context)).isOne();
            Response switched =
                    call(client(context, answering(101)), "http://localhost/").execute();
            assertThat(places(context)).isOne();
            switched.close();
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aCallThatIsCancelledStopsWaiting(boolean holds) {
        runner(PLACES, "rate-limit.clients.model.max-wait=1h").run(context -> {
            OkHttpClient client = client(context, answering(200));
            Response first = call(client, "http://localhost/").execute();
            Call second = call(client, "http://localhost/");
            CompletableFuture<Response> waiting = enqueue(second);
            // For its turn: whether it is cancelled has nothing to do with the time of limits.
            ticker.awaitSleeping(1);
            assertThat(ticker.sleeping()).isOne();
            assertThat(waiting).isNotDone();
            if (holds) {
                first.close();
                assertThat(waiting.join().code()).isEqualTo(200);
                waiting.join().close();
            } else {
                second.cancel();
                assertThat(failure(waiting)).isInstanceOf(IOException.class).hasMessage("Canceled");
                first.close();
            }
            // The caller may know of the cancellation before the thread that noticed it has left the queue.
            Threads.untilAsserted(() -> assertThat(places(context)).isOne());
        });
    }

    @Test
    void theClientCustomizersOfSpringAiAttachIt() {
        runner().run(context -> assertThat(context)
                .hasSingleBean(OpenAiHttpClientBuilderCustomizer.class)
                .hasSingleBean(AnthropicHttpClientBuilderCustomizer.class));
        runner().withClassLoader(new FilteredClassLoader("org.springframework.ai"))
                .run(context -> assertThat(context).hasNotFailed().hasSingleBean(RateLimitInterceptor.class));
        runner().withClassLoader(new FilteredClassLoader("okhttp3"))
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .doesNotHaveBean("io.ratelimited.rateLimitInterceptor")
                        .doesNotHaveBean("io.ratelimited.rateLimitOpenAiCustomizer"));
        Contexts.runner()
                .withConfiguration(AutoConfigurations.of(ClientRateLimitAutoConfiguration.class))
                .withPropertyValues("rate-limit.clients.model.hosts=localhost")
                .withClassLoader(new FilteredClassLoader(
                        "org.springframework.boot.restclient", "org.springframework.boot.webclient"))
                .run(context -> assertThat(context).hasNotFailed().hasSingleBean(RateLimitInterceptor.class));
    }

    /** Code that takes the interceptor does not depend on the properties of an environment. */
    @ParameterizedTest
    @ValueSource(strings = {"rate-limit.enabled=false", "rate-limit.limits.calls.rate=1/h"})
    void withoutLimitsOfClientsEachCallPasses(String property) throws Exception {
        start();
        Contexts.runner(ticker)
                .withConfiguration(AutoConfigurations.of(
                        ClientRateLimitAutoConfiguration.class, UnlimitedOkHttpAutoConfiguration.class))
                .withPropertyValues(property)
                .run(context -> {
                    assertThat(context).hasNotFailed().hasSingleBean(RateLimitInterceptor.class);
                    OkHttpClient client = client(context);
                    assertThat(status(client, url + "/busy")).isEqualTo(429);
                    assertThat(status(client, url + "/busy")).isEqualTo(429);
                    assertThat(seen).containsExactly("/busy", "/busy");
                });
    }
}
