package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;

/**
 * {@link RateLimiter#tryAcquire} allocates nothing, admitted or refused, with a key or without. A SLIDING_LOG grows to the
 * permits of its limit and then stays. A reservation allocates itself, and to settle it allocates nothing more.
 */
@Tag("long") // counts what no mutant changes
class AllocationTest {

    private static final int CALLS = 1_000;
    private static final int ROUNDS = 20;

    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();

    private static Limit limit(Algorithm algorithm, String rate) {
        Limit.Builder limit = Limit.of("a", algorithm).rate(rate);
        return (algorithm == Algorithm.WARM_UP ? limit.warmup(Duration.ofMillis(10)) : limit).build();
    }

    @ParameterizedTest
    @EnumSource(mode = Mode.EXCLUDE, names = "CONCURRENCY")
    void anAdmittedCallAllocatesNothing(Algorithm algorithm) {
        for (String key : new String[] {null, "key"}) {
            // A call every 4 µs, so that even a cold limit of a million a second admits each.
            RateLimiter limiter = new InMemoryRateLimiter(limit(algorithm, "1000000/s"), new Stepping(4_000), 100);
            assertThat(bytesPerCall(limiter, key, true)).isZero();
        }
    }

    @ParameterizedTest
    @EnumSource(mode = Mode.EXCLUDE, names = "CONCURRENCY")
    void aRefusedCallAllocatesNothing(Algorithm algorithm) {
        for (String key : new String[] {null, "key"}) {
            RateLimiter limiter = new InMemoryRateLimiter(limit(algorithm, "100/s"), new Stepping(0), 100);
            for (int call = 0; call < 200; call++) {
                limiter.tryAcquire(key, 1);
            }
            assertThat(bytesPerCall(limiter, key, false)).isZero();
        }
    }

    /** A reservation is all that a call allocates, with or without settling. */
    @ParameterizedTest
    @EnumSource(mode = Mode.EXCLUDE, names = "CONCURRENCY")
    void settlingAllocatesNothing(Algorithm algorithm) {
        for (String key : new String[] {null, "key"}) {
            for (int cost = 1; cost <= 3; cost++) {
                RateLimiter limiter = new InMemoryRateLimiter(limit(algorithm, "1000000/s"), new Stepping(9_000), 100);
                double reserved = bytesPerReservation(limiter, key, 0);
                double settled = bytesPerReservation(limiter, key, cost);
                assertThat(reserved).as(algorithm + "").isPositive().isLessThanOrEqualTo(160);
                assertThat(settled).as(algorithm + ", cost " + cost).isEqualTo(reserved);
            }
        }
    }

    /** Of a call that reserves 2; settles when the cost is not 0. */
    private static double bytesPerReservation(RateLimiter limiter, @Nullable String key, int cost) {
        long fewest = Long.MAX_VALUE;
        for (int round = 0; round < ROUNDS; round++) {
            long before = THREADS.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < CALLS; i++) {
                Reservation call = limiter.reserve(key, 2, 0);
                if (cost > 0) {
                    call.settle(cost);
                }
            }
            fewest = Math.min(fewest, THREADS.getCurrentThreadAllocatedBytes() - before);
        }
        return (double) fewest / CALLS;
    }

    /** The fewest of many rounds, so that what else this thread allocates once does not count. */
    private static double bytesPerCall(RateLimiter limiter, @Nullable String key, boolean admitted) {
        long fewest = Long.MAX_VALUE;
        for (int round = 0; round < ROUNDS; round++) {
            int calls = 0;
            long before = THREADS.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < CALLS; i++) {
                calls += limiter.tryAcquire(key, 1) ? 1 : 0;
            }
            fewest = Math.min(fewest, THREADS.getCurrentThreadAllocatedBytes() - before);
            assertThat(calls).isEqualTo(admitted ? CALLS : 0);
        }
        return (double) fewest / CALLS;
    }

    /** A clock that goes on by so much with every reading. */
    private static final class Stepping implements Ticker {

        private final long step;
        private long now;

        Stepping(long step) {
            this.step = step;
        }

        @Override
        public long nanos() {
            return now += step;
        }

        @Override
        public long epochNanos() {
            return now += step;
        }

        @Override
        public void sleepUntil(long deadline) {
            throw new UnsupportedOperationException("nobody sleeps here");
        }

        @Override
        public Runnable schedule(long deadline, Runnable task) {
            throw new UnsupportedOperationException("nobody sleeps here");
        }
    }
}
