package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.internals.connection.KeyNames;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;

/** Two nodes with different limits on one key, as in every rolling deployment: they admit no more than the larger limit. */
@Tag("once")
@Tag("slow")
class TwoLimitsTest {

    private static final int STEPS = 700;

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final ManualTicker ticker = RedisServers.ticker();

    record Pair(Limit one, Limit other) {}

    private static Limit.Builder bucket(String rate, long burst) {
        return Limit.of("two", Algorithm.TOKEN_BUCKET).rate(rate).burst(burst);
    }

    private static Limit.Builder limit(Algorithm algorithm, String rate) {
        return Limit.of("two", algorithm).rate(rate);
    }

    private static Pair pair(Limit.Builder one, Limit.Builder other) {
        return new Pair(one.build(), other.build());
    }

    static Stream<Pair> pairs() {
        return Stream.of(
                pair(bucket("100/s", 1000), bucket("200/s", 20)),
                pair(bucket("100/s", 100), bucket("100/s", 10)),
                pair(limit(Algorithm.GCRA, "300/s").burst(7), limit(Algorithm.GCRA, "70/s")),
                pair(bucket("70/s", 300), bucket("70/s", 1)),
                pair(bucket("7/s", 50), bucket("11/s", 49)),
                pair(limit(Algorithm.SMOOTH_BURSTY, "100/s"), limit(Algorithm.SMOOTH_BURSTY, "10/s")),
                pair(limit(Algorithm.LEAKY_BUCKET, "100/s"), limit(Algorithm.LEAKY_BUCKET, "20/s")),
                pair(limit(Algorithm.FIXED_WINDOW, "50/s"), limit(Algorithm.FIXED_WINDOW, "10/s")),
                pair(limit(Algorithm.SLIDING_WINDOW, "50/s"), limit(Algorithm.SLIDING_WINDOW, "10/s")),
                pair(limit(Algorithm.SLIDING_LOG, "50/s"), limit(Algorithm.SLIDING_LOG, "10/s")));
    }

    private static double perNano(Limit limit) {
        return (double) limit.rate().permits() / limit.rate().period().toNanos();
    }

    /** The most permits of one limit in a closed interval. */
    private static double most(Limit limit, long nanos) {
        double perNano = perNano(limit);
        return switch (limit.algorithm()) {
            case TOKEN_BUCKET, GCRA -> limit.burst() + perNano * nanos;
            case SMOOTH_BURSTY -> limit.burst() + 1 + perNano * nanos;
            case FIXED_WINDOW, SLIDING_WINDOW, SLIDING_LOG ->
                limit.rate().permits() * (2.0 + perNano * nanos / limit.rate().permits());
            default -> 1 + perNano * nanos;
        };
    }

    @ParameterizedTest
    @MethodSource("pairs")
    void whateverTheTurnsOfTheNodesTheyAdmitNoMoreThanTheLargerLimit(Pair pair) {
        List<RateLimiter> nodes = List.of(
                REDIS.backend(ticker).limiter(pair.one, RedisLimitOptions.DEFAULTS),
                REDIS.backend(ticker).limiter(pair.other, RedisLimitOptions.DEFAULTS));
        Random random = new Random(5);
        List<Admitted> admitted = new ArrayList<>();
        long permitted = 0;
        for (int step = 0; step < STEPS; step++) {
            if (random.nextInt(3) == 0) {
                ticker.advanceNanos(1000L * (random.nextInt(40) == 0 ? 300_000 : random.nextInt(6_000)));
            }
            int node = random.nextInt(2);
            long permits = node == 0 ? permits(pair.one, random) : 1;
            if (nodes.get(node).tryAcquire("k", permits)) {
                admitted.add(new Admitted(ticker.nanos(), permits));
                permitted += permits;
            }
        }
        // Nor do they starve each other: a conversion leaves what is left.
        assertThat((double) permitted)
                .isGreaterThan(0.2 * Math.min(perNano(pair.one), perNano(pair.other)) * ticker.nanos());
        for (int from = 0; from < admitted.size(); from++) {
            double sum = 0;
            for (Admitted next : admitted.subList(from, admitted.size())) {
                long nanos = next.at - admitted.get(from).at;
                sum += next.permits;
                assertThat(sum)
                        .as("%s: from %d to %d", pair, admitted.get(from).at, next.at)
                        .isLessThanOrEqualTo(Math.max(most(pair.one, nanos), most(pair.other, nanos)) + 1e-6);
            }
        }
    }

