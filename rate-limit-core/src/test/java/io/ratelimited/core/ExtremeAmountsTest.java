package io.ratelimited.core;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.math.BigInteger;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Reservations, charges and refunds of the largest amounts, in any order: no sum of them becomes a gift. A twin that counts
 * without bounds, and gives back whatever was not used, always holds at least as much.
 */
class ExtremeAmountsTest {

    private static final long MAX = Long.MAX_VALUE;

    /** One permit takes a whole number of nanoseconds, so that the twin has no fractions. */
    static Stream<Limit> limits() {
        List<Limit.Builder> limits = new ArrayList<>();
        for (Algorithm algorithm :
                List.of(Algorithm.TOKEN_BUCKET, Algorithm.GCRA, Algorithm.LEAKY_BUCKET, Algorithm.SMOOTH_BURSTY)) {
            limits.add(Limit.of("extreme", algorithm).rate("10/s"));
            // A full bucket takes 28 years, near the longest time that there is.
            limits.add(Limit.of("extreme", algorithm).rate("1/d").burst(10_000));
            limits.add(Limit.of("extreme", algorithm).rate("1000000000/s").burst(1L << 40));
        }
        limits.add(Limit.of("extreme", Algorithm.WARM_UP).rate("10/s").warmup(Duration.ofSeconds(1)));
        limits.add(Limit.of("extreme", Algorithm.WARM_UP).rate("1/d").warmup(Duration.ZERO));
        for (Algorithm algorithm : List.of(Algorithm.FIXED_WINDOW, Algorithm.SLIDING_WINDOW, Algorithm.SLIDING_LOG)) {
            limits.add(Limit.of("extreme", algorithm).rate("10/s"));
            limits.add(Limit.of("extreme", algorithm).rate("1000000/d"));
        }
        return limits.stream().map(Limit.Builder::build);
    }

    /** A call as the twin knows it: when its permits count, how many it has, and the reservation while it can be settled. */
    private record Call(Reservation reservation, long instant, BigInteger permits) {}

    /** Permits of a limit, counted without bounds. */
    private static final class Twin {

        private final Limit limit;
        /** Nanoseconds of a permit. */
        private final BigInteger unit;
        /** What a bucket can hold, in nanoseconds. */
        private final BigInteger depth;
        /** What a bucket holds; below 0 in debt. */
        private BigInteger level;

        private final List<Call> used = new ArrayList<>();

        private Twin(Limit limit) {
            this.limit = limit;
            this.unit = BigInteger.valueOf(
                    limit.rate().period().toNanos() / limit.rate().permits());
            this.depth = switch (limit.algorithm()) {
                case TOKEN_BUCKET, GCRA -> unit.multiply(BigInteger.valueOf(limit.burst()));
                case SMOOTH_BURSTY ->
                    limit.burst() == 0 || limit.storesOneSecond()
                            ? BigInteger.valueOf(1_000_000_000L)
                            : unit.multiply(BigInteger.valueOf(limit.burst()));
                default -> BigInteger.ZERO;
            };
            this.level = limit.algorithm() == Algorithm.SMOOTH_BURSTY ? BigInteger.ZERO : depth;
        }

        private void pass(long nanos) {
            level = level.add(BigInteger.valueOf(nanos)).min(depth);
        }

        /** Takes permits, or gives them back if the number is negative. */
        private void take(BigInteger permits, long instant) {
            level = level.subtract(permits.multiply(unit)).min(depth);
            used.add(new Call(null, instant, permits));
        }

        /** No limiter shows more. */
        private BigInteger remaining(long now) {
            if (limit.algorithm().family() == Family.WINDOW) {
                long period = limit.rate().period().toNanos();
                long begin = limit.algorithm().followsCalendar() ? now - Math.floorMod(now, period) : now - period + 1;
                return used.stream()
                        .filter(call -> call.instant >= begin)
                        .map(Call::permits)
                        .reduce(BigInteger.valueOf(limit.rate().permits()), BigInteger::subtract)
                        .max(BigInteger.ZERO);
            }
            if (limit.algorithm().family() == Family.BUCKET) {
                return level.max(BigInteger.ZERO).divide(unit);
            }
            return level.signum() < 0 ? BigInteger.ZERO : level.divide(unit).add(BigInteger.ONE);
        }
    }

    private static long amount(Random random, Limit limit) {
        long capacity = Math.min(limit.capacity(), 1L << 40);
        return switch (random.nextInt(9)) {
            case 0 -> 0;
            case 1 -> 1;
            case 2 -> capacity;
            case 3 -> Math.max(1, capacity / 2);
            case 4 -> MAX;
            case 5 -> MAX - random.nextInt(3);
            case 6 -> MAX / 2 + random.nextInt(3);
            case 7 -> 1L << random.nextInt(63);
            default -> random.nextInt(20);
        };
    }

