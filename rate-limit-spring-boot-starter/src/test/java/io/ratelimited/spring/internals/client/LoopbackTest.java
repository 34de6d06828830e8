package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.autoconfigure.client.ClientRateLimitAutoConfiguration;
import io.ratelimited.spring.fields.HeaderStyle;
import io.ratelimited.spring.internals.web.LimitHeaders;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.http.client.autoconfigure.HttpClientAutoConfiguration;
import org.springframework.boot.http.client.autoconfigure.imperative.ImperativeHttpClientAutoConfiguration;
import org.springframework.boot.restclient.autoconfigure.RestClientAutoConfiguration;
import org.springframework.web.client.RestClient;

/**
 * Eight threads who want more than ten times what a server on loopback allows. The budget of a window that a slow machine
 * misses is lost, so the shares of windows are exact in virtual time alone ({@link ClosedLoopTest}).
 */
@Tag("proof")
class LoopbackTest {

    /** A window of two seconds, of servers that are not of this library. */
    private static final long WINDOW_MILLIS = 2_000;

    private static final long WINDOW_CALLS = 100;
    private static final int CALLERS = 8;

    private long window;
    private long used;

    private synchronized boolean tryTakeOfWindow() {
        long now = System.currentTimeMillis() / WINDOW_MILLIS;
        used = now == window ? used + 1 : 1;
        window = now;
        return used <= WINDOW_CALLS;
    }

    private static long windowEndMillis() {
        return (System.currentTimeMillis() / WINDOW_MILLIS + 1) * WINDOW_MILLIS;
    }

    /** What servers answer: the status, and the fields. All allow 50 calls a second, but for the last, which allows all. */
    private enum Kind {
        TOKEN_BUCKET,
        FIXED_WINDOW,
        SLIDING_LOG,
        RETRY_AFTER_ONLY,
        RESET_SINCE_1970,
        NONSENSE;

        private int answer(
                LoopbackTest test, Limit limit, InMemoryRateLimiter limiter, BiConsumer<String, String> fields) {
            switch (this) {
                case RETRY_AFTER_ONLY -> {
                    if (!test.tryTakeOfWindow()) {
                        long left = windowEndMillis() - System.currentTimeMillis();
                        fields.accept("Retry-After", String.valueOf((left + 999) / 1000));
                        return 429;
                    }
                    return 204;
                }
                case RESET_SINCE_1970 -> {
                    synchronized (test) {
                        boolean admitted = test.tryTakeOfWindow();
                        fields.accept("X-RateLimit-Limit", String.valueOf(WINDOW_CALLS));
                        fields.accept("X-RateLimit-Remaining", String.valueOf(Math.max(0, WINDOW_CALLS - test.used)));
                        fields.accept("X-RateLimit-Reset", String.valueOf(windowEndMillis() / 1000));
                        return admitted ? 204 : 429;
                    }
                }
                case NONSENSE -> {
                    fields.accept("RateLimit", "\"a\";r=-1;t=999999999999");
                    fields.accept("X-RateLimit-Remaining", "few");
                    fields.accept("Retry-After", "-7");
                    return 204;
                }
                default -> {
                    Decision decision = limiter.reserve(null, 1, 0).decision();
                    LimitHeaders written = new LimitHeaders();
                    written.decided(limit, decision);
                    written.write(new LimitHeaders.Style(HeaderStyle.STANDARD, Ticker.system()), fields);
                    return decision.admitted() ? 204 : 429;
                }
            }
        }
    }

    @ParameterizedTest
    @CsvSource({
        "TOKEN_BUCKET, 20, 95",
        "FIXED_WINDOW, 6, 75",
        "SLIDING_LOG, 6, 75",
        "RETRY_AFTER_ONLY, 6, 75",
        "RESET_SINCE_1970, 6, 75",
        "NONSENSE, 3, 99"
    })
    void afterTheFirstAnswerNothingIsRefusedAndTheLimitIsUsed(Kind kind, long seconds, long leastPercentUsed)
            throws Exception {
        Algorithm algorithm = switch (kind) {
            case TOKEN_BUCKET -> Algorithm.TOKEN_BUCKET;
            case SLIDING_LOG -> Algorithm.SLIDING_LOG;
            default -> Algorithm.FIXED_WINDOW;
        };
        Limit limit = Limit.of("partner", algorithm)
                .rate(algorithm == Algorithm.TOKEN_BUCKET ? "50/s" : "100/2s")
                .build();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit);
        LongAdder admitted = new LongAdder();
        LongAdder refused = new LongAdder();
        ExecutorService threads = Executors.newCachedThreadPool();
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext("/", exchange -> {
            int status = kind.answer(this, limit, limiter, exchange.getResponseHeaders()::set);
            (status == 204 ? admitted : refused).increment();
            exchange.sendResponseHeaders(status, -1);
            exchange.close();
        });
        server.start();
        try {
            Contexts.runner()
                    .withConfiguration(AutoConfigurations.of(
                            ClientRateLimitAutoConfiguration.class,
                            HttpClientAutoConfiguration.class,
                            ImperativeHttpClientAutoConfiguration.class,
                            RestClientAutoConfiguration.class))
                    .withPropertyValues(
                            "rate-limit.clients.partner.hosts=localhost", "rate-limit.clients.partner.max-wait=30s")
                    .run(context -> {
                        RestClient client = context.getBean(RestClient.Builder.class)
                                .baseUrl("http://localhost:"
                                        + server.getAddress().getPort())
                                .build();
                        client.get().exchange((request, response) -> response.getStatusCode());
                        long end = System.nanoTime() + TimeUnit.SECONDS.toNanos(seconds);
                        CountDownLatch gate = new CountDownLatch(1);
                        List<Future<?>> callers = new ArrayList<>();
                        for (int i = 0; i < CALLERS; i++) {
                            callers.add(threads.submit(() -> {
                                gate.await();
                                while (System.nanoTime() < end) {
                                    client.get().exchange((request, response) -> response.getStatusCode());
                                }
                                return null;
                            }));
                        }
                        gate.countDown();
                        for (Future<?> caller : callers) {
                            caller.get(2, TimeUnit.MINUTES);
                        }
                    });
        } finally {
            server.stop(0);
            threads.shutdownNow();
        }
        System.out.println(
                "[INFO] " + kind + " in " + seconds + " s: " + admitted + " admitted, " + refused + " refused");
        // A service that states no rest rejects what is in flight when its limit is used up.
        long windows = 1 + seconds * 1000 / WINDOW_MILLIS;
        assertThat(refused.sum()).isLessThanOrEqualTo(kind == Kind.RETRY_AFTER_ONLY ? CALLERS * windows : 0);
        assertThat(admitted.sum()).isGreaterThanOrEqualTo(50 * seconds * leastPercentUsed / 100);
    }
}
