package io.ratelimited.benchmarks;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.google.common.util.concurrent.RateLimiter;
import io.github.bucket4j.Bucket;
import io.github.resilience4j.ratelimiter.RateLimiterConfig;
import io.github.resilience4j.ratelimiter.RateLimiterRegistry;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.InMemoryRateLimiter;
import io.ratelimited.core.Ticker;
import java.time.Duration;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/**
 * One limiter per key, admitted. Keys are other String objects than those in the map, their hash computed; caches are
 * bounded by size and by idle time, as ours is.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 4, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(
        value = 2,
        jvmArgsAppend = {"-Xms6g", "-Xmx6g", "-XX:+AlwaysPreTouch", "-XX:+UseTransparentHugePages"})
@State(Scope.Benchmark)
public class KeyedBenchmark {

    private static final int ORDER = 1 << 20;
    private static final long MAXIMUM = 2_000_000;
    private static final Duration IDLE = Duration.ofHours(1);

    /** Number of keys. */
    @Param({"1", "10000", "1000000"})
    public int keys;

    /** How often each key comes. */
    @Param("uniform")
    public String distribution = "";

    private final Cache<String, AtomicLong> floor = cache();
    private final ConcurrentHashMap<String, AtomicLong> map = new ConcurrentHashMap<>();
    private final Cache<String, RateLimiter> guava = cache();
    private final Cache<String, Bucket> bucket4j = cache();
    private final RateLimiterRegistry resilience4j = RateLimiterRegistry.of(RateLimiterConfig.custom()
            .limitForPeriod(1_000_000_000)
            .limitRefreshPeriod(Duration.ofSeconds(1))
            .timeoutDuration(Duration.ZERO)
            .build());
    private final InMemoryRateLimiter ours =
            new InMemoryRateLimiter(Peers.limit(Algorithm.TOKEN_BUCKET, "1000000000/h"), Ticker.system(), MAXIMUM);
    private String[] order = {};
    /** Keeps the computing of hashes from being optimised away. */
    int hashes;

    private static <V> Cache<String, V> cache() {
        return Caffeine.newBuilder()
                .maximumSize(MAXIMUM)
                .expireAfterAccess(IDLE)
                .build();
    }

    /** Puts every key into every map, and mixes other objects of the same keys. */
    @Setup(Level.Trial)
    public void setUp() {
        SplittableRandom random = new SplittableRandom(42);
        String[] copies = new String[keys];
        for (int i = 0; i < keys; i++) {
            copies[i] = "caller-" + i;
            String known = new String(copies[i]);
            floor.put(known, new AtomicLong());
            map.put(known, new AtomicLong());
            guava.put(known, RateLimiter.create(1e9));
            bucket4j.put(known, Peers.bucket4j(1_000_000_000));
            resilience4j.rateLimiter(known).acquirePermission();
            ours.tryAcquire(known, 1);
        }
        order = new String[ORDER];
        int computed = 0;
        for (int i = 0; i < ORDER; i++) {
            int index = distribution.equals("zipf") ? zipf(random) : random.nextInt(keys);
            order[i] = copies[index];
            computed += order[i].hashCode();
        }
        hashes = computed;
    }

    /** Rank by the inverse of an approximate Zipf distribution with exponent 1. */
    private int zipf(SplittableRandom random) {
        return (int) Math.min(keys - 1L, (long) Math.pow(keys + 1.0, random.nextDouble()) - 1);
    }

    /** A place in the order of keys, one a thread. */
    @State(Scope.Thread)
    public static class Position {

        private int next = (int) (Thread.currentThread().getId() * 7919);

        private String key(String[] order) {
            return order[next++ & (ORDER - 1)];
        }
    }

    @Benchmark
    public boolean floorCaffeine(Position position) {
        AtomicLong cell = floor.get(position.key(order), key -> new AtomicLong());
        return cell.compareAndSet(cell.get(), System.nanoTime());
    }

    @Benchmark
    public boolean floorConcurrentHashMap(Position position) {
        AtomicLong cell = map.computeIfAbsent(position.key(order), key -> new AtomicLong());
        return cell.compareAndSet(cell.get(), System.nanoTime());
    }

    @Benchmark
    public boolean tokenBucket(Position position) {
        return ours.tryAcquire(position.key(order), 1);
    }

    @Benchmark
    public boolean peerGuava(Position position) {
        return guava.get(position.key(order), key -> RateLimiter.create(1e9)).tryAcquire();
    }

    @Benchmark
    public boolean peerBucket4j(Position position) {
        return bucket4j.get(position.key(order), key -> Peers.bucket4j(1_000_000_000))
                .tryConsume(1);
    }

    @Benchmark
    public boolean peerResilience4j(Position position) {
        return resilience4j.rateLimiter(position.key(order)).acquirePermission();
    }
}