    @ParameterizedTest
    @MethodSource("limits")
    void noSumOfAmountsIsAGift(Limit limit) {
        for (int seed = 0; seed < 60; seed++) {
            Random random = new Random(seed);
            ManualTicker ticker = new ManualTicker(random.nextInt(3) == 0 ? MAX - 5 : 0, Instant.ofEpochSecond(86_400));
            RateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 10);
            Twin twin = new Twin(limit);
            List<Call> open = new ArrayList<>();
            for (int step = 0; step < 150; step++) {
                String where = limit + ", seed " + seed + ", step " + step;
                if (random.nextInt(6) == 0) {
                    long nanos = random.nextInt(2_000) * (limit.rate().period().toNanos() / 1_000);
                    ticker.advanceNanos(nanos);
                    twin.pass(nanos);
                }
                long now = ticker.epochNanos();
                if (open.isEmpty() || random.nextInt(5) < 2) {
                    long permits = amount(random, limit);
                    long maxWait = random.nextInt(3) == 0 ? MAX : 0;
                    BigInteger before = twin.remaining(now);
                    Reservation call = limiter.reserve("key", permits, maxWait);
                    if (!call.isRefused()) {
                        BigInteger taken = BigInteger.valueOf(permits);
                        boolean paysFirst = limit.algorithm().family() != Family.PACED;
                        if (permits > 0 && call.waitNanos() == 0) {
                            assertThat(before).as(where).isGreaterThanOrEqualTo(paysFirst ? taken : BigInteger.ONE);
                        }
                        twin.take(taken, now + call.waitNanos());
                        open.add(new Call(call, now + call.waitNanos(), taken));
                    }
                } else {
                    Call call = open.remove(random.nextInt(open.size()));
                    boolean cancels = random.nextInt(4) == 0;
                    BigInteger cost = BigInteger.valueOf(cancels ? 0 : amount(random, limit));
                    if (cancels) {
                        call.reservation.cancel();
                    } else {
                        call.reservation.settle(cost.longValueExact());
                    }
                    BigInteger excess = cost.subtract(call.permits);
                    twin.take(excess, excess.signum() > 0 ? now : call.instant);
                }
                long remaining = limiter.peek("key", 1, 0).remaining();
                assertThat(remaining).as(where).isNotNegative();
                assertThat(BigInteger.valueOf(remaining)).as(where).isLessThanOrEqualTo(twin.remaining(now));
            }
        }
    }

    /** Each call is given back from before another one, 27 years of refill at a time: what is too much in all stays taken. */
    @Test
    void refundsBeforeLaterCallsAddUpToNoGift() {
        for (Algorithm algorithm : List.of(Algorithm.TOKEN_BUCKET, Algorithm.GCRA)) {
            RateLimiter limiter = new InMemoryRateLimiter(
                    Limit.of("bucket", algorithm).rate("1/d").burst(10_000).build(), new ManualTicker(), 10);
            limiter.tryAcquire("key", 1);
            long kept = 1;
            long left = 9_999;
            for (int i = 0; i < 40 && left > 1; i++) {
                Reservation large = limiter.reserve("key", left - 1, 0);
                Reservation small = limiter.reserve("key", 1, 0);
                if (i % 3 == 0) {
                    small.settle(1);
                    kept++;
                }
                large.settle(0);
                if (i % 3 != 0) {
                    small.cancel();
                }
                left = limiter.peek("key", 1, 0).remaining();
                assertThat(left).as(algorithm + ", round " + i).isBetween(0L, 10_000 - kept);
            }
            assertThat(kept).isGreaterThan(2);
        }
    }

    /** Whoever waits behind an endless debt is not let go together with all others who do. */
    @Test
    void callersBehindTheLargestChargeStillWaitForEachOther() {
        for (Algorithm algorithm : List.of(Algorithm.FIXED_WINDOW, Algorithm.SLIDING_WINDOW, Algorithm.SLIDING_LOG)) {
            RateLimiter limiter = new InMemoryRateLimiter(
                    Limit.of("log", algorithm).rate("10/s").build(),
                    new ManualTicker(0, Instant.ofEpochSecond(86_400)),
                    10);
            for (int i = 0; i < 3; i++) {
                limiter.reserve("key", 0, 0).settle(MAX);
            }
            List<Long> waits = new ArrayList<>();
            for (int i = 0; i < 30; i++) {
                waits.add(limiter.reserve("key", 1, MAX).waitNanos());
            }
            for (int i = 10; i < waits.size(); i++) {
                assertThat(waits.get(i) - waits.get(i - 10))
                        .as(algorithm + ", call " + i)
                        .isGreaterThanOrEqualTo(Duration.ofSeconds(1).toNanos());
            }
        }
    }
}
