package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;
import org.junit.jupiter.params.provider.MethodSource;

/** Two nodes that tell scripts the time, with clocks that differ. */
@Tag("once")
@Tag("slow")
class NodeClocksTest {

    private static final Duration APART = Duration.ofMillis(5);
    private static final int STEPS = 600;

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final ManualTicker behind = RedisServers.ticker();
    private final ManualTicker ahead = RedisServers.ticker();
    private final Random random = new Random(11);

    /** Rates at which clocks that are 5 ms apart make a difference. */
    static Stream<Limit> limits() {
        return Stream.of(
                Limit.of("a", Algorithm.TOKEN_BUCKET).rate("1000/s").burst(10).build(),
                Limit.of("b", Algorithm.TOKEN_BUCKET).rate("300/s").burst(2).build(),
                Limit.of("c", Algorithm.GCRA).rate("10000/s").burst(1).build(),
                Limit.of("d", Algorithm.SMOOTH_BURSTY).rate("1000/s").burst(10).build(),
                Limit.of("e", Algorithm.LEAKY_BUCKET).rate("1000/s").burst(10).build(),
                Limit.of("f", Algorithm.WARM_UP)
                        .rate("1000/s")
                        .warmup(Duration.ofMillis(20))
                        .build(),
                Limit.of("g", Algorithm.FIXED_WINDOW).rate("20/20ms").build(),
                Limit.of("h", Algorithm.FIXED_WINDOW).rate("2/2ms").build(),
                Limit.of("i", Algorithm.SLIDING_WINDOW).rate("20/20ms").build(),
                Limit.of("j", Algorithm.SLIDING_WINDOW).rate("4/2ms").slots(2).build(),
                Limit.of("k", Algorithm.SLIDING_LOG).rate("20/20ms").build(),
                Limit.of("l", Algorithm.SLIDING_LOG).rate("2/2ms").build());
    }

    /** The most permits in a closed window: as if it were longer by as much as the clocks are apart. */
    private static double most(Limit limit, long window) {
        double length = window + APART.toNanos();
        double perNano = (double) limit.rate().permits() / limit.rate().period().toNanos();
        long periods = (long) (length * perNano / limit.rate().permits());
        return switch (limit.algorithm()) {
            case TOKEN_BUCKET, GCRA -> limit.burst() + perNano * length;
            case SMOOTH_BURSTY -> limit.burst() + 1 + perNano * length;
            case FIXED_WINDOW -> limit.rate().permits() * (periods + 2.0);
            case SLIDING_WINDOW, SLIDING_LOG -> limit.rate().permits() * (periods + 1.0);
            default -> 1 + perNano * length;
        };
    }

    private List<RateLimiter> nodes(Limit limit) {
        ahead.setWallClock(
                java.time.Instant.EPOCH.plusNanos(behind.epochNanos()).plus(APART));
        return limiters(List.of(REDIS.nodeTimeBackend(behind), REDIS.nodeTimeBackend(ahead)), limit);
    }

    private static List<RateLimiter> limiters(List<RedisBackend> backends, Limit limit) {
        return backends.stream()
                .map(backend -> backend.limiter(limit, RedisLimitOptions.DEFAULTS))
                .toList();
    }

    private void advance(long nanos) {
        behind.advanceNanos(nanos);
        ahead.advanceNanos(nanos);
    }

    private void randomly() {
        switch (random.nextInt(12)) {
            case 0 -> advance(1000L * random.nextInt(60_000));
            case 1, 2, 3 -> advance(1000L * random.nextInt(3000));
            default -> {
                // At the same time.
            }
        }
    }

    private static void assertWithin(Limit limit, List<Long> dues) {
        dues.sort(Comparator.naturalOrder());
        assertThat(dues).hasSizeGreaterThan(100);
        for (int from = 0; from < dues.size(); from++) {
            for (int to = from; to < dues.size(); to++) {
                // A million windows: one that is right costs no assertion.
                if (to - from + 1 > most(limit, dues.get(to) - dues.get(from))) {
                    fail("%s: %d permits from %d to %d", limit, to - from + 1, dues.get(from), dues.get(to));
                }
            }
        }
    }

