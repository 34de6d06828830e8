package io.ratelimited.spring.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Threads;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisProcess;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.actuate.RateLimitsEndpoint;
import io.ratelimited.spring.actuate.RateLimitsEndpointAutoConfiguration;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.ApplicationContext;

/** While instances with two configurations run, as during a rollout, each says so: in its log and at its endpoint. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("spring-boot")
@Tag("slow")
class RolloutTest {
    private static final String HEARD = "rl:shop:{~nodes}:~settings";

    private final ManualTicker ticker = new ManualTicker();

    private ApplicationContextRunner instance(RedisProcess redis, String... configuration) {
        return new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        RateLimitAutoConfiguration.class,
                        RedisRateLimitAutoConfiguration.class,
                        RateLimitsEndpointAutoConfiguration.class))
                .withBean(ManualTicker.class, () -> ticker)
                .withPropertyValues(
                        "spring.application.name=shop",
                        "management.endpoints.web.exposure.include=ratelimits",
                        "rate-limit.backend=redis",
                        "rate-limit.redis.url=redis://127.0.0.1:" + redis.port(),
                        "rate-limit.redis.timeout=20s",
                        "rate-limit.limits.same.rate=5/s")
                .withPropertyValues(configuration);
    }

    private static void comesBy(ApplicationContext instance) throws Exception {
        instance.getBean(RedisBackend.class).settings().exchange().get(60, TimeUnit.SECONDS);
    }

    private static Object elsewhere(ApplicationContext instance, String limit) {
        return instance.getBean(RateLimitsEndpoint.class).limit(limit, null).get("elsewhere");
    }

    private static List<String> lines(CapturedOutput output, String text) {
        return output.toString().lines().filter(line -> line.contains(text)).toList();
    }

    @Test
    void eachInstanceReportsADifferenceWhenItStartsAndWhenItEnds(CapturedOutput output) {
        try (RedisProcess redis = RedisProcess.start()) {
            instance(
                            redis,
                            "rate-limit.limits.search.rate=100/m",
                            "rate-limit.limits.plans.rate=10/s",
                            "rate-limit.limits.plans.tiers.gold.rate=20/s",
                            "rate-limit.limits.local.backend=memory",
                            "rate-limit.limits.local.rate=1/s",
                            "rate-limit.limits.retired.rate=1/s")
                    .run(before -> {
                        comesBy(before);
                        assertThat(elsewhere(before, "search")).isNull();
                        rollOut(redis, before, output);
                    });
        }
    }

    private void rollOut(RedisProcess redis, ApplicationContext before, CapturedOutput output) {
        instance(
                        redis,
                        "rate-limit.limits.search.algorithm=sliding-window",
                        "rate-limit.limits.search.rate=200/m",
                        "rate-limit.limits.plans.rate=10/s",
                        "rate-limit.limits.plans.tiers.gold.rate=30/s",
                        "rate-limit.limits.local.backend=memory",
                        "rate-limit.limits.local.rate=2/s")
                .run(after -> {
                    comesBy(after);
                    comesBy(before);
                    Threads.until(() -> lines(output, "[RL-341]").size() == 4);
                    assertThat(elsewhere(before, "search")).isEqualTo(List.of("sliding-window, rate 200/m, slots 10"));
                    assertThat(elsewhere(after, "plans").toString()).contains("tier gold (token-bucket, rate 20/s");
                    assertThat(lines(output, "[RL-341]"))
                            .hasSize(4)
                            .anyMatch(line -> line.contains("Instances configure rate limit 'search' differently: here"
                                    + " token-bucket, rate 100/m, burst 100; elsewhere sliding-window, rate 200/m, slots"
                                    + " 10. Each enforces"))
                            .noneMatch(line -> line.contains("'same'") || line.contains("'local'"));

                    // All instances share a change at run time: that is no difference.
                    after.getBean(RateLimitOperations.class).change("same", LimitChange.rate("9/s"));
                    comesBy(before);
                    comesBy(after);
                    assertThat(elsewhere(before, "same")).isNull();
                    assertThat(lines(output, "[RL-341]")).hasSize(4);

                    // As if the old instance had not come by for a while.
                    redis.ask(commands -> {
                        commands.zrange(HEARD, 0, -1).forEach(digest -> commands.zadd(HEARD, 0, digest));
                        return null;
                    });
                    ticker.advance(Duration.ofSeconds(6));
                    comesBy(after);
                    Threads.until(() -> lines(output, "the same way again").size() == 2);
                    assertThat(elsewhere(after, "search")).isNull();
                    assertThat(lines(output, "the same way again"))
                            .hasSize(2)
                            .anyMatch(line -> line.contains("INFO")
                                    && line.contains("Instances configure rate limit 'search' the same way again:"
                                            + " sliding-window, rate 200/m, slots 10"));
                });
    }
}
