package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
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
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"CONCURRENCY", "DEFAULT"})
    void anAdmittedCallAllocatesNothing(Algorithm algorithm) {
        for (String key : new String[] {null, "key"}) {
            // A call every 4 µs, so that even a cold limit of a million a second admits each.
            RateLimiter limiter = new InMemoryRateLimiter(limit(algorithm, "1000000/s"), new Stepping(4_000), 100);
            assertThat(bytesPerCall(limiter, key, true)).isZero();
        }
    }

    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"CONCURRENCY", "DEFAULT"})
    void aRefusedCallAllocatesNothing(Algorithm algorithm) {
        for (String key : new String[] {null, "key"}) {
            RateLimiter limiter = new InMemoryRateLimiter(limit(algorithm, "100/s"), new Stepping(0), 100);
            for (int call = 0; call < 200; call++) {
                limiter.tryAcquire(key, 1);
            }
            assertThat(bytesPerCall(limiter, key, false)).isZero();
        }
    }

    /** Among the calls that go is one whose key was blocked once. */
    @Test
    void blocksAllocateNothing() {
        Limit limit = Limit.of("a", Algorithm.TOKEN_BUCKET)
                .rate("1000000/s")
                .block(Duration.ofNanos(4_000))
                .build();
        RateLimiter limiter = new InMemoryRateLimiter(limit, new Stepping(4_000), 100);
        assertThat(limiter.tryAcquire("key", 1_000_000)).isTrue();
        assertThat(limiter.tryAcquire("key", 1_000_000)).isFalse();
        assertThat(bytesPerCall(limiter, "key", true)).isZero();
        assertThat(bytesPerCall(limiter, "other", true)).isZero();
        RateLimiter blocked = new InMemoryRateLimiter(
                limit.toBuilder().block(Duration.ofDays(1)).build(), new Stepping(0), 100);
        assertThat(blocked.tryAcquire("key", 1_000_000)).isTrue();
        assertThat(bytesPerCall(blocked, "key", false)).isZero();
    }

    /** A reservation is all that a call allocates, with or without settling. */
    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"CONCURRENCY", "DEFAULT"})
    void settlingAllocatesNothing(Algorithm algorithm) {
        for (String key : new String[] {null, "key"}) {
            for (int cost = 1; cost <= 3; cost++) {
                RateLimiter limiter = new InMemoryRateLimiter(limit(algorithm, "1000000/s"), new Stepping(9_000), 100);
                double reserved = bytesPerReservation(limiter, key, 0);
                double settled = bytesPerReservation(limiter, key, cost);
                assertThat(reserved).as(algorithm + "").isPositive().isLessThanOrEqualTo(144);
                assertThat(settled).as(algorithm + ", cost " + cost).isEqualTo(reserved);
            }
        }
    }

    /** A call in flight is its reservation, and several limits are one for each and what holds them together. */
    @Test
    void severalLimitsAllocateTheirReservationsOnly() {
        Ticker ticker = new Stepping(9_000);
        RateLimiter bucket = new InMemoryRateLimiter(limit(Algorithm.TOKEN_BUCKET, "1000000/s"), ticker, 100);
        RateLimiter window = new InMemoryRateLimiter(limit(Algorithm.FIXED_WINDOW, "1000000/s"), ticker, 100);
        RateLimiter flight = new InMemoryRateLimiter(
                Limit.of("a", Algorithm.CONCURRENCY).maxConcurrent(9).build(), ticker, 100);
        assertThat(bytesPerCall(List.of(flight))).isEqualTo(32);
        assertThat(bytesPerCall(List.of(bucket))).isEqualTo(64);
        assertThat(bytesPerCall(List.of(bucket, window))).isEqualTo(2 * 64 + 24 + 16);
        RateLimiter other = new InMemoryRateLimiter(limit(Algorithm.GCRA, "1000000/s"), ticker, 100);
        assertThat(bytesPerCall(List.of(bucket, window, other))).isEqualTo(3 * 64 + 32 + 16);
    }

    private static double bytesPerCall(List<RateLimiter> limiters) {
        Claim[] claims =
                limiters.stream().map(limiter -> Claim.of(limiter, null, 1, 0)).toArray(Claim[]::new);
        long fewest = Long.MAX_VALUE;
        for (int round = 0; round < ROUNDS; round++) {
            long before = THREADS.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < CALLS; i++) {
                AllOf.reserve(claims).release();
            }
            fewest = Math.min(fewest, THREADS.getCurrentThreadAllocatedBytes() - before);
        }
        return (double) fewest / CALLS;
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