    /** Otherwise it would be full for the larger burst as soon as it is full for the smaller one. */
    @Test
    void aKeyLivesUntilItIsFullByTheLargerBurst() {
        RateLimiter large = REDIS.backend(ticker).limiter(bucket("1/s", 100).build(), RedisLimitOptions.DEFAULTS);
        RateLimiter small = REDIS.backend(ticker).limiter(bucket("1/s", 1).build(), RedisLimitOptions.DEFAULTS);
        assertThat(large.tryAcquire("k", 100)).isTrue();
        for (int i = 0; i < 3; i++) {
            assertThat(small.tryAcquire("k", 1)).isEqualTo(i > 0);
            long lives = REDIS.server().ask(redis -> redis.pttl(REDIS.keyOf("two", "k")));
            assertThat(lives - 3_600_000).as("beside what tests add").isGreaterThan(95_000);
            ticker.advance(Duration.ofSeconds(2));
        }
    }

    /** As during a rolling deployment: each node by its own number, over what both have counted. */
    @ParameterizedTest
    @CsvSource({
        "FIXED_WINDOW, 10000, 11000",
        "SLIDING_WINDOW, 10000, 11000",
        "SLIDING_LOG, 10000, 11000",
        "FIXED_WINDOW, 1000, 1100",
        "SLIDING_WINDOW, 1000, 1100",
        "SLIDING_LOG, 1000, 1100"
    })
    void nodesWithTwoNumbersInTurnAdmitTheLargerOne(Algorithm algorithm, int small, int large) {
        List<RateLimiter> nodes = List.of(
                REDIS.backend(ticker).limiter(limit(algorithm, small + "/d").build(), RedisLimitOptions.DEFAULTS),
                REDIS.backend(ticker).limiter(limit(algorithm, large + "/d").build(), RedisLimitOptions.DEFAULTS));
        int permits = large / 250;
        int admitted = 0;
        for (int call = 0; call < 600; call++) {
            ticker.advanceNanos(1_000_000_000);
            admitted += nodes.get(call % 2).tryAcquire("k", permits) ? permits : 0;
        }
        assertThat(admitted).isBetween(large - permits + 1, large);
    }

    /** Three nodes whose numbers change all the time, each by itself; the twin is a list of the times of all permits. */
    @ParameterizedTest
    @EnumSource(names = {"FIXED_WINDOW", "SLIDING_WINDOW", "SLIDING_LOG"})
    void nodesThatDisagreeDecideOverOneCount(Algorithm algorithm) {
        Random random = new Random(23);
        List<RateLimiter> nodes = new ArrayList<>();
        for (int node = 0; node < 3; node++) {
            nodes.add(REDIS.backend(ticker)
                    .limiter(limit(algorithm, 20 + node + "/s").build(), RedisLimitOptions.DEFAULTS));
        }
        List<Long> spent = new ArrayList<>();
        for (int step = 0; step < 800; step++) {
            if (random.nextInt(3) == 0) {
                ticker.advanceNanos(1_000L * random.nextInt(200_000));
            }
            RateLimiter node = nodes.get(random.nextInt(3));
            if (random.nextInt(8) == 0) {
                node.update(limit(algorithm, 1 + random.nextInt(60) + "/s").build());
            }
            long micros = ticker.nanos() / 1_000;
            long first = switch (algorithm) {
                case FIXED_WINDOW -> micros - micros % 1_000_000;
                case SLIDING_WINDOW -> micros - micros % 100_000 - 1_000_000;
                default -> micros - 999_999;
            };
            long counted = spent.stream().filter(time -> time >= first).count();
            long left = Math.max(0, node.limit().rate().permits() - counted);
            long permits = 1L + random.nextInt(5);
            String where = "step " + step + " under " + node.limit();
            assertThat(node.peek("k", 1, 0).remaining()).as(where).isEqualTo(left);
            Reservation call = node.reserve("k", permits, 0);
            assertThat(call.isRefused()).as(where).isEqualTo(permits > left);
            if (!call.isRefused() && random.nextInt(4) == 0) {
                permits += random.nextInt(4);
                call.settle(permits);
                // Behind the charge, for which nobody waits.
                node.peek("k", 1, 0);
            }
            for (long permit = 0; !call.isRefused() && permit < permits; permit++) {
                spent.add(micros);
            }
        }
        assertThat(spent).hasSizeGreaterThan(500);
    }

