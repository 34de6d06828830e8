package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.time.Instant;
import java.util.Random;
import java.util.concurrent.CyclicBarrier;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * A time is stale when a later one has been decided by: another thread read the clock first and came second, or the clock
 * stepped back by less than its owner would notice. A stale time decides as the newest one.
 */
class StaleTimeTest {

    private static final long DAY = Duration.ofDays(1).toNanos();

    private final ManualTicker ticker = new ManualTicker(-7, Instant.parse("2026-01-01T00:00:00Z"));

    static Stream<Limit> limits() {
        return Stream.of(
                        Limit.of("stale", Algorithm.TOKEN_BUCKET).rate("5/m"),
                        Limit.of("stale", Algorithm.TOKEN_BUCKET).rate("3/s").burst(7),
                        Limit.of("stale", Algorithm.TOKEN_BUCKET)
                                .rate("1000000/s")
                                .burst(5),
                        Limit.of("stale", Algorithm.GCRA).rate("10/s").burst(2),
                        Limit.of("stale", Algorithm.SMOOTH_BURSTY).rate("5/s"),
                        Limit.of("stale", Algorithm.SMOOTH_BURSTY).rate("7/m").burst(3),
                        Limit.of("stale", Algorithm.LEAKY_BUCKET).rate("10/s"),
                        Limit.of("stale", Algorithm.WARM_UP).rate("10/s").warmup(Duration.ofSeconds(2)),
                        Limit.of("stale", Algorithm.FIXED_WINDOW).rate("5/s"),
                        Limit.of("stale", Algorithm.SLIDING_WINDOW).rate("5/s"),
                        Limit.of("stale", Algorithm.SLIDING_LOG).rate("5/m"))
                .map(Limit.Builder::build);
    }

    private InMemoryRateLimiter limiter(Limit limit) {
        return new InMemoryRateLimiter(limit, ticker, 100);
    }

    @ParameterizedTest
    @MethodSource("limits")
    void aCallWhoseClockIsBehindFindsWhatTheCallBeforeItHasLeft(Limit limit) {
        InMemoryRateLimiter limiter = limiter(limit);
        ticker.advance(Duration.ofHours(1));
        for (long back : new long[] {1, 100, 99_999, 900_000}) {
            limiter.reset("key");
            long left = limiter.peek("key", 1, 0).remaining();
            assertThat(limiter.tryAcquire("key", 1)).isTrue();
            ticker.advanceNanos(-back);
            for (long call = 1; call < left; call++) {
                assertThat(limiter.peek("key", 1, 0).remaining()).isEqualTo(left - call);
                assertThat(limiter.reserve("key", 1, 0).waitNanos()).isZero();
            }
            ticker.advanceNanos(back + DAY);
        }
    }

    /** The first instant of a window, seen by a call, and the last of the window before it, seen by the next. */
    @ParameterizedTest
    @MethodSource("limits")
    void aClockThatStepsBackOverABoundaryRefusesNothingOfTheNewWindow(Limit limit) {
        InMemoryRateLimiter limiter = limiter(limit);
        ticker.advanceNanos(DAY - 500_000);
        limiter.peek("key", 1, 0);
        ticker.advanceNanos(500_000);
        long left = limiter.peek("key", 1, 0).remaining();
        assertThat(limiter.tryAcquire("key", 1)).isTrue();
        ticker.advanceNanos(-1);
        for (long call = 1; call < left; call++) {
            assertThat(limiter.tryAcquire("key", 1)).isTrue();
        }
    }

