package io.ratelimited.spring.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisURI;
import io.lettuce.core.resource.ClientResources;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisBackendOptions;
import io.ratelimited.redis.RedisClientSettings;
import io.ratelimited.redis.RedisLimitOptions;
import io.ratelimited.redis.RedisProcess;
import io.ratelimited.spring.Fork;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Limits never wait for a pool that others may fill: while tasks of the application block the common pool for good, and so
 * does what some callers attach to their decisions, everybody is answered. In a process of its own, since the number of
 * processors decides what the common pool is.
 */
@Tag("slow")
public final class BlockedCommonPoolTest {

    private static final int CALLERS = 100;
    private static final Duration PATIENCE = Duration.ofMinutes(1);

    @ParameterizedTest
    @ValueSource(ints = {1, 2})
    void everyAsynchronousCallerIsAnswered(int processors, @TempDir Path directory) throws Exception {
        try (RedisProcess server = RedisProcess.start()) {
            List<String> facts = Fork.run(
                    directory,
                    Fork.classPath(entry -> true),
                    BlockedCommonPoolTest.class,
                    Fork.SHORT,
                    "-XX:ActiveProcessorCount=" + processors,
                    "-Dport=" + server.port());
            assertThat(facts).containsExactly("redis 100", "queued 1", "alarms 100", "gaveup 50");
        }
    }

    /** Prints how many callers were answered. Halts, since the tasks that block never end. */
    public static void main(String[] args) throws Exception {
        CountDownLatch never = new CountDownLatch(1);
        ForkJoinPool pool = ForkJoinPool.commonPool();
        for (int i = 0; i < pool.getParallelism() + 4; i++) {
            pool.execute(() -> await(never));
        }
        RedisClientSettings client = new RedisClientSettings(
                ClientResources.create(),
                ClientOptions.create(),
                List.of(RedisURI.create("127.0.0.1", Integer.getInteger("port"))));
        RedisBackend backend = RedisBackend.of(client, RedisBackendOptions.DEFAULTS.timeout(Duration.ofSeconds(20)));
        System.out.println("redis " + answered(onRedis(backend, never)));
        System.out.println("queued " + answered(List.of(behindAnother(backend))));
        System.out.println("alarms " + answered(inMemory(never)));
        System.out.println("gaveup " + answered(inFlight()));
        Runtime.getRuntime().halt(0);
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
        }
    }

    /** Blocks whoever runs what a caller has attached, but for the caller, whose call had been answered when he attached it. */
    private static void awaitElsewhere(Thread caller, CountDownLatch latch) {
        if (Thread.currentThread() != caller) {
            await(latch);
        }
    }

    private static long answered(List<? extends CompletionStage<?>> calls) throws Exception {
        CompletableFuture<?>[] all =
                calls.stream().map(CompletionStage::toCompletableFuture).toArray(CompletableFuture<?>[]::new);
        CompletableFuture.allOf(all).get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        return all.length;
    }

    /** What every second caller attaches blocks. */
    private static List<CompletionStage<Reservation>> onRedis(RedisBackend backend, CountDownLatch never) {
        Limit limit = Limit.of("rate", Algorithm.TOKEN_BUCKET).rate("100000/s").build();
        RateLimiter limiter = backend.limiter(limit, RedisLimitOptions.DEFAULTS);
        Thread caller = Thread.currentThread();
        List<CompletionStage<Reservation>> calls = new ArrayList<>();
        for (int i = 0; i < CALLERS; i++) {
            CompletionStage<Reservation> call = limiter.reserveAsync("k" + i, 1, 0);
            calls.add(call);
            if (i % 2 == 0) {
                call.thenAccept(reservation -> awaitElsewhere(caller, never));
            }
        }
        return calls;
    }

    /** A call in flight on Redis that waits for another one to end. */
    private static CompletionStage<Boolean> behindAnother(RedisBackend backend) throws Exception {
        Limit limit = Limit.of("flight", Algorithm.CONCURRENCY).maxConcurrent(1).build();
        RateLimiter limiter = backend.limiter(limit, RedisLimitOptions.DEFAULTS);
        Reservation first = limiter.reserve("k", 1, 0);
        CompletionStage<Boolean> second =
                limiter.reserveAsync("k", 1, PATIENCE.toNanos()).thenCompose(Reservation::awaitAsync);
        first.release();
        return second;
    }

    /** Callers who wait for their permits in memory. What every second one attaches blocks. */
    private static List<CompletionStage<Boolean>> inMemory(CountDownLatch never) {
        Limit limit = Limit.of("paced", Algorithm.TOKEN_BUCKET)
                .rate("1000/s")
                .burst(1)
                .build();
        RateLimiter limiter = new InMemoryRateLimiter(limit, Ticker.system(), 10);
        Thread caller = Thread.currentThread();
        List<CompletionStage<Boolean>> calls = new ArrayList<>();
        for (int i = 0; i < CALLERS; i++) {
            CompletionStage<Boolean> call =
                    limiter.reserve("k", 1, PATIENCE.toNanos()).awaitAsync();
            calls.add(call);
            if (i % 2 == 0) {
                call.thenAccept(admitted -> awaitElsewhere(caller, never));
            }
        }
        return calls;
    }

    /** Callers in memory who wait for a call that never ends; and more of them at once than wake each other in one thread. */
    private static List<CompletionStage<Boolean>> inFlight() {
        Limit limit = Limit.of("flight", Algorithm.CONCURRENCY).maxConcurrent(1).build();
        RateLimiter limiter = new InMemoryRateLimiter(limit, Ticker.system(), 10);
        limiter.reserve("forever", 1, 0);
        Reservation first = limiter.reserve("ends", 1, 0);
        List<CompletionStage<Boolean>> calls = new ArrayList<>();
        for (int i = 0; i < 10; i++) {
            calls.add(limiter.reserve("forever", 1, 10_000_000).awaitAsync());
        }
        for (int i = 0; i < 40; i++) {
            Reservation next = limiter.reserve("ends", 1, PATIENCE.toNanos());
            calls.add(next.awaitAsync().whenComplete((admitted, failure) -> next.release()));
        }
        first.release();
        return calls;
    }
}