    /** Nothing is rewritten for the other number: beside one new entry the log stays as it is. */
    @Test
    void aTurnOfTheNodesAddsOneEntryToALog() {
        List<RateLimiter> nodes = List.of(
                REDIS.backend(ticker)
                        .limiter(limit(Algorithm.SLIDING_LOG, "1000/d").build(), RedisLimitOptions.DEFAULTS),
                REDIS.backend(ticker)
                        .limiter(limit(Algorithm.SLIDING_LOG, "1100/d").build(), RedisLimitOptions.DEFAULTS));
        for (int call = 0; call < 40; call++) {
            ticker.advanceNanos(1_000_000);
            List<String> before = log();
            assertThat(nodes.get(call % 2).tryAcquire("k", 1)).isTrue();
            List<String> after = log();
            assertThat(after).hasSize(call + 1);
            assertThat(after.subList(0, call)).isEqualTo(before);
            // A refusal and a charge of the smaller number take no entry away.
            assertThat(nodes.get(call % 2).tryAcquire("k", 1_100)).isFalse();
            assertThat(log()).isEqualTo(after);
        }
    }

    /** What a node with a small number charges takes nothing from what others have counted. */
    @Test
    void aChargeOfTheSmallerLimitForgetsNoEntryOfTheLarger() {
        RateLimiter small = REDIS.backend(ticker)
                .limiter(limit(Algorithm.SLIDING_LOG, "10/d").build(), RedisLimitOptions.DEFAULTS);
        RateLimiter large = REDIS.backend(ticker)
                .limiter(limit(Algorithm.SLIDING_LOG, "1000/d").build(), RedisLimitOptions.DEFAULTS);
        Reservation call = small.reserve("k", 1, 0);
        assertThat(large.tryAcquire("k", 900)).isTrue();
        call.settle(50);
        assertThat(large.peek("k", 1, 0).remaining()).isBetween(50L, 99L);
    }

    private static List<String> log() {
        String pattern = new KeyNames("rl").ofLimit("two", "").of("k") + "*";
        String key = REDIS.server().ask(redis -> redis.keys(pattern)).stream()
                .findFirst()
                .orElse("");
        List<String> entries = REDIS.server().ask(redis -> redis.lrange(key, 0, -1));
        return entries.isEmpty() ? entries : entries.subList(1, entries.size());
    }

    private record Admitted(long at, long permits) {}

    /** Of one node now and then many, so that what a conversion adds is used; one where many would go on credit. */
    private static long permits(Limit limit, Random random) {
        boolean many = limit.algorithm() == Algorithm.TOKEN_BUCKET || limit.algorithm() == Algorithm.GCRA;
        return many && random.nextInt(4) == 0 ? 1L + random.nextInt((int) limit.burst() / 3 + 1) : 1;
    }
}
