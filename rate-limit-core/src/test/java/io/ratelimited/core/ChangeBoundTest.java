package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.internals.threads.CallbackThreads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** P10 on random series of changes: no change adds permits, whatever changes and in which order. */
@Tag("slow")
class ChangeBoundTest {

    private static final long SECOND = 1_000_000_000L;

    private final ManualTicker ticker = new ManualTicker(3, Instant.parse("2026-01-01T00:00:00Z"));

    private static Limit bucket(String rate, long burst) {
        return Limit.of("bound", Algorithm.TOKEN_BUCKET).rate(rate).burst(burst).build();
    }

    @Test
    void aBurstThatShrinksAndGrowsGivesNoSecondOne() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(bucket("10/s", 100), ticker, 10);
        long granted = 0;
        for (int round = 0; round < 1_000; round++) {
            limiter.update(bucket("10/s", 1));
            ticker.advanceNanos(SECOND / 1_000);
            limiter.update(bucket("10/s", 100));
            while (limiter.tryAcquire(null, 1)) {
                granted++;
            }
        }
        assertThat(granted).isLessThanOrEqualTo(110);
    }

    /** The small burst is full soon, so that a sweep would drop the key, and the large one a second time. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA"})
    void aBurstThatShrinksAndGrowsGivesNoSecondOneToAKeyThatWasIdleMeanwhile(Algorithm algorithm) {
        Limit.Builder limit = Limit.of("bound", algorithm).rate("1/s");
        for (boolean closes : new boolean[] {false, true}) {
            InMemoryRateLimiter limiter =
                    new InMemoryRateLimiter(limit.burst(100).build(), ticker, 10);
            assertThat(limiter.tryAcquire("key", 100)).isTrue();
            limiter.update(limit.burst(closes ? 2 : 1).build());
            if (closes) {
                limiter.update(limit.rate("0/s").build());
                limiter.update(limit.rate("1/s").burst(1).build());
            }
            sweepAfter(limiter, 50);
            limiter.update(limit.burst(100).build());
            assertThat(limiter.peek("key", 1, 0).remaining()).isOne();
            limiter.update(limit.burst(1).build());
            sweepAfter(limiter, 4_000);
            assertThat(limiter.knownKeys().map(Object::toString)).containsExactly("other");
        }
    }

    /** Whoever changes a rate again and again does not keep every key that ever came. */
    @Test
    void aChangeThatDoesNotShrinkTheBurstKeepsNoIdleKey() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(bucket("1/s", 10), ticker, 10);
        assertThat(limiter.tryAcquire("key", 10)).isTrue();
        limiter.update(bucket("20/s", 10));
        sweepAfter(limiter, 1);
        assertThat(limiter.knownKeys().map(Object::toString)).containsExactly("other");
    }

    private void sweepAfter(RateLimiter limiter, long seconds) {
        ticker.advance(Duration.ofSeconds(seconds));
        assertThat(limiter.tryAcquire("other", 1)).isTrue();
        Threads.until(CallbackThreads.SHARED::isQuiescent);
    }

    @Test
    void whatIsLeftIsNeverMoreThanItWasNorThanItsShareOfTheNewBurst() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(bucket("10/s", 100), ticker, 10);
        limiter.tryAcquire("key", 40);
        limiter.update(bucket("10/s", 10));
        assertThat(limiter.peek("key", 1, 0).remaining()).isEqualTo(6);
        limiter.update(bucket("10/s", 1_000));
        assertThat(limiter.peek("key", 1, 0).remaining()).isEqualTo(6);
        ticker.advanceNanos(SECOND);
        assertThat(limiter.peek("key", 1, 0).remaining()).isEqualTo(16);
    }

    @Test
    void aWindowThatGrowsHelpsAtOnceAndOneThatShrinksForgetsNothing() {
        for (Algorithm window : List.of(Algorithm.FIXED_WINDOW, Algorithm.SLIDING_WINDOW, Algorithm.SLIDING_LOG)) {
            InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                    Limit.of("bound", window).rate("10/s").build(), ticker, 10);
            limiter.tryAcquire("key", 3);
            limiter.update(Limit.of("bound", window).rate("1000/s").build());
            assertThat(limiter.peek("key", 1, 0).remaining()).isEqualTo(997);
            ticker.advance(Duration.ofMillis(1_100));
            assertThat(limiter.peek("key", 1, 0).remaining()).isEqualTo(1_000);
            limiter.tryAcquire("key", 500);
            limiter.update(Limit.of("bound", window).rate("10/s").build());
            assertThat(limiter.peek("key", 1, 0).remaining()).isZero();
            limiter.update(Limit.of("bound", window).rate("501/s").build());
            assertThat(limiter.peek("key", 1, 0).remaining()).isOne();
        }
    }

    /** 10/s from nothing, updated after a millisecond: a new key has what the millisecond has brought. */
    @Test
    void aLimitThatBeganEmptyGivesNewKeysNoBurstAfterAChange() {
        InMemoryRateLimiter limiter = new InMemoryRateLimiter(bursty("10/s", 100), ticker, 10);
        limiter.reserve("known", 1, 0).cancel();
        ticker.advanceNanos(SECOND / 1_000);
        limiter.update(bursty("100/s", 100));
        assertThat(limiter.peek("new", 1, 0).remaining()).isOne(); // on credit
        limiter.update(bursty("20/s", 50));
        for (int half = 0; half < 8; half++) {
            assertThat(limiter.peek("new", 1, 0).remaining())
                    .isEqualTo(limiter.peek("known", 1, 0).remaining())
                    .isEqualTo(1 + Math.min(50, half * 10L));
            ticker.advanceNanos(SECOND / 2);
        }
    }

    private static Limit bursty(String rate, long burst) {
        return Limit.of("bound", Algorithm.SMOOTH_BURSTY)
                .rate(rate)
                .burst(burst)
                .build();
    }

    private static Limit random(Random random, Algorithm algorithm) {
        Limit.Builder limit = Limit.of("bound", algorithm)
                .rate(new Rate(1 + random.nextInt(40), Duration.ofMillis(250L << random.nextInt(4))));
        if (algorithm.uses(Limit.Attribute.BURST) && random.nextInt(4) > 0) {
            limit.burst(1 + random.nextInt(100));
        }
        if (algorithm == Algorithm.WARM_UP) {
            limit.warmup(Duration.ofMillis(random.nextInt(3_000)));
        }
        return limit.build();
    }

    private static double perNano(Limit limit) {
        return (double) limit.rate().permits() / limit.rate().period().toNanos();
    }

    /** What may go at once: the next caller's credit is one call of one permit here. */
    private static long atOnce(Limit limit) {
        return switch (limit.algorithm()) {
            case TOKEN_BUCKET, GCRA -> limit.burst();
            case SMOOTH_BURSTY -> limit.burst() + 1;
            default -> 1;
        };
    }

    /** Every interval holds at most the integral of the rates in force and the largest burst: buckets and queues. */
    @ParameterizedTest
    @EnumSource(names = {"TOKEN_BUCKET", "GCRA", "SMOOTH_BURSTY", "LEAKY_BUCKET", "WARM_UP"})
    void noIntervalHoldsMoreThanTheRatesInForceAndTheLargestBurst(Algorithm algorithm) {
        changes(algorithm);
    }

    private static boolean inOneWindow(Algorithm window, long from, long to) {
        return window == Algorithm.FIXED_WINDOW ? from / SECOND == to / SECOND : to - from < SECOND;
    }

    /** P10 for windows: whatever the numbers and their order, for calls that go at once and calls that wait. */
    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void noWindowHoldsMoreThanTheLargestNumberInForceInIt(Algorithm window) {
        for (int seed = 0; seed < 150; seed++) {
            Random random = new Random(seed);
            int permits = 20;
            InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                    Limit.of("bound", window).rate(permits + "/s").build(), ticker, 10);
            // The time of each permit and the largest number since a window before its call.
            List<long[]> grants = new ArrayList<>();
            List<long[]> numbers = new ArrayList<>(List.of(new long[] {ticker.nanos(), permits}));
            for (int step = 0; step < 200; step++) {
                ticker.advanceNanos(random.nextInt(3) == 0 ? random.nextInt(300_000_000) : random.nextInt(3_000_000));
                long now = ticker.nanos();
                long asked = 1L + random.nextInt(4);
                long maxWait = random.nextInt(3) == 0 ? random.nextInt(1_500_000_000) : 0;
                Reservation call = limiter.reserve("key", asked, maxWait);
                for (long permit = 0; !call.isRefused() && permit < asked; permit++) {
                    grants.add(new long[] {now + call.waitNanos(), now});
                }
                if (random.nextInt(5) == 0) {
                    permits = 1 + random.nextInt(40);
                    limiter.update(
                            Limit.of("bound", window).rate(permits + "/s").build());
                    numbers.add(new long[] {now, permits});
                }
            }
            for (long[] last : grants) {
                List<long[]> same = grants.stream()
                        .filter(grant -> grant[0] <= last[0] && inOneWindow(window, grant[0], last[0]))
                        .toList();
                long first = same.stream().mapToLong(grant -> grant[1]).min().orElseThrow();
                long largest = 0;
                for (int i = 0; i < numbers.size(); i++) {
                    long until = i + 1 < numbers.size() ? numbers.get(i + 1)[0] : Long.MAX_VALUE;
                    if (until >= first && numbers.get(i)[0] <= last[0]) {
                        largest = Math.max(largest, numbers.get(i)[1]);
                    }
                }
                assertThat((long) same.size()).as(window + ", seed " + seed).isLessThanOrEqualTo(largest);
            }
            ticker.advance(Duration.ofHours(1));
        }
    }

    /** Permits that count from an instant on. */
    private record Spent(long instant, long permits) {}

    /** A call that has not ended. */
    private record Open(int key, Reservation reservation, long instant, long permits) {}

    /**
     * P10 with charges, and with keys that evict each other: whoever is granted a time finds room for all that was spent in the
     * window of that time, charges far above every number included.
     */
    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void whoeverIsAdmittedFindsAllThatWasSpentWhateverTheNumbersWere(Algorithm window) {
        int admitted = 0;
        for (int seed = 0; seed < 200; seed++) {
            Random random = new Random(seed);
            int permits = 20;
            InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                    Limit.of("bound", window).rate(permits + "/s").build(), ticker, 1 + random.nextInt(4));
            int keys = 1 + random.nextInt(4);
            List<List<Spent>> spent = Stream.generate(() -> (List<Spent>) new ArrayList<Spent>())
                    .limit(keys)
                    .toList();
            List<Open> open = new ArrayList<>();
            for (int step = 0; step < 200; step++) {
                ticker.advanceNanos(random.nextInt(3) == 0 ? random.nextInt(300_000_000) : random.nextInt(3_000_000));
                long now = ticker.epochNanos();
                int key = random.nextInt(keys);
                if (random.nextInt(5) == 0) {
                    permits = random.nextInt(3) == 0 ? 1 + random.nextInt(200) : 1 + random.nextInt(20);
                    limiter.update(
                            Limit.of("bound", window).rate(permits + "/s").build());
                } else if (random.nextInt(3) == 0 && !open.isEmpty()) {
                    Open ended = open.remove(random.nextInt(open.size()));
                    long cost = random.nextInt(random.nextInt(4) == 0 ? 150 : 8);
                    spent.get(ended.key).remove(new Spent(ended.instant, ended.permits));
                    if (random.nextInt(4) == 0) {
                        ended.reservation.cancel();
                    } else {
                        ended.reservation.settle(cost);
                        spent.get(ended.key).add(new Spent(ended.instant, Math.min(cost, ended.permits)));
                        spent.get(ended.key).add(new Spent(now, Math.max(0, cost - ended.permits)));
                    }
                } else {
                    long asked = 1L + random.nextInt(4);
                    Reservation call = limiter.reserve("key" + key, asked, random.nextInt(3) == 0 ? 3 * SECOND / 2 : 0);
                    if (!call.isRefused()) {
                        long instant = now + call.waitNanos();
                        long counted = spent.get(key).stream()
                                .filter(each -> each.instant <= instant && inOneWindow(window, each.instant, instant))
                                .mapToLong(Spent::permits)
                                .sum();
                        assertThat(counted + asked)
                                .as(window + ", seed " + seed + ", step " + step)
                                .isLessThanOrEqualTo(permits);
                        spent.get(key).add(new Spent(instant, asked));
                        open.add(new Open(key, call, instant, asked));
                        admitted++;
                    }
                }
            }
            ticker.advance(Duration.ofHours(1));
        }
        assertThat(admitted).isGreaterThan(5_000);
    }

    private void changes(Algorithm algorithm) {
        for (int seed = 0; seed < 150; seed++) {
            Random random = new Random(seed);
            Limit limit = random(random, algorithm);
            InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 10);
            long largest = atOnce(limit);
            List<Double> allowed = new ArrayList<>();
            double credit = 0;
            for (int step = 0; step < 150; step++) {
                long nanos = random.nextInt(3) == 0 ? random.nextInt(200_000_000) : random.nextInt(3_000_000);
                credit += nanos * perNano(limiter.limit());
                ticker.advanceNanos(nanos);
                int calls = random.nextInt(4) == 0 ? 200 : random.nextInt(3);
                while (calls-- > 0 && limiter.tryAcquire("key", 1)) {
                    allowed.add(credit);
                }
                for (int change = random.nextInt(3); change > 0; change--) {
                    limit = random(random, algorithm);
                    largest = Math.max(largest, atOnce(limit));
                    limiter.update(limit);
                }
            }
            double open = Double.NEGATIVE_INFINITY;
            for (int i = 0; i < allowed.size(); i++) {
                double time = allowed.get(i);
                open = Math.max(open, time - i);
                assertThat(i + 1 - time + open)
                        .as(algorithm + ", seed " + seed + ", grant " + i)
                        .isLessThanOrEqualTo(largest + 1e-6);
            }
            ticker.advance(Duration.ofHours(1));
        }
    }
}
