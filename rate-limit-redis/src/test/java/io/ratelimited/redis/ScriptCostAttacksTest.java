package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.EnumSource.Mode;

/** Callers choose large numbers: the commands of a script and the bytes of a key grow with calls, and never with permits. */
@Tag("slow")
class ScriptCostAttacksTest {

    private static final int MANY = 100_000;

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final ManualTicker ticker = RedisServers.ticker();

    private static Limit limit(Algorithm algorithm) {
        Limit.Builder limit = Limit.of("costly", algorithm);
        return switch (algorithm) {
            case CONCURRENCY -> limit.maxConcurrent(MANY).build();
            case WARM_UP ->
                limit.rate(MANY + "/h").warmup(Duration.ofMinutes(1)).build();
            default -> limit.rate(MANY + "/h").build();
        };
    }

    /** Commands of all kinds that the server has run, those of scripts as well. */
    private static long commands() {
        String stats = REDIS.server().ask(redis -> redis.info("commandstats"));
        return stats.lines()
                .filter(line -> line.startsWith("cmdstat_") && !line.startsWith("cmdstat_info"))
                .mapToLong(line -> Long.parseLong(line.replaceFirst("[^:]*:calls=(\\d+).*", "$1")))
                .sum();
    }

    private static Map<String, Long> cost(Algorithm algorithm, RateLimiter limiter, String key, long permits) {
        Map<String, Long> cost = new TreeMap<>();
        Reservation[] call = new Reservation[1];
        long before = commands();
        call[0] = limiter.reserve(key, permits, 0);
        cost.put("commands to take", commands() - before);
        cost.put(
                "bytes",
                REDIS.server()
                        .ask(redis ->
                                redis.memoryUsage(REDIS.keyOf(limiter.limit().name(), key))));
        before = commands();
        limiter.peek(key, permits, 0);
        limiter.reserve(key, permits, 0).cancel();
        call[0].cancel();
        limiter.peek(key, permits, 0);
        cost.put("commands to ask again and give back", commands() - before);
        assertThat(call[0].isRefused()).as("%s", algorithm).isFalse();
        return cost;
    }

    @ParameterizedTest
    @EnumSource(
            mode = Mode.EXCLUDE,
            names = {"ADAPTIVE", "DEFAULT"})
    void aCallOfManyPermitsCostsAsACallOfTwo(Algorithm algorithm) {
        RateLimiter limiter = REDIS.backend(ticker).limiter(limit(algorithm), RedisLimitOptions.DEFAULTS);
        limiter.reserve("warm", 2, 0).cancel();
        Map<String, Long> two = cost(algorithm, limiter, "a", 2);
        Map<String, Long> many = cost(algorithm, limiter, "b", MANY);
        two.forEach((what, number) ->
                assertThat(many.get(what)).as("%s of %s", what, algorithm).isLessThanOrEqualTo(number + 32));
    }

    private List<Reservation> singles(RateLimiter limiter, int count) {
        List<Reservation> calls = new ArrayList<>();
        for (int call = 0; call < count; call++) {
            ticker.advance(Duration.ofNanos(1_000));
            calls.add(limiter.reserve("k", 1, 0));
        }
        return calls;
    }

    /** A refusal says when the last of the calls that have to leave will have left. */
    @Test
    void aScriptLooksAtABoundedPartOfALog() {
        RateLimiter limiter = REDIS.backend(ticker).limiter(limit(Algorithm.SLIDING_LOG), RedisLimitOptions.DEFAULTS);
        singles(limiter, 2_000);
        long before = commands();
        Reservation all = limiter.reserve("k", MANY, 0);
        assertThat(commands() - before).isLessThan(100);
        assertThat(all.isRefused()).isTrue();
        assertThat(all.decision().retryAfter()).isEqualTo(Duration.ofHours(1));
        ticker.advance(all.decision().retryAfter().minusNanos(1_000));
        assertThat(limiter.reserve("k", MANY, 0).isRefused()).isTrue();
        ticker.advance(Duration.ofNanos(1_000));
        assertThat(limiter.reserve("k", MANY, 0).isRefused()).isFalse();
    }

    /** However many there are, and whatever they have given back. */
    @Test
    void callsThatHaveLeftALogRefuseNobody() {
        RateLimiter limiter = REDIS.backend(ticker).limiter(limit(Algorithm.SLIDING_LOG), RedisLimitOptions.DEFAULTS);
        List<Reservation> calls = singles(limiter, 6_000);
        calls.get(700).cancel();
        calls.get(5_998).cancel();
        ticker.advance(Duration.ofMinutes(59));
        limiter.reserve("k", 1, 0);
        ticker.advance(Duration.ofMinutes(1).minusNanos(1_000));
        long before = commands();
        assertThat(limiter.peek("k", MANY, 0).remaining()).isEqualTo(MANY - 2);
        assertThat(limiter.reserve("k", MANY - 2, 0).isRefused()).isFalse();
        assertThat(commands() - before).isLessThan(200);
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isTrue();
        ticker.advance(Duration.ofNanos(1_000));
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isFalse();
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isTrue();
    }

    /** A refund finds its call by its number. */
    @Test
    void aRefundOfOneOfManyCallsLooksAtFewOfThem() {
        RateLimiter limiter = REDIS.backend(ticker).limiter(limit(Algorithm.SLIDING_LOG), RedisLimitOptions.DEFAULTS);
        List<Reservation> calls = singles(limiter, 2_000);
        long before = commands();
        calls.get(1_234).cancel();
        assertThat(limiter.peek("k", 1, 0).remaining()).isEqualTo(MANY - 1_999);
        assertThat(commands() - before).isLessThan(60);
    }
}
