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
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Where those are told who do not block. */
class AsynchronousCallersTest {

    private static final Duration PATIENCE = Duration.ofSeconds(20);

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private static RateLimiter limiter(RedisBackendOptions options) {
        Limit limit = Limit.of("told", Algorithm.TOKEN_BUCKET).rate("1000/s").build();
        return REDIS.backend(options.timeout(PATIENCE)).limiter(limit, RedisLimitOptions.DEFAULTS);
    }

    @Test
    void areToldInThreadsOfTheLimits() {
        RateLimiter limiter = limiter(RedisBackendOptions.DEFAULTS);
        Thread teller;
        do {
            CompletableFuture<Thread> told = limiter.reserveAsync("k", 1, 0)
                    .thenApply(reservation -> Thread.currentThread())
                    .toCompletableFuture();
            until(told::isDone, "told", PATIENCE);
            teller = told.join();
            // It is this thread if the decision was there before anything was attached: then once more.
        } while (teller == Thread.currentThread());
        assertThat(teller.getName()).isEqualTo("rate-limit-callbacks");
    }

    /** One is never done with what it does, and one fails; each caller has a task of its own. */
    @Test
    void areToldWhateverOthersOfTheirBatchDo() {
        Queue<Runnable> tasks = new ConcurrentLinkedQueue<>();
        RateLimiter limiter = limiter(RedisBackendOptions.DEFAULTS.executor(tasks::add));
        List<CompletableFuture<Reservation>> calls = new ArrayList<>();
        // What is decided before a caller has attached anything needs no task.
        REDIS.server().freeze();
        for (int i = 0; i < 50; i++) {
            calls.add(limiter.reserveAsync("k", 1, 0).toCompletableFuture());
        }
        REDIS.server().thaw();
        CompletableFuture<Void> fails = calls.get(0).thenAccept(reservation -> {
            throw new IllegalStateException("a caller's own failure");
        });
        until(() -> tasks.size() == 50, "decided", PATIENCE);
        // Of any caller: the backend gives tasks to the executor from several threads.
        Runnable stuck = tasks.remove();
        tasks.forEach(Runnable::run);
        assertThat(calls.stream().filter(CompletableFuture::isDone)).hasSize(49);
        stuck.run();
        assertThat(calls).allSatisfy(call -> assertThat(call).isCompleted());
        assertThat(fails).isCompletedExceptionally();
    }
}
