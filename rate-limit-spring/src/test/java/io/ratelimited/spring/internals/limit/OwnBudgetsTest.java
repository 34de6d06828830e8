package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.ReservedPermits;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.UnreportedChanges;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;

/** How many callers have a budget of their own, and how different these are. */
@Tag("once")
@Tag("slow")
class OwnBudgetsTest {

    private static LimitChange rate(String rate) {
        return LimitChange.rate(rate);
    }

    @Test
    void aBudgetThatHasEndedIsKeptUntilItsWaitingCallsEnd() {
        CompletableFuture<ReservedPermits> waiting = new CompletableFuture<>();
        ContextRunner.limited(new ManualTicker())
                .withPropertyValues(
                        "rate-limit.limits.search.rate=5/h",
                        "rate-limit.limits.search.policy=wait",
                        "rate-limit.limits.search.max-wait=3h")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    ConfiguredLimit search = limits.configured("search");
                    limits.override("search", "bob", rate("1/h"), null);
                    limits.reserve("search", "bob", 1);
                    limits.reserveAsync("search", "bob", 1).whenComplete((permits, failure) -> {
                        if (failure == null) {
                            waiting.complete(permits);
                        } else {
                            waiting.completeExceptionally(failure);
                        }
                    });
                    limits.removeOverride("search", "bob");
                    for (int i = 0; i < BudgetRegistry.MAXIMUM; i++) {
                        search.budgets().limiters.put("rate=" + i + "/s", search.limiter());
                    }

                    limits.override("search", "zoe", rate("2/h"), null);
                    assertThat(search.budgets().limiters).hasSize(2);
                    assertThat(search.waiting()).isEqualTo(1);
                });
        assertThat(waiting).failsWithin(Duration.ofSeconds(20));
    }

    @Test
    void aCallerHasOfABudgetThatItHadBeforeWhatWasLeftUnlessItIsResetUnderIt() {
        ContextRunner.limited(new ManualTicker())
                .withPropertyValues("rate-limit.limits.search.rate=5/h")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    limits.override("search", "bob", rate("2/h"), null);
                    assertThat(limits.tryAcquire("search", "bob")).isTrue();
                    limits.removeOverride("search", "bob");
                    limits.reset("search", "bob");
                    limits.override("search", "bob", rate("2/h"), null);
                    assertThat(limits.peek("search", "bob").remaining()).isEqualTo(1);
                    limits.reset("search", "bob");
                    assertThat(limits.peek("search", "bob").remaining()).isEqualTo(2);
                });
    }

    @Test
    void aBudgetThatIsTooSmallForACallIsRefused() {
        ContextRunner.limited(new ManualTicker())
                .withBean(Heavy.class)
                .withPropertyValues("rate-limit.limits.search.rate=5/h")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    assertThatExceptionOfType(InvalidRateLimitException.class)
                            .isThrownBy(() -> limits.override("search", "bob", rate("2/h"), null))
                            .withMessageContaining("permits is 3")
                            .withMessageContaining("of a caller");
                    limits.override("search", "bob", rate("3/h"), null);
                });
    }

    static class Heavy {

        @RateLimited(name = "search", key = "#user", permits = "3")
        public void call(String user) {}
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
