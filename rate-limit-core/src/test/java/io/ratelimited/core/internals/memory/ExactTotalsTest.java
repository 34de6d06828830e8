package io.ratelimited.core.internals.memory;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Rate;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.stream.LongStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** However many threads ask, exactly what the limit allows is granted: nothing twice (I2), nothing lost. */
class ExactTotalsTest {

    private static final int THREADS = 8;
    private static final Duration PERIOD = Duration.ofSeconds(1);

    private final ManualTicker ticker = new ManualTicker(Long.MAX_VALUE - 1_000_000_000L, Instant.ofEpochSecond(1_000));

    /** Limits of 1000 permits a second that allow 1000 at once. */
    static Stream<Limit> counting() {
        Rate rate = new Rate(1_000, PERIOD);
        return Stream.of(
                Limit.of("a", Algorithm.TOKEN_BUCKET).rate(rate).build(),
                Limit.of("a", Algorithm.GCRA).rate(rate).build(),
                Limit.of("a", Algorithm.FIXED_WINDOW).rate(rate).build(),
                Limit.of("a", Algorithm.SLIDING_WINDOW).rate(rate).build(),
                Limit.of("a", Algorithm.SLIDING_LOG).rate(rate).build());
    }

    /** Limits that grant one permit a millisecond to callers who wait. */
    static Stream<Limit> pacing() {
        Rate rate = new Rate(1_000, PERIOD);
        return Stream.of(
                Limit.of("a", Algorithm.LEAKY_BUCKET).rate(rate).burst(2_000).build(),
                Limit.of("a", Algorithm.SMOOTH_BURSTY).rate(rate).build(),
                Limit.of("a", Algorithm.WARM_UP)
                        .rate(rate)
                        .warmup(Duration.ZERO)
                        .build());
    }

    private InMemoryRateLimiter limiter(Limit limit) {
        return new InMemoryRateLimiter(limit, ticker, 10_000);
    }

    private static long grants(InMemoryRateLimiter limiter, @Nullable Object key, int attempts, int permits) {
        long granted = 0;
        for (int i = 0; i < attempts; i++) {
            granted += limiter.tryAcquire(key, permits) ? permits : 0;
        }
        return granted;
    }

    @ParameterizedTest
    @MethodSource("counting")
    void threadsOnAFrozenClockGetExactlyTheBudget(Limit limit) throws Exception {
        InMemoryRateLimiter limiter = limiter(limit);
        assertThat(Threads.sum(THREADS, thread -> grants(limiter, null, 1_000, 1)))
                .isEqualTo(1_000);
        assertThat(limiter.peek(null, 1, 0).remaining()).isZero();
    }

    @ParameterizedTest
    @MethodSource("counting")
    void threadsOnOneNewKeyGetExactlyTheBudget(Limit limit) throws Exception {
        InMemoryRateLimiter limiter = limiter(limit);
        assertThat(Threads.sum(THREADS, thread -> grants(limiter, "key", 1_000, 1)))
                .isEqualTo(1_000);
        assertThat(limiter.keys()).isEqualTo(1);
    }

    @ParameterizedTest
    @MethodSource("counting")
    void everyOneOfManyKeysGetsExactlyTheBudget(Limit limit) throws Exception {
        int keys = 50;
        InMemoryRateLimiter limiter = limiter(limit.toBuilder().rate("40/s").build());
        AtomicLongArray granted = new AtomicLongArray(keys);
        Threads.run(THREADS, thread -> {
            Random random = new Random(thread);
            for (int i = 0; i < 20 * keys; i++) {
                int key = i % keys;
                int permits = 1 + random.nextInt(3);
                granted.addAndGet(key, limiter.tryAcquire(key, permits) ? permits : 0);
            }
            for (int key = 0; key < keys; key++) {
                granted.addAndGet(key, grants(limiter, key, 40, 1));
            }
            return null;
        });
        for (int key = 0; key < keys; key++) {
            assertThat(granted.get(key)).isEqualTo(40);
        }
    }

    @ParameterizedTest
    @MethodSource("counting")
    void waitingThreadsAreGrantedEveryPermitOfTheWaitOnce(Limit limit) throws Exception {
        InMemoryRateLimiter limiter = limiter(limit);
        List<List<Long>> waits = Threads.run(THREADS, thread -> waits(limiter, 500, 1_500_000_000L));
        long atOnce =
                waits.stream().flatMap(List::stream).filter(wait -> wait == 0).count();
        long later = waits.stream().flatMap(List::stream).count() - atOnce;
        assertThat(atOnce).isEqualTo(1_000);
        assertThat(later).isEqualTo(pacesWaits(limit) ? 1_500 : 1_000);
    }

    private static boolean pacesWaits(Limit limit) {
        return limit.algorithm() == Algorithm.TOKEN_BUCKET || limit.algorithm() == Algorithm.GCRA;
    }

    private static List<Long> waits(InMemoryRateLimiter limiter, int attempts, long maxWait) {
        List<Long> waits = new ArrayList<>();
        for (int i = 0; i < attempts; i++) {
            Reservation reservation = limiter.reserve(null, 1, maxWait);
            if (!reservation.isRefused()) {
                waits.add(reservation.waitNanos());
            }
        }
        return waits;
    }

