package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisLimitOptions;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.luaj.vm2.LuaString;

/** States of keys as another version, or anyone who can write to Redis, may leave them: read by the shipped scripts. */
@Tag("fuzz")
class ForeignStateFuzzTest {

    /** A node remembers keys and alarms, and time stands still here: one that has seen so many is replaced, with its server. */
    private static final int KEYS_OF_A_NODE = 10_000;

    private static DirectServer server = new DirectServer();
    private static RedisBackend backend = server.node("one");
    private static List<RateLimiter> limiters = limiters();

    /** Nothing is remembered of a key by which no call was made before. */
    private static int keys;

    private static List<RateLimiter> limiters() {
        return Stream.of(Algorithm.values())
                .filter(algorithm -> algorithm != Algorithm.ADAPTIVE && algorithm != Algorithm.DEFAULT)
                .flatMap(ForeignStateFuzzTest::limits)
                .map(limit -> backend.limiter(limit, RedisLimitOptions.DEFAULTS))
                .toList();
    }

    private static void replaceNode() {
        backend.close();
        server = new DirectServer();
        backend = server.node("one");
        limiters = limiters();
    }

    private static Stream<Limit> limits(Algorithm algorithm) {
        String name = algorithm.name();
        return algorithm == Algorithm.CONCURRENCY
                ? Stream.of(Limit.of(name, algorithm).maxConcurrent(5).build())
                : Stream.of(
                        limit(name, algorithm).build(),
                        limit(name + "_BLOCK", algorithm)
                                .block(Duration.ofMinutes(1))
                                .build());
    }

    private static Limit.Builder limit(String name, Algorithm algorithm) {
        Limit.Builder limit = Limit.of(name, algorithm).rate("5/h");
        return algorithm == Algorithm.WARM_UP ? limit.warmup(Duration.ofHours(1)) : limit;
    }

    @Timeout(10)
    @FuzzTest
    void aStateIsReadOrCountsAsAKeyNeverSeenAndNobodyElseIsHit(byte[] input) {
        if (input.length < 2) {
            return;
        }
        if (keys % KEYS_OF_A_NODE == KEYS_OF_A_NODE - 1) {
            replaceNode();
        }
        long errors = backend.health().errors();
        RateLimiter limiter = limiters.get(Math.floorMod(input[0], limiters.size()));
        String key = "k" + keys++;
        server.store().clear();
        Reservation first = limiter.reserve(key, 1, 0);
        for (LuaString name : server.store().keys()) {
            Object value = ForeignValues.of(
                    Arrays.copyOfRange(input, 1, input.length), server.store().get(name));
            if (value != null) {
                server.store().put(name, value);
            }
        }
        check(limiter.peek(key, 1, 0));
        Reservation second = limiter.reserve(key, 1, 0);
        check(second.decision());
        if (!limiter.limit().algorithm().countsCallsInFlight()) {
            first.settle(2);
        }
        second.release();
        check(limiter.reserve(key, 1, 0).decision());
        assertThat(backend.health().errors()).isEqualTo(errors);
    }

    /** Anyone who can write to Redis can also give permits away, by deleting the key. */
    private static void check(Decision decision) {
        // Where Redis loses a block with a state that it cannot read, it holds at the instance that knows it.
        assertThat(decision.source())
                .as(backend.health().lastError())
                .isIn(Source.REDIS, decision.blocked() ? Source.DENY_CACHE : Source.REDIS);
        assertThat(decision.remaining()).isNotNegative();
        assertThat(decision.reset()).isGreaterThanOrEqualTo(Duration.ZERO);
        assertThat(decision.waitTime()).isGreaterThanOrEqualTo(Duration.ZERO);
        if (decision.retryAfter() != null) {
            assertThat(decision.retryAfter()).isGreaterThanOrEqualTo(Duration.ZERO);
        }
    }
}
