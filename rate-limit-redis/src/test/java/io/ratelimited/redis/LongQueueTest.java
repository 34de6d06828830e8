package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

/** Thousands of calls wait for a place under CONCURRENCY when an outage decides all of them. */
@Tag("slow")
class LongQueueTest {

    private static final int WAITING = 20_000;
    /** Nothing is late before the network is cut, however long the machine holds up the call that asks for the others. */
    private static final RedisBackendOptions NEVER_LATE = FarNode.PATIENT.timeout(Duration.ofMinutes(1));

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    @ParameterizedTest
    @EnumSource(names = {"ALLOW", "DENY", "THROW"})
    void everyCallIsDecidedHoweverManyWait(OnFailure onFailure) {
        FarNode far = FarNode.of(REDIS, NEVER_LATE);
        Limit limit = Limit.of("long", Algorithm.CONCURRENCY)
                .maxConcurrent(1)
                .maxWaiting(2 * WAITING)
                .build();
        RateLimiter limiter = far.backend().limiter(limit, RedisLimitOptions.DEFAULTS.onFailure(onFailure));
        far.awaitRedis();
        assertThat(limiter.reserve("k", 1, 0).isRefused()).isFalse();
        List<CompletableFuture<Boolean>> turns = new ArrayList<>();
        for (int i = 0; i < WAITING; i++) {
            Reservation next = limiter.reserve("k", 1, Duration.ofHours(1).toNanos());
            assertThat(next.mayWait()).isTrue();
            turns.add(next.awaitAsync());
        }
        far.cut();
        until(() -> turns.stream().allMatch(CompletableFuture::isDone), "decided", FarNode.PATIENCE);
        assertThat(turns)
                .allMatch(turn -> onFailure == OnFailure.THROW
                        ? turn.isCompletedExceptionally()
                        : turn.join() == (onFailure == OnFailure.ALLOW));
        // The seat of a caller is free just behind its future.
        until(() -> limiter.waiting() == 0, "no seat is taken", FarNode.PATIENCE);
    }
}
