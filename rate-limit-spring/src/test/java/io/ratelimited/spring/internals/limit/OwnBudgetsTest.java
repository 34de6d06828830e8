package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.UnreportedChanges;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** How many callers have a budget of their own, and how different these are. */
class OwnBudgetsTest {

    private static LimitChange rate(String rate) {
        return LimitChange.rate(rate);
    }

    @Test
    @ExtendWith(UnreportedChanges.class)
    void tenThousandCallersHaveAsManyDifferentBudgetsAndTheRemedyHelpsTheNext() {
        ContextRunner.limited(new ManualTicker())
                .withPropertyValues("rate-limit.limits.search.rate=5/h")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    for (int i = 1; i <= 10_000; i++) {
                        limits.override("search", "user " + i, rate(i + "/h"), null);
                    }
                    assertThat(limits.tryAcquire("search", "user 10000", 10_000))
                            .isTrue();
                    assertThat(limits.tryAcquire("search", "user 4711", 4_711)).isTrue();
                    assertThatExceptionOfType(InvalidRateLimitException.class)
                            .isThrownBy(() -> limits.override("search", "one more", rate("3/h"), null))
                            .withMessageContaining("10000 callers have an override")
                            .satisfies(ex -> assertThat(ex.remedy()).contains("remove one of them"));

                    limits.removeOverride("search", "user 1");
                    limits.override("search", "one more", rate("77777/h"), null);

                    assertThat(limits.tryAcquire("search", "one more", 77_777)).isTrue();
                    assertThat(limits.tryAcquire("search", "user 4711")).isFalse();
                });
    }
}