    @ParameterizedTest
    @MethodSource("pacing")
    void waitsOfThreadsAreDistinctAndContiguous(Limit limit) throws Exception {
        InMemoryRateLimiter limiter = limiter(limit);
        List<List<Long>> waits = Threads.run(THREADS, thread -> waits(limiter, 200, 1_000_000_000L));
        assertThat(waits.stream().flatMap(List::stream).sorted())
                .containsExactlyElementsOf(LongStream.rangeClosed(0, 1_000)
                        .map(slot -> slot * 1_000_000)
                        .boxed()
                        .toList());
        waits.forEach(own -> assertThat(own).isSorted());
    }

    @Test
    void aWarmingUpLimitChargesEveryThreadForTheStoredPermitsOfAllOthers() throws Exception {
        Limit limit = Limit.of("a", Algorithm.WARM_UP)
                .rate("100/s")
                .warmup(Duration.ofSeconds(10))
                .build();
        InMemoryRateLimiter threaded = limiter(limit);
        InMemoryRateLimiter alone = limiter(limit);
        long maxWait = Duration.ofDays(1).toNanos();
        List<List<Long>> waits = Threads.run(THREADS, thread -> waits(threaded, 200, maxWait));
        assertThat(waits.stream().flatMap(List::stream).sorted())
                .containsExactlyElementsOf(waits(alone, 200 * THREADS, maxWait));
    }

    @Test
    void aClosedLimitGrantsNothingAndAnUnlimitedOneEverything() throws Exception {
        InMemoryRateLimiter closed =
                limiter(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("0/s").build());
        assertThat(Threads.sum(THREADS, thread -> grants(closed, "key", 100, 1)))
                .isZero();
        InMemoryRateLimiter open =
                limiter(Limit.of("a", Algorithm.TOKEN_BUCKET).rate("unlimited").build());
        assertThat(Threads.sum(THREADS, thread -> grants(open, "key", 100, 1))).isEqualTo(100 * THREADS);
    }

    @ParameterizedTest
    @MethodSource("counting")
    void threadsOnASteppedClockUseTheLimitInFullAndNeverMore(Limit limit) throws Exception {
        InMemoryRateLimiter limiter = limiter(limit);
        int steps = 30;
        long[] granted = new long[steps];
        for (int step = 0; step < steps; step++) {
            granted[step] = Threads.sum(4, thread -> grants(limiter, null, 600, 1));
            ticker.advanceNanos(PERIOD.toNanos() / 10);
        }
        // Ten steps are a period: all algorithms have come round.
        long total = LongStream.of(granted).sum();
        switch (limit.algorithm()) {
            case TOKEN_BUCKET, GCRA -> assertThat(total).isEqualTo(1_000 + 100L * (steps - 1));
            case SLIDING_WINDOW -> // the partly covered slot counts too: a round takes 11 steps
                assertThat(total).isEqualTo(1_000L * ((steps + 10) / 11));
            default -> assertThat(total).isEqualTo(1_000L * (steps / 10));
        }
    }

    @ParameterizedTest
    @MethodSource("counting")
    void threadsUnderAMovingClockStayBelowTheBoundAndNearFullUse(Limit limit) throws Exception {
        InMemoryRateLimiter limiter = limiter(limit);
        int steps = 2_000;
        long granted = Threads.sum(4, thread -> {
            long mine = 0;
            for (int step = 0; step < steps; step++) {
                if (thread == 0) {
                    ticker.advanceNanos(2_500_000);
                }
                mine += grants(limiter, null, 8, 1);
            }
            return mine;
        });
        // 5 seconds have passed, and thread 0 alone asked for more than they bring. The rest goes now.
        granted += grants(limiter, null, 1_000, 1);
        long least = switch (limit.algorithm()) {
            case TOKEN_BUCKET, GCRA -> 6_000 - 10; // what a full bucket could not hold at the start
            case FIXED_WINDOW -> 6_000;
            default -> 5_000 - 1_000;
        };
        assertThat(granted).isBetween(least, 6_000L);
    }

    @ParameterizedTest
    @MethodSource("pacing")
    void slotsOfThreadsUnderAMovingClockAreNeverCloserThanTheInterval(Limit limit) throws Exception {
        Limit unstored = limit.algorithm() == Algorithm.SMOOTH_BURSTY
                ? limit.toBuilder().burst(0).build()
                : limit;
        long begin = ticker.nanos();
        Cell cell = CellFactory.parameters(unstored, begin, begin).initial(begin);
        List<List<Long>> slots = Threads.run(4, thread -> {
            List<Long> mine = new ArrayList<>();
            for (int i = 0; i < 500; i++) {
                if (thread == 0) {
                    ticker.advanceNanos(300_000);
                }
                long now = ticker.nanos();
                long wait = cell.reserve(1, now, 1_000_000_000, null);
                if (wait >= 0) {
                    mine.add(now + wait - begin);
                }
            }
            return mine;
        });
        List<Long> all = slots.stream().flatMap(List::stream).sorted().toList();
        for (int i = 1; i < all.size(); i++) {
            assertThat(all.get(i) - all.get(i - 1)).isGreaterThanOrEqualTo(1_000_000);
        }
    }
}
