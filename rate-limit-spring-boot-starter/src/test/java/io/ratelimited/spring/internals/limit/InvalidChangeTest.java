package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.ratelimited.core.Limit;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.cloud.context.environment.EnvironmentChangeEvent;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.env.MapPropertySource;

/** An invalid change at run time is refused with its reason, whichever way it comes, and changes nothing. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("spring-boot")
class InvalidChangeTest {

    private final Map<String, Object> configuration = new HashMap<>(Map.of(
            "rate-limit.limits.weighed.tier", "#plan",
            "rate-limit.limits.weighed.tiers.gold.rate", "50/s",
            "rate-limit.limits.weighed.tiers.internal.rate", "unlimited"));

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "burst=4 | permits is 5 (@RateLimited on io.ratelimited.spring.internals.limit.InvalidChangeTest$Weighed.call(String))",
                "rate=4/s | but this limit admits at most 4 per call",
                "algorithm=fixed-window;rate=4/d | but this limit admits at most 4 per call",
                "tiers.gold.rate=4/s | but this limit admits at most 4 per call",
                "tiers.gold.burst=0 | burst is 0, but must be at least 1",
                "burst=0 | burst is 0, but must be at least 1",
                "burst=-3 | burst is -3, but must be at least 1",
                "rate=-1/s | rate",
                "rate=lots | \"lots\"",
                "max-waiting=-1 | maxWaiting",
                "policy=wait;max-wait=-1s | maxWait is -1s, but must be from 0s to 365d",
                "policy=wait;max-wait=300000d | but must be from 0s to 365d",
                "max-wait=1s | maxWait is 1s, but policy REJECT does not support it",
                "slots=5 | slots is 5, but TOKEN_BUCKET does not support it",
                "max-concurrent=5 | maxConcurrent is 5, but TOKEN_BUCKET does not support it",
                "tiers.gold.policy=wait | tiers cannot set policy"
            })
    void isRefused(String changes, String reason, CapturedOutput output) {
        Map<String, String> changed = Stream.of(changes.split(";"))
                .map(change -> change.split("="))
                .collect(Collectors.toMap(change -> change[0], change -> change[1]));
        run((context, limits) -> {
            String before = state(limits);

            assertThatThrownBy(() -> limits.change("weighed", LimitChange.of(changed)))
                    .isInstanceOf(InvalidRateLimitException.class)
                    .hasMessageContaining("Origin: change at run time, of ")
                    .hasMessageContaining(reason);
            assertThat(state(limits)).isEqualTo(before);

            changed.forEach((property, value) -> configuration.put("rate-limit.limits.weighed." + property, value));
            context.publishEvent(new EnvironmentChangeEvent(context, Set.of()));
            assertThat(output.getOut())
                    .containsPattern("ERROR.*The configuration was not applied")
                    .contains(reason);
            assertThat(state(limits)).isEqualTo(before);
        });
    }

    @Test
    void whatOnlyAnAnnotationCanLeaveOpenIsNoChange() {
        run((context, limits) -> {
            String before = state(limits);
            for (String property : List.of("policy", "algorithm")) {
                assertThat(catchThrowable(() -> limits.change("weighed", LimitChange.of(property, "default"))))
                        .isInstanceOf(IllegalArgumentException.class)
                        .hasMessageContaining(property + " is \"default\", but must be one of [")
                        .hasMessageNotContaining("default,");
            }
            assertThat(state(limits)).isEqualTo(before);
        });
    }

    @Test
    void aRefreshToWhatOnlyAnAnnotationCanLeaveOpenIsLogged(CapturedOutput output) {
        run((context, limits) -> {
            String before = state(limits);
            configuration.put("rate-limit.limits.weighed.policy", "default");
            context.publishEvent(new EnvironmentChangeEvent(context, Set.of()));
            assertThat(state(limits)).isEqualTo(before);
            assertThat(output.getOut())
                    .containsPattern(
                            "ERROR.*The configuration was not applied.*rate-limit.limits.weighed.policy is default"
                                    + ", but must be one of \\[reject, wait, shadow\\]");
        });
    }

    @Test
    void aChangeAsTextIsRejectedToo() {
        run((context, limits) -> {
            String before = state(limits);
            assertThat(catchThrowable(() -> limits.change("weighed", LimitChange.of("burst", "4"))))
                    .isInstanceOf(InvalidRateLimitException.class)
                    .hasMessageContaining("admits at most 4 per call");
            assertThat(catchThrowable(() -> limits.change(
                            "weighed",
                            LimitChange.of("algorithm", "concurrency").with("max-concurrent", "9"))))
                    .isInstanceOf(InvalidRateLimitException.class)
                    .hasMessageContaining("algorithm cannot change");
            assertThat(state(limits)).isEqualTo(before);
        });
    }

    @Test
    void aLimitMayBeClosedUnderCallsOfManyPermits() {
        run((context, limits) -> {
            assertThat(limits.change("weighed", LimitChange.rate("0/s")).rate().isClosed())
                    .isTrue();
            assertThat(limits.tryAcquire("weighed", null)).isFalse();
        });
    }

    private void run(BiConsumer<ConfigurableApplicationContext, TestLimits> test) {
        Contexts.runner(new ManualTicker())
                .withInitializer(context -> context.getEnvironment()
                        .getPropertySources()
                        .addFirst(new MapPropertySource("changing", configuration)))
                .withBean(Weighed.class)
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    limits.tryAcquire("weighed", null, 3);
                    test.accept(context, limits);
                });
    }

    /** All that a change could change. */
    private static String state(TestLimits limits) {
        NamedLimit limit = limits.limit("weighed");
        return limit.limit() + ", " + limit.policy() + " " + limit.maxWaitNanos() + ", " + limit.properties() + ", "
                + limit.tiers().values().stream().map(Limit::toString).sorted().toList() + ", "
                + limits.peek("weighed", null);
    }

    static class Weighed {

        @RateLimited(name = "weighed", rate = "10/s", permits = "5")
        public void call(String plan) {}
    }
}
