package io.ratelimited.redis;

import static io.ratelimited.redis.RedisProcess.until;
import static org.assertj.core.api.Assertions.assertThat;

import io.netty.util.concurrent.FastThreadLocalThread;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Call;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.core.Reservation;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;
import org.junit.jupiter.api.extension.RegisterExtension;

/** Callers who promise not to block run on the thread that reads replies, and one of them blocks all the same. */
@Timeout(value = 90, threadMode = ThreadMode.SEPARATE_THREAD)
class HeldUpReaderTest {

    private static final Limit LIMIT =
            Limit.of("read", Algorithm.TOKEN_BUCKET).rate("100000/s").build();

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private static final Logger LOGGER = Logger.getLogger("io.ratelimited");

    private final CountDownLatch end = new CountDownLatch(1);
    private final Queue<LogRecord> culprits = new ConcurrentLinkedQueue<>();
    private final Handler handler = new Handler() {
        @Override
        public void publish(LogRecord entry) {
            if (entry.getThrown() != null) {
                culprits.add(entry);
            }
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    };

    private RateLimiter limiter;

    @BeforeEach
    void listen() {
        LOGGER.addHandler(handler);
        // A reply that a busy machine holds up is told on another thread, and replaced by a decision without Redis.
        use(FarNode.NEAR);
    }

    private void use(RedisBackendOptions options) {
        limiter = REDIS.backend(options).limiter(LIMIT, RedisLimitOptions.DEFAULTS);
    }

    @AfterEach
    void goOn() {
        end.countDown();
        LOGGER.removeHandler(handler);
    }

    /** What a caller finds on the thread where it is told, which is not its own. */
    private <T> T told(Callbacks callbacks, Function<Thread, T> callback) {
        Thread caller = Thread.currentThread();
        while (true) {
            CompletableFuture<T> found = asked(callbacks).thenApply(reservation -> {
                Thread thread = Thread.currentThread();
                // It is the caller's if the decision was there before anything was attached: then once more.
                return thread == caller ? null : callback.apply(thread);
            });
            until(found::isDone, "told", FarNode.PATIENCE);
            if (found.join() != null) {
                return found.join();
            }
        }
    }

    private CompletableFuture<Reservation> asked(Callbacks callbacks) {
        return limiter.reserveAsync(Call.of("k", 1, 0), callbacks).toCompletableFuture();
    }

    /** Calls until one is told on the thread that reads, which then runs a task. */
    private void onReader(Runnable task) {
        CompletableFuture<Boolean> begun = new CompletableFuture<>();
        while (!begun.isDone()) {
            CompletableFuture<Reservation> call = asked(Callbacks.NEVER_BLOCK);
            call.thenAccept(reservation -> {
                if (Thread.currentThread() instanceof FastThreadLocalThread && begun.complete(true)) {
                    task.run();
                }
            });
            until(() -> begun.isDone() || call.isDone(), "told", FarNode.PATIENCE);
        }
    }

    private String teller() {
        return told(Callbacks.NEVER_BLOCK, Thread::getName);
    }

    private void block() {
        try {
            end.await(60, TimeUnit.SECONDS);
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    @Test
    void whoNeverBlocksIsToldWhereTheReplyArrives() {
        boolean reads = told(Callbacks.NEVER_BLOCK, thread -> thread instanceof FastThreadLocalThread);
        assertThat(reads).isTrue();
        String teller = told(Callbacks.MAY_BLOCK, Thread::getName);
        assertThat(teller).isEqualTo("rate-limit-callbacks");
    }

    @Test
    void whoBlocksThereHoldsUpNoOtherForLong() {
        use(FarNode.PATIENT);
        onReader(this::block);
        until(
                () -> limiter.reserve("other", 1, 0).decision().source() == Source.REDIS,
                "decided by another connection",
                FarNode.PATIENCE);
    }

    /** The reply would be read by the thread that waits for it. */
    @Test
    void whoWaitsForRedisThereIsDecidedWithoutAndFound() {
        CompletableFuture<List<Source>> sources = new CompletableFuture<>();
        onReader(() -> sources.complete(List.of(
                limiter.reserve("other", 1, 0).decision().source(),
                limiter.reserve("third", 1, 0).decision().source())));
        assertThat(sources.join()).containsExactly(Source.FALLBACK, Source.FALLBACK);
        until(() -> !culprits.isEmpty(), "found", FarNode.PATIENCE);
        assertThat(culprits.peek().getMessage()).contains("on a Redis I/O thread");
        assertThat(teller()).isEqualTo("rate-limit-callbacks");
        Source elsewhere = told(
                Callbacks.NEVER_BLOCK,
                thread -> limiter.reserve("other", 1, 0).decision().source());
        assertThat(elsewhere).isEqualTo(Source.REDIS);
        assertThat(culprits).hasSize(1);
    }
}
