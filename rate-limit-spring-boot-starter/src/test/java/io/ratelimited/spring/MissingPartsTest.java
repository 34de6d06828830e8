package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ForkJoinPool;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.context.FilteredClassLoader;

/** What an application does not have, it does not need; what it has of its own is used. */
class MissingPartsTest {

    @ParameterizedTest
    @ValueSource(
            strings = {
                "reactor",
                "kotlin,kotlinx",
                "io.micrometer",
                "org.springframework.boot.actuate,org.springframework.boot.health",
                "jakarta.servlet,org.springframework.web",
                "io.lettuce,io.ratelimited.redis,org.springframework.data.redis",
                "reactor,kotlin,kotlinx,io.micrometer,org.springframework.boot.actuate,org.springframework.boot.health,"
                        + "jakarta.servlet,org.springframework.web,io.lettuce,io.ratelimited.redis,"
                        + "org.springframework.data.redis"
            })
    void withoutAnOptionalPartMethodsAreLimited(String packages) {
        Contexts.runner(new ManualTicker())
                .withClassLoader(new FilteredClassLoader(packages.split(",")))
                .withBean(Limited.class)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    Limited bean = context.getBean(Limited.class);
                    bean.call("a");
                    bean.call("b");
                    assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(() -> bean.call("a"));
                    assertThat(bean.later("a").join()).isEqualTo("a");
                });
    }

    @Test
    void anApplicationsOwnTickerIsUsed() {
        ManualTicker ticker = new ManualTicker();
        Contexts.runner(ticker)
                .run(context -> assertThat(context.getBean(Ticker.class)).isSameAs(ticker));
    }

    @Test
    void anApplicationsOwnLimitsAreUsed() {
        Contexts.runner()
                .withBean(
                        "own",
                        RateLimits.class,
                        () -> new RateLimits(
                                Contexts.properties(),
                                List.of(),
                                new Gate(List.of(), Ticker.system(), new LateStart(ForkJoinPool::commonPool))))
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .getBeanNames(RateLimits.class)
                        .containsExactly("own"));
    }

    @Test
    void aLimiterFactoryBeforeOursReplacesABackend() {
        LimiterFactory own = new LimiterFactory() {
            @Override
            public LimitProperties.Backend backend() {
                return LimitProperties.Backend.REDIS;
            }

            @Override
            public RateLimiter create(io.ratelimited.core.Limit limit, LimitProperties properties) {
                return new io.ratelimited.core.InMemoryRateLimiter(limit);
            }
        };
        Contexts.runner()
                .withBean(LimiterFactory.class, () -> own)
                .withBean(Limited.class)
                .withPropertyValues("rate-limit.backend=redis")
                .run(context -> assertThat(context).hasNotFailed());
    }

    static class Limited {
        @RateLimited(rate = "1/h", key = "#user")
        public void call(String user) {}

        @RateLimited(rate = "1/h")
        public CompletableFuture<String> later(String user) {
            return CompletableFuture.completedFuture(user);
        }
    }
}
