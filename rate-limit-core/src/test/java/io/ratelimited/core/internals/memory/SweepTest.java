package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.params.provider.EnumSource.Mode.EXCLUDE;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.internals.threads.CallbackThreads;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** A sweep that has found a key idle, and a call of that key before the sweep removes it. */
class SweepTest {

    private final ManualTicker ticker = new ManualTicker();

    /** A key that does something when it is hashed, as the sweep does after it has looked at the cell. */
    private static final class Hooked {

        private volatile @Nullable Runnable hook;

        @Override
        public boolean equals(@Nullable Object other) {
            return this == other;
        }

        @Override
        public int hashCode() {
            Runnable next = hook;
            if (next != null) {
                hook = null;
                next.run();
            }
            return 7;
        }
    }

    @ParameterizedTest
    @EnumSource(
            mode = EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void whatACallHasTakenMeanwhileIsGivenBackBySettlingAndByCancelling(Algorithm algorithm) {
        for (boolean cancels : new boolean[] {false, true}) {
            Limit.Builder limit = Limit.of("swept", algorithm).rate("10/s");
            if (algorithm == Algorithm.WARM_UP) {
                limit.warmup(Duration.ofSeconds(1));
            }
            CellRateLimiter limiter = new AnyKeys(limit.build(), ticker, () -> 100);
            Hooked key = new Hooked();
            assertThat(limiter.tryAcquire(key, 1)).isTrue();
            ticker.advance(Duration.ofHours(1));
            long whole = limiter.peek("never seen", 1, 0).remaining();
            Reservation[] call = new Reservation[1];
            key.hook = () -> call[0] = limiter.reserve(key, 5, 0);
            limiter.tryAcquire("other", 1);
            Threads.until(CallbackThreads.SHARED::isQuiescent);
            assertThat(call[0]).as("made within the sweep").isNotNull();
            assertThat(call[0].isRefused()).isFalse();
            assertThat(limiter.peek(key, 1, 0).remaining()).isLessThan(whole);
            if (cancels) {
                call[0].cancel();
            } else {
                call[0].settle(0);
            }
            assertThat(limiter.peek(key, 1, 0).remaining()).isEqualTo(whole);
            assertThat(limiter.keys()).isEqualTo(2);
        }
    }

    /** Such as a limit of a day that has one rate by day and another one by night. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "FIXED_WINDOW", "SLIDING_LOG"})
    void aLimitThatChangesMoreOftenThanItIsSweptIsSweptAllTheSame(Algorithm algorithm) {
        Limit.Builder limit = Limit.of("swept", algorithm);
        if (algorithm.family() == Algorithm.Family.BUCKET) {
            limit.burst(4_000);
        }
        CellRateLimiter limiter = new CellRateLimiter(limit.rate("4000/d").build(), ticker, () -> 100_000);
        for (int half = 0; half < 20; half++) {
            limiter.update(limit.rate(half % 2 == 0 ? "5000/d" : "4000/d").build());
            for (int caller = 0; caller < 100; caller++) {
                limiter.tryAcquire("half " + half + ", caller " + caller, 1);
                ticker.advance(Duration.ofHours(12).dividedBy(100));
            }
            Threads.until(CallbackThreads.SHARED::isQuiescent);
        }
        assertThat(limiter.keys()).isLessThanOrEqualTo(500);
    }
}
