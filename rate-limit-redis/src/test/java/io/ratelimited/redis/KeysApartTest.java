package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Every name and every key has a budget of its own, which means the same on every node. */
class KeysApartTest {

    /** Two halves of pairs that stand alone, beside what they are often replaced by. */
    private static final List<String> ALIKE =
            List.of("a?b", "a\uD800b", "a\uD801b", "a\uDC00b", "a\uFFFDb", "a%D800b", "a%uD800b", "a\\uD800b");

    private static final List<String> NAMES = List.of("~probe", "~nodes", "probe");

    /** Those of the calls that open a breaker, and what the backend itself might use. */
    private static final List<String> CALLERS = Stream.concat(
                    IntStream.range(0, 8).mapToObj(i -> "witness-" + i),
                    Stream.of("witness", "~nodes", "nodes", "~probe", "probe", "~"))
            .toList();

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private static int takeAll(RateLimiter limiter, Object key) {
        int taken = 0;
        while (limiter.tryAcquire(key, 1)) {
            taken++;
        }
        return taken;
    }

    /** Whichever call opens the breaker: a probe writes beside the key of this call, and what it writes goes by itself. */
    @Test
    void anOutageGivesNoLimitPermitsWhateverItsName() throws Exception {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        RedisBackend near = REDIS.backend(FarNode.PATIENT.timeout(Duration.ofSeconds(20)));
        far.awaitRedis();
        assertThat(takeAllOfEveryName(near)).isEqualTo(5 * NAMES.size() * CALLERS.size());
        far.cut();
        far.heal();
        Thread.sleep(1100);
        assertThat(takeAllOfEveryName(near)).isZero();
    }

    private static int takeAllOfEveryName(RedisBackend backend) {
        return NAMES.stream()
                .map(name ->
                        Limit.of(name, Algorithm.TOKEN_BUCKET).rate("5/3650d").build())
                .mapToInt(limit -> takeAllOfEveryCaller(backend.limiter(limit, RedisLimitOptions.DEFAULTS)))
                .sum();
    }

    private static int takeAllOfEveryCaller(RateLimiter limiter) {
        return CALLERS.stream().mapToInt(caller -> takeAll(limiter, caller)).sum();
    }

    @Test
    void everyTextHasABudgetOfItsOwn() {
        RedisBackend backend = REDIS.backend(FarNode.PATIENT.timeout(Duration.ofSeconds(20)));
        Limit limit = Limit.of("text", Algorithm.TOKEN_BUCKET).rate("2/3650d").build();
        RateLimiter limiter = backend.limiter(limit, RedisLimitOptions.DEFAULTS);
        assertThat(ALIKE).allSatisfy(key -> assertThat(takeAll(limiter, key)).isEqualTo(2));
        assertThat(ALIKE)
                .allSatisfy(tier -> assertThat(
                                takeAll(backend.limiter(limit, RedisLimitOptions.DEFAULTS.tier(tier)), "k"))
                        .isEqualTo(2));
        assertThat(ALIKE)
                .allSatisfy(name -> assertThat(takeAll(
                                backend.limiter(
                                        Limit.of(name, Algorithm.TOKEN_BUCKET)
                                                .rate("2/3650d")
                                                .build(),
                                        RedisLimitOptions.DEFAULTS),
                                "k"))
                        .isEqualTo(2));
    }

    @Test
    void smoothBurstyMeansTheSameOnANodeThatIsNewAndOnOneThatIsOld() {
        Limit limit = Limit.of("smooth", Algorithm.SMOOTH_BURSTY)
                .rate("1/h")
                .burst(20)
                .build();
        ManualTicker ticker = new ManualTicker();
        RateLimiter old = node(ticker).limiter(limit, RedisLimitOptions.DEFAULTS);
        ticker.advance(Duration.ofDays(30));
        RateLimiter fresh = node(ticker).limiter(limit, RedisLimitOptions.DEFAULTS);
        int onOld = takeAll(old, "first seen by the old node");
        int onFresh = takeAll(fresh, "first seen by the new node");
        System.out.printf("KEYS smooth bursty: %d permits on a new node, %d on an old one%n", onFresh, onOld);
        assertThat(onFresh).isEqualTo(onOld);
    }

    private static RedisBackend node(ManualTicker ticker) {
        return REDIS.backend(FarNode.PATIENT.ticker(ticker).timeout(Duration.ofSeconds(20)));
    }
}
