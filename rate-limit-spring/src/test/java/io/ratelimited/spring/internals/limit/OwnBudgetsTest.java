package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.UnreportedChanges;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** How many callers have a budget of their own, and how different these are. */
@Tag("once")
class OwnBudgetsTest {

    private static LimitChange rate(String rate) {
        return LimitChange.rate(rate);
    }

    @Test
    @ExtendWith(UnreportedChanges.class)
    void tenThousandCallersHaveAsManyDifferentBudgetsAndTheRemedyHelpsTheNext() {
        ManualTicker ticker = new ManualTicker();
        ContextRunner.limited(ticker)
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

                    limits.override("search", "user 2", rate("2/h"), Duration.ofMinutes(1));
                    ticker.advance(Duration.ofMinutes(1));
                    limits.override("search", "in the place of one that has ended", rate("66666/h"), null);

                    assertThat(limits.tryAcquire("search", "in the place of one that has ended", 66_666))
                            .isTrue();
                });
    }
}
