package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/**
 * Connections are cut again and again while many callers ask. Each call has a key of its own, whose state in Redis counts how
 * often it has run: once if it was answered, once or never if its reply was lost, never twice. Guards against clients that
 * send commands again: run it with each new version of Lettuce.
 */
@Tag("once")
@Tag("slow")
class NeverTwiceTest {

    private static final int BLOCKING = 4;
    private static final int ASYNCHRONOUS = 64;
    /** Between two cuts, so that there is something under way at each. */
    private static final int CALLS_BETWEEN_CUTS = 150;

    private static final Limit LIMIT =
            Limit.of("twice", Algorithm.FIXED_WINDOW).rate("1000/3650d").build();

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private final AtomicBoolean stopped = new AtomicBoolean();
    private final AtomicInteger calls = new AtomicInteger();
    private final Queue<String> admitted = new ConcurrentLinkedQueue<>();
    private final Queue<String> unanswered = new ConcurrentLinkedQueue<>();

    @Test
    void noCallRunsTwiceHoweverOftenConnectionsBreak() throws Exception {
        breakConnections(10);
    }

    @Test
    @Tag("proof")
    void noCallRunsTwiceWhenConnectionsBreakAHundredTimes() throws Exception {
        breakConnections(100);
    }

    private void breakConnections(int cuts) throws Exception {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT.timeout(FarNode.PATIENCE));
        // Without a reply a call is refused, and nothing is charged for it later.
        RateLimiter limiter = far.backend().limiter(LIMIT, RedisLimitOptions.DEFAULTS.onFailure(OnFailure.DENY));
        far.awaitRedis();
        ExecutorService threads = Executors.newCachedThreadPool();
        List<Future<?>> callers = new ArrayList<>();
        try {
            for (int i = 0; i < BLOCKING + ASYNCHRONOUS; i++) {
                Function<String, Reservation> call = i < BLOCKING
                        ? key -> limiter.reserve(key, 1, 0)
                        : key -> limiter.reserveAsync(key, 1, 0)
                                .toCompletableFuture()
                                .join();
                callers.add(threads.submit(() -> askUntilStopped(far, call)));
            }
            for (int i = 0; i < cuts; i++) {
                int before = admitted.size();
                until(() -> admitted.size() >= before + CALLS_BETWEEN_CUTS, "calls between cuts", FarNode.PATIENCE);
                far.network().cut(true);
                far.network().cut(false);
            }
        } finally {
            stopped.set(true);
            threads.shutdown();
        }
        for (Future<?> caller : callers) {
            caller.get();
        }
        RateLimiter witness =
                REDIS.backend(FarNode.PATIENT.timeout(FarNode.PATIENCE)).limiter(LIMIT, RedisLimitOptions.DEFAULTS);
        long lost = unanswered.stream().filter(key -> runs(witness, key) > 0).count();
        System.out.printf(
                "TWICE %d calls answered, %d not, of which %d have run%n", admitted.size(), unanswered.size(), lost);
        assertThat(admitted).allMatch(key -> runs(witness, key) == 1);
        assertThat(unanswered).isNotEmpty().allMatch(key -> runs(witness, key) <= 1);
    }

    private static long runs(RateLimiter witness, String key) {
        return 1000 - witness.peek(key, 1, 0).remaining();
    }

    private void askUntilStopped(FarNode far, Function<String, Reservation> call) {
        while (!stopped.get()) {
            String key = "k" + calls.incrementAndGet();
            if (!call.apply(key).isRefused()) {
                admitted.add(key);
            } else {
                unanswered.add(key);
                until(() -> far.backend().health().state() == RedisHealth.State.UP, "connected", FarNode.PATIENCE);
            }
        }
    }
}
