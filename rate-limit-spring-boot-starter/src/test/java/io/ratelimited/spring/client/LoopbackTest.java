package io.ratelimited.spring.client;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.net.httpserver.HttpServer;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.InMemoryRateLimiter;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimitProperties.Headers;
import io.ratelimited.spring.web.LimitFields;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.LongAdder;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.restclient.autoconfigure.RestClientAutoConfiguration;
import org.springframework.web.client.RestClient;

/** Eight threads who want more than ten times what a server on loopback allows, for a minute. */
@Tag("proof")
class LoopbackTest {

    private static final Duration TIME = Duration.ofSeconds(60);

    @Test
    void afterTheFirstAnswerNothingIsRefusedAndTheLimitIsUsed() throws Exception {
        Limit limit = Limit.of("partner", Algorithm.TOKEN_BUCKET).rate("50/s").build();
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit);
        LongAdder admitted = new LongAdder();
        LongAdder refused = new LongAdder();
        ExecutorService threads = Executors.newCachedThreadPool();
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.setExecutor(threads);
        server.createContext("/", exchange -> {
            Decision decision = limiter.reserve(null, 1, 0).decision();
            LimitFields fields = new LimitFields();
            fields.decided(limit, decision);
            fields.write(new LimitFields.Style(Headers.STANDARD, Ticker.system()), exchange.getResponseHeaders()::set);
            (decision.admitted() ? admitted : refused).increment();
            exchange.sendResponseHeaders(decision.admitted() ? 204 : 429, -1);
            exchange.close();
        });
        server.start();
        try {
            Contexts.runner()
                    .withConfiguration(AutoConfigurations.of(
                            ClientRateLimitAutoConfiguration.class, RestClientAutoConfiguration.class))
                    .withPropertyValues(
                            "rate-limit.clients.partner.hosts=localhost", "rate-limit.clients.partner.max-wait=30s")
                    .run(context -> {
                        RestClient client = context.getBean(RestClient.Builder.class)
                                .baseUrl("http://localhost:"
                                        + server.getAddress().getPort())
                                .build();
                        client.get().retrieve().toBodilessEntity();
                        long end = System.nanoTime() + TIME.toNanos();
                        CountDownLatch gate = new CountDownLatch(1);
                        List<Future<?>> callers = new ArrayList<>();
                        for (int i = 0; i < 8; i++) {
                            callers.add(threads.submit(() -> {
                                gate.await();
                                while (System.nanoTime() < end) {
                                    client.get().retrieve().toBodilessEntity();
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
        assertThat(refused.sum()).isZero();
        assertThat(admitted.sum()).isGreaterThanOrEqualTo(limit.rate().permits() * TIME.toSeconds() * 99 / 100);
    }
}
