package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Mono;

/** The places come back that routes hold for calls in flight. */
@ParameterizedClass
@EnumSource(Kind.class)
class PlacesOfRoutesTest {

    private static RunningServer server;

    @BeforeParameterizedClassInvocation
    static void start(Kind kind) {
        server = kind.start(
                List.of(App.class),
                "server.shutdown=immediate",
                "rate-limit.limits.failing.algorithm=concurrency",
                "rate-limit.limits.failing.max-concurrent=9",
                "rate-limit.limits.failing.backend=failing",
                "rate-limit.limits.place.algorithm=concurrency",
                "rate-limit.limits.place.max-concurrent=1",
                "rate-limit.routes[0].path=/several/**",
                "rate-limit.routes[0].limits=failing,place");
    }

    @AfterParameterizedClassInvocation
    static void stop() {
        server.close();
    }

    @Parameter
    Kind kind;

    private static long free(String limit) {
        return server.context.getBean(RateLimits.class).peek(limit, null).remaining();
    }

    @ParameterizedTest
    @ValueSource(strings = {"/several/plain", "/several/mono"})
    void aPlaceComesBackAlthoughAnotherLimitOfItsRouteFails(String path) {
        assertThat(server.get(path).statusCode()).isEqualTo(200);
        Threads.untilAsserted(() -> assertThat(free("place")).isEqualTo(1));
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Failing.class, Api.class})
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    /** Limits whose backend fails when a call has ended. */
    static final class Failing implements LimiterFactory {

        private final ManualTicker ticker;

        Failing(ManualTicker ticker) {
            this.ticker = ticker;
        }

        @Override
        public String backend() {
            return "failing";
        }

        @Override
        public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
            return failing(RateLimiter.class, new InMemoryRateLimiter(limit, ticker, 100));
        }

        private static <T> T failing(Class<T> type, T target) {
            return type.cast(Proxy.newProxyInstance(
                    type.getClassLoader(), new Class<?>[] {type}, (proxy, method, args) -> {
                        if (method.getName().equals("release")) {
                            throw new IllegalStateException("as the test wants");
                        }
                        Object result;
                        try {
                            result = method.invoke(target, args);
                        } catch (InvocationTargetException ex) {
                            throw ex.getCause();
                        }
                        return result instanceof Reservation reservation
                                ? failing(Reservation.class, reservation)
                                : method.getName().equals("reserveAsync")
                                        ? ((CompletionStage<?>) result)
                                                .thenApply(
                                                        reserved -> failing(Reservation.class, (Reservation) reserved))
                                        : result;
                    }));
        }
    }

    @RestController
    static class Api {

        @GetMapping("/several/plain")
        public String plain() {
            return "hello";
        }

        @GetMapping("/several/mono")
        public Mono<String> mono() {
            return Mono.just("hello");
        }
    }
}