    @ParameterizedTest
    @MethodSource("limits")
    void admitNoMoreThanInAWindowLongerByTheDifference(Limit limit) {
        List<RateLimiter> nodes = nodes(limit);
        List<Long> dues = new ArrayList<>();
        for (int step = 0; step < STEPS; step++) {
            randomly();
            long maxWait = random.nextBoolean() ? 0 : 1000L * random.nextInt(20_000);
            Reservation next = nodes.get(random.nextInt(2)).reserve("k", 1, maxWait);
            assertThat(next.decision().source()).isNotEqualTo(Source.FALLBACK);
            if (!next.isRefused()) {
                if (random.nextInt(10) == 0) {
                    next.cancel();
                } else {
                    dues.add(behind.nanos() + next.waitNanos());
                }
            }
        }
        assertWithin(limit, dues);
    }

    /** The call of the node behind is decided by the time of the last one, which it cannot see. */
    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void refuseNothingThatIsWithinBudgetByTheNewerTime(Algorithm algorithm) {
        Limit.Builder limit = Limit.of("stale", algorithm).rate("10/10ms");
        if (algorithm == Algorithm.WARM_UP) {
            limit.warmup(Duration.ofMillis(5));
        }
        List<RateLimiter> nodes = nodes(limit.build());
        for (int round = 0; round < 20; round++) {
            long left = nodes.get(1).peek("k", 1, 0).remaining();
            for (long call = 0; call < left; call++) {
                assertThat(nodes.get(call == 0 ? 1 : 0).reserve("k", 1, 0).waitNanos())
                        .isZero();
                assertThat(nodes.get(0).peek("k", 1, 0).remaining())
                        .isEqualTo(nodes.get(1).peek("k", 1, 0).remaining());
            }
            advance(1000L * (1 + random.nextInt(4_000)));
        }
    }

    @Test
    void doNotForgetABudgetThatIsWholeByOneOfThemOnly() {
        Limit limit = Limit.of("whole", Algorithm.GCRA).rate("1000/s").burst(10).build();
        List<RateLimiter> nodes = nodes(limit);
        int admitted = 0;
        for (int round = 0; round < 10; round++) {
            for (int call = 0; call < 5; call++) {
                admitted += nodes.get(0).tryAcquire("k", 1) ? 1 : 0;
            }
            nodes.get(1).reserve("k", 1, 0).cancel();
            // Answered after what was given back.
            nodes.get(1).peek("k", 1, 0);
        }
        assertThat((double) admitted).isLessThanOrEqualTo(most(limit, 0));
    }

    @Test
    void admitNoMoreUnderSeveralLimitsEither() {
        Limit bucket =
                Limit.of("bucket", Algorithm.GCRA).rate("1000/s").burst(10).build();
        Limit log = Limit.of("log", Algorithm.SLIDING_LOG).rate("20/20ms").build();
        ahead.setWallClock(
                java.time.Instant.EPOCH.plusNanos(behind.epochNanos()).plus(APART));
        List<RedisBackend> backends = List.of(REDIS.nodeTimeBackend(behind), REDIS.nodeTimeBackend(ahead));
        List<RateLimiter> buckets = limiters(backends, bucket);
        List<RateLimiter> logs = limiters(backends, log);
        List<Long> dues = new ArrayList<>();
        for (int step = 0; step < STEPS; step++) {
            randomly();
            int node = random.nextInt(2);
            List<Claim> claims = List.of(Claim.of(buckets.get(node), "k", 1, 0), Claim.of(logs.get(node), "k", 1, 0));
            if (!AllOf.reserve(claims).isRefused()) {
                dues.add(behind.nanos());
            }
        }
        assertWithin(bucket, dues);
        assertWithin(log, dues);
    }

    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"CONCURRENCY", "ADAPTIVE", "DEFAULT"})
    void freezeNothingWhenOneIsFarBehind(Algorithm algorithm) {
        Limit.Builder limit = Limit.of("far", algorithm).rate("10/s");
        if (algorithm == Algorithm.WARM_UP) {
            limit.warmup(Duration.ofSeconds(1));
        }
        RateLimiter before = REDIS.nodeTimeBackend(behind).limiter(limit.build(), RedisLimitOptions.DEFAULTS);
        while (before.tryAcquire("k", 1)) {}
        ahead.setWallClock(
                java.time.Instant.EPOCH.plusNanos(behind.epochNanos()).minus(Duration.ofHours(1)));
        RateLimiter after = REDIS.nodeTimeBackend(ahead).limiter(limit.build(), RedisLimitOptions.DEFAULTS);
        ahead.advance(Duration.ofMillis(2100));
        assertThat(after.reserve("k", 1, 0).decision().source()).isEqualTo(Source.REDIS);
        ahead.advance(Duration.ofMillis(2100));
        assertThat(after.tryAcquire("k", 1)).isTrue();
    }
}
