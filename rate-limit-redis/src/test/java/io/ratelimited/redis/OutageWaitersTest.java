package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Calls that wait for a place under CONCURRENCY when an outage begins. */
@Tag("proof")
class OutageWaitersTest {

    private static final long MINUTE = 60_000_000_000L;

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final FarNode far = FarNode.of(REDIS, FarNode.PATIENT);

    private final List<Reservation> running = new ArrayList<>();
    private final List<Reservation> waiting = new ArrayList<>();
    private final List<CompletableFuture<Boolean>> turns = new ArrayList<>();

    /** One call runs and one waits for each key. */
    private void callsOf(int keys, OnFailure onFailure) {
        RateLimiter limiter = far.backend()
                .limiter(
                        Limit.of("wait", Algorithm.CONCURRENCY).maxConcurrent(1).build(),
                        RedisLimitOptions.DEFAULTS.onFailure(onFailure));
        far.awaitRedis();
        for (int i = 0; i < keys; i++) {
            String key = "k" + i;
            running.add(FarNode.admitted(() -> limiter.reserve(key, 1, 0)));
            Reservation second = FarNode.admitted(() -> limiter.reserve(key, 1, MINUTE));
            assertThat(second.mayWait()).isTrue();
            waiting.add(second);
            turns.add(second.awaitAsync().toCompletableFuture());
        }
    }

    @Test
    void fiftyKeysWhoseCallersWaitAskNothingDuringAnOutage() throws Exception {
        int keys = 50;
        int millis = 3000;
        callsOf(keys, OnFailure.LOCAL);
        far.network().silence(true);
        far.awaitOutage();
        long before = far.network().commands();
        long begin = System.nanoTime();
        Thread.sleep(millis);
        long asked = far.network().commands() - before;
        System.out.printf("WAITERS of %d keys: %d commands in %d ms of outage%n", keys, asked, millis);
        assertThat(asked).isLessThanOrEqualTo(FarNode.probesSince(begin));
        running.forEach(Reservation::release);
        until(() -> turns.stream().allMatch(CompletableFuture::isDone), "all are let in", Duration.ofSeconds(10));
        assertThat(turns).allSatisfy(turn -> assertThat(turn).isCompletedWithValue(true));
        assertThat(waiting).extracting(call -> call.decision().source()).containsOnly(Source.FALLBACK);
        waiting.forEach(Reservation::release);
    }
}