    @ParameterizedTest
    @MethodSource("limits")
    void aClockThatJittersDecidesAsItsNewestTime(Limit limit) {
        // Without keys: those whose cells are swept meanwhile get back less of what is cancelled.
        for (int seed = 0; seed < 40; seed++) {
            Random random = new Random(seed);
            ManualTicker jittering = new ManualTicker(random.nextInt(), Instant.parse("2026-01-01T00:00:00Z"));
            ManualTicker newest = new ManualTicker(jittering.nanos(), Instant.EPOCH.plusNanos(jittering.epochNanos()));
            InMemoryRateLimiter one = new InMemoryRateLimiter(limit, jittering, 100);
            InMemoryRateLimiter other = new InMemoryRateLimiter(limit, newest, 100);
            double interval =
                    (double) limit.rate().period().toNanos() / limit.rate().permits();
            for (int call = 0; call < 150; call++) {
                long step = random.nextInt(3) == 0
                        ? newest.nanos() - (long) (random.nextDouble() * 900_000) - jittering.nanos()
                        : (long) (random.nextDouble() * random.nextDouble() * interval * 2);
                jittering.advanceNanos(step);
                newest.advanceNanos(Math.max(0, jittering.nanos() - newest.nanos()));
                long maxWait = random.nextBoolean() ? 0 : (long) (random.nextDouble() * interval * 3);
                long permits = 1L + random.nextInt(2);
                String where = limit + ", seed " + seed + ", call " + call;
                assertThat(one.peek(null, permits, maxWait)).as(where).isEqualTo(other.peek(null, permits, maxWait));
                if (random.nextBoolean()) {
                    Reservation expected = other.reserve(null, permits, maxWait);
                    Reservation actual = one.reserve(null, permits, maxWait);
                    assertThat(actual.isRefused()).as(where).isEqualTo(expected.isRefused());
                    assertThat(actual.waitNanos()).as(where).isEqualTo(expected.waitNanos());
                    if (random.nextInt(4) == 0) {
                        expected.cancel();
                        actual.cancel();
                    }
                } else {
                    assertThat(one.tryAcquire(null, permits)).as(where).isEqualTo(other.tryAcquire(null, permits));
                }
            }
        }
    }

    /** A key that does something while it is looked up: after its caller has read the clock, before it is decided. */
    private static final class Overtaken {

        private Runnable overtaking = () -> {};

        @Override
        public int hashCode() {
            Runnable once = overtaking;
            overtaking = () -> {};
            once.run();
            return 1;
        }

        @Override
        public boolean equals(Object other) {
            return other == this;
        }
    }

    @ParameterizedTest
    @MethodSource("limits")
    void aCallThatIsOvertakenFindsWhatTheOthersHaveLeft(Limit limit) {
        for (int way = 0; way < 3; way++) {
            // Beneath InMemoryRateLimiter, which would look up the text of the key instead.
            RateLimiter limiter = new AnyKeys(limit, ticker, () -> 100);
            Overtaken key = new Overtaken();
            ticker.advance(Duration.ofDays(1));
            long left = limiter.peek(key, 1, 0).remaining();
            key.overtaking = () -> {
                ticker.advanceNanos(1_000);
                for (long call = 1; call < left; call++) {
                    assertThat(limiter.tryAcquire(key, 1)).isTrue();
                }
            };
            switch (way) {
                case 0 -> assertThat(limiter.tryAcquire(key, 1)).isTrue();
                case 1 -> assertThat(limiter.reserve(key, 1, 0).isRefused()).isFalse();
                default -> assertThat(limiter.peek(key, 1, 0).admitted()).isTrue();
            }
        }
    }

    static Stream<Limit> pairs() {
        return Stream.of(
                        Limit.of("pair", Algorithm.TOKEN_BUCKET).rate("2/m"),
                        Limit.of("pair", Algorithm.GCRA).rate("2/s"),
                        Limit.of("pair", Algorithm.FIXED_WINDOW).rate("2/m"),
                        Limit.of("pair", Algorithm.SLIDING_WINDOW).rate("2/m"),
                        Limit.of("pair", Algorithm.SLIDING_LOG).rate("2/m"))
                .map(Limit.Builder::build);
    }

    /** Two calls at once on each of many new keys that have two permits. */
    @ParameterizedTest
    @MethodSource("pairs")
    void simultaneousCallsWithinTheBudgetOfANewKeyAreAllAdmitted(Limit limit) throws Exception {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit);
        int keys = 3_000;
        CyclicBarrier gate = new CyclicBarrier(2);
        long admitted = Threads.sum(2, thread -> {
            long mine = 0;
            for (int key = 0; key < keys; key++) {
                if (key % 100 == 0) {
                    gate.await();
                }
                mine += limiter.tryAcquire(key, 1) ? 1 : 0;
            }
            return mine;
        });
        assertThat(admitted).isEqualTo(2L * keys);
    }
}
