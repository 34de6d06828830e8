package io.ratelimited.redis;

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
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.Timeout.ThreadMode;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Code that is not the limiter's and runs within it: whatever it throws and however long it takes, limits go on. */
@Timeout(value = 60, threadMode = ThreadMode.SEPARATE_THREAD)
@Tag("once")
@Tag("slow")
class ForeignCodeTest {

    private static final Limit LIMIT =
            Limit.of("foreign", Algorithm.TOKEN_BUCKET).rate("1000/s").build();

    @RegisterExtension
    static final RedisServers REDIS = RedisServers.standalone();

    private static final Logger LOGGER = Logger.getLogger("io.ratelimited");

    /** What the foreign code waits for in the tests in which it does not return. */
    private final CountDownLatch end = new CountDownLatch(1);

    private final AtomicInteger logged = new AtomicInteger();
    private Handler handler;

    private void whenLogged(Runnable code) {
        handler = new Handler() {
            @Override
            public void publish(LogRecord entry) {
                logged.incrementAndGet();
                code.run();
            }

            @Override
            public void flush() {}

            @Override
            public void close() {}
        };
        LOGGER.addHandler(handler);
    }

    @AfterEach
    void endForeignCode() {
        end.countDown();
        LOGGER.removeHandler(handler);
    }

    private void never() {
        try {
            end.await(40, TimeUnit.SECONDS);
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    private static void failWith(Class<? extends Throwable> type) {
        if (type == RuntimeException.class) {
            throw new IllegalStateException("a log handler's own failure");
        }
        throw new NoClassDefFoundError("a log handler's own failure");
    }

    /** An outage, in which forty callers who do not block are answered, and its end. */
    private static void survivesAnOutage(FarNode far) {
        RateLimiter limiter = far.limiter(LIMIT);
        far.awaitRedis();
        far.network().silence(true);
        List<CompletableFuture<Reservation>> calls = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            calls.add(limiter.reserveAsync("k" + i, 1, 0).toCompletableFuture());
        }
        until(
                () -> calls.stream().allMatch(CompletableFuture::isDone),
                () -> calls.stream().filter(call -> !call.isDone()).count() + " of 40 futures never complete",
                FarNode.PATIENCE.dividedBy(3));
        assertThat(calls)
                .allSatisfy(call -> assertThat(call.join().decision().source()).isEqualTo(Source.FALLBACK));
        far.awaitOutage();
        far.healSilence();
    }

    private static void until(BooleanSupplier condition, Supplier<String> otherwise, Duration patience) {
        try {
            RedisProcess.until(condition, "", patience);
        } catch (AssertionError ex) {
            throw new AssertionError(otherwise.get(), ex);
        }
    }

    @ParameterizedTest
    @ValueSource(classes = {RuntimeException.class, Error.class})
    void aLogHandlerThatThrowsStopsNothing(Class<? extends Throwable> type) {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        whenLogged(() -> failWith(type));
        survivesAnOutage(far);
        assertThat(logged).hasPositiveValue();
    }

    @Test
    void aLogHandlerThatDoesNotReturnHoldsNobody() {
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT);
        whenLogged(this::never);
        survivesAnOutage(far);
        assertThat(logged).hasPositiveValue();
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void anAbsentServerIsFoundWhateverTheLogHandlerDoes(boolean returns) {
        whenLogged(returns ? () -> failWith(RuntimeException.class) : this::never);
        int port = RedisProcess.freePort();
        RedisBackend backend = REDIS.closeLater(RedisBackend.of(RedisServers.settings(port), FarNode.PATIENT));
        RateLimiter limiter = backend.limiter(LIMIT, RedisLimitOptions.DEFAULTS);
        assertThat(limiter.reserve("k", 1, 0).decision().source()).isEqualTo(Source.FALLBACK);
        REDIS.closeLater(RedisProcess.start(RedisProcess.binary(), port));
        RedisProcess.until(
                () -> limiter.reserve("k", 1, 0).decision().source() == Source.REDIS,
                "the server is found",
                FarNode.PATIENCE.dividedBy(3));
        assertThat(logged).hasPositiveValue();
    }

    @Test
    void anExecutorThatThrowsStopsNothing() {
        AtomicBoolean throwing = new AtomicBoolean();
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT.executor(task -> {
            if (throwing.get()) {
                throw new RejectedExecutionException("an executor that is full");
            }
            ForkJoinPool.commonPool().execute(task);
        }));
        far.awaitRedis();
        throwing.set(true);
        far.network().silence(true);
        RateLimiter limiter = far.limiter(LIMIT);
        List<CompletableFuture<Reservation>> calls = new ArrayList<>();
        for (int i = 0; i < 40; i++) {
            calls.add(limiter.reserveAsync("k" + i, 1, 0).toCompletableFuture());
        }
        RedisProcess.until(
                () -> calls.stream().allMatch(CompletableFuture::isDone), "all are answered", FarNode.PATIENCE);
        throwing.set(false);
        far.healSilence();
        survivesAnOutage(far);
    }

    @Test
    void anExecutorThatDoesNotReturnHoldsNobodyElse() {
        AtomicBoolean blocking = new AtomicBoolean();
        FarNode far = FarNode.of(REDIS, FarNode.PATIENT.executor(task -> {
            if (blocking.compareAndSet(true, false)) {
                never();
            }
            ForkJoinPool.commonPool().execute(task);
        }));
        far.awaitRedis();
        far.network().silence(true);
        blocking.set(true);
        far.limiter(LIMIT).reserveAsync("stuck", 1, 0);
        RedisProcess.until(() -> !blocking.get(), "the executor is asked", FarNode.PATIENCE);
        far.healSilence();
        survivesAnOutage(far);
    }
}
