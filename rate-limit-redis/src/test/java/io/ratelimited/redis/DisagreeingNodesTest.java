package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import java.time.Duration;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Two nodes of which one has a changed limit, both under load on one key. */
@Tag("once")
@Tag("slow")
class DisagreeingNodesTest {

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private static RateLimiter node(Limit limit) {
        return REDIS.backend(FarNode.PATIENT.timeout(Duration.ofSeconds(20)))
                .limiter(limit, RedisLimitOptions.DEFAULTS);
    }

    private static Limit limit(Algorithm algorithm, int rate, int burst) {
        return Limit.of("disagreed", algorithm).rate(rate + "/s").burst(burst).build();
    }

    @ParameterizedTest
    @CsvSource({"100, 1000, 200, 20", "200, 20, 100, 1000", "100, 100, 100, 10", "100, 10, 100, 100"})
    void aChangeOnOneNodeOnlyGivesNoMoreThanTheLargerLimit(int rate, int burst, int newRate, int newBurst)
            throws Exception {
        disagree(Algorithm.TOKEN_BUCKET, rate, burst, newRate, newBurst, 1000);
    }

    private static void disagree(Algorithm algorithm, int rate, int burst, int newRate, int newBurst, long millis)
            throws Exception {
        RateLimiter one = node(limit(algorithm, rate, burst));
        RateLimiter other = node(limit(algorithm, rate, burst));
        one.tryAcquire("k", 1);
        other.tryAcquire("k", 1);
        long begin = System.nanoTime();
        other.update(limit(algorithm, newRate, newBurst));
        Load oneLoad = new Load(one, 2, caller -> "k");
        Load otherLoad = new Load(other, 2, caller -> "k");
        Thread.sleep(millis);
        oneLoad.close();
        otherLoad.close();
        double seconds = (System.nanoTime() - begin) / 1e9;
        long admitted = oneLoad.admitted() + otherLoad.admitted();
        double bound = Math.max(burst, newBurst) + Math.max(rate, newRate) * seconds;
        System.out.printf(
                "MIXED %s %d/s burst %d beside %d/s burst %d: %d permits in %.1f s, %.2f of the larger limit%n",
                algorithm, rate, burst, newRate, newBurst, admitted, seconds, admitted / bound);
        assertThat(admitted).isLessThanOrEqualTo((long) bound + 1);
    }
}
