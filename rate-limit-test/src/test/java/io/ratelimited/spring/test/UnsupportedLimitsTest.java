package io.ratelimited.spring.test;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

/** A limit that fails the startup of the application with its backend fails that of its tests, too. */
class UnsupportedLimitsTest {

    static class Reports {

        @RateLimited(name = "reports", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 5)
        public void make() {}
    }

    private final ApplicationContextRunner context = new ApplicationContextRunner()
            .withConfiguration(
                    AutoConfigurations.of(RateLimitTestAutoConfiguration.class, RateLimitAutoConfiguration.class))
            .withBean(Reports.class);

    @ParameterizedTest
    @ValueSource(strings = {"priorities=critical,batch", "algorithm=adaptive"})
    void aLimitThatRedisDoesNotSupportFailsStartup(String property) {
        context.withPropertyValues("rate-limit.backend=redis", "rate-limit.limits.reports." + property)
                .run(started -> assertThat(started)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining(property.substring(0, property.indexOf('=')))
                        .hasMessageContaining("set the backend to memory for limit 'reports'"));
    }

    @Test
    void memorySupportsIt() {
        context.withPropertyValues("rate-limit.limits.reports.priorities=critical,batch")
                .run(started -> assertThat(started).hasNotFailed());
    }

    @Test
    void redisSupportsItWithoutPriorities() {
        context.withPropertyValues("rate-limit.backend=redis")
                .run(started -> assertThat(started).hasNotFailed());
    }
}
