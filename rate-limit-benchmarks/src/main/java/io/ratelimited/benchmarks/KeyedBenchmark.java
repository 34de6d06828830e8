package io.ratelimited.benchmarks;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.google.common.util.concurrent.RateLimiter;
import io.github.bucket4j.Bucket;
import io.github.resilience4j.ratelimiter.RateLimiterConfig;
import io.github.resilience4j.ratelimiter.RateLimiterRegistry;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import java.time.Duration;
import java.util.SplittableRandom;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
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
 * bounded by size and by idle time, as ours is. Only what is measured is in the heap, compacted: where a key and its
 * limiter lie decides as much as what is done with them.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 4, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(
        value = 2,
        jvmArgsAppend = {"-Xms6g", "-Xmx6g", "-XX:+AlwaysPreTouch", "-XX:+UseTransparentHugePages"})
@State(Scope.Benchmark)
public class KeyedBenchmark {

    private static final int ORDER = 1 << 20;
    private static final Duration IDLE = Duration.ofHours(1);

    /** Number of keys. */
    @Param({"1", "10000", "1000000"})
    public int keys;

    /** How often each key comes. */
    @Param({"uniform", "zipf"})
    public String distribution = "";

    private String[] order = {};
    /** Keeps the computing of hashes from being optimised away. */
    int hashes;

    /** Mixes the keys. */
    @Setup(Level.Trial)
    public void setUp() {
        SplittableRandom random = new SplittableRandom(42);
        String[] all = new String[keys];
        for (int i = 0; i < keys; i++) {
            all[i] = "caller-" + i;
        }
        order = new String[ORDER];
        int computed = 0;
        for (int i = 0; i < ORDER; i++) {
            order[i] = all[distribution.equals("zipf") ? zipf(random) : random.nextInt(keys)];
            computed += order[i].hashCode();
        }
        hashes = computed;
    }

    /** Rank by the inverse of an approximate Zipf distribution with exponent 1. */
    private int zipf(SplittableRandom random) {
        return (int) Math.min(keys - 1L, (long) Math.pow(keys + 1.0, random.nextDouble()) - 1);
    }

    private long maximum() {
        return Math.max(2_000_000L, 2L * keys);
    }

    private <V> Cache<String, V> cache() {
        return Caffeine.newBuilder()
                .maximumSize(maximum())
                .expireAfterAccess(IDLE)
                .build();
    }

    /** Uses every key once. */
    private void fill(Consumer<String> use) {
        for (int i = 0; i < keys; i++) {
            use.accept("caller-" + i);
        }
        System.gc();
    }

    /** A place in the order of keys, one a thread. */
    @State(Scope.Thread)
    public static class Position {

        private int next = (int) (Thread.currentThread().getId() * 7919);

        private String key(KeyedBenchmark benchmark) {
            return benchmark.order[next++ & (ORDER - 1)];
        }
    }

    /** A counter per key in a bounded cache. */
    @State(Scope.Benchmark)
    public static class InCaffeine {

        private Cache<String, AtomicLong> cells = Caffeine.newBuilder().build();

        /** Fills it. */
        @Setup(Level.Trial)
        public void setUp(KeyedBenchmark benchmark) {
            cells = benchmark.cache();
            benchmark.fill(key -> cells.put(key, new AtomicLong()));
        }
    }

    /** A counter per key in a map that grows for ever. */
    @State(Scope.Benchmark)
    public static class InMap {

        private final ConcurrentHashMap<String, AtomicLong> cells = new ConcurrentHashMap<>();

        /** Fills it. */
        @Setup(Level.Trial)
        public void setUp(KeyedBenchmark benchmark) {
            benchmark.fill(key -> cells.put(key, new AtomicLong()));
        }
    }

    /** Ours. */
    @State(Scope.Benchmark)
    public static class Ours {

        private InMemoryRateLimiter limiter = limiter(1);

        private static InMemoryRateLimiter limiter(long maximum) {
            return new InMemoryRateLimiter(
                    Peers.limit(Algorithm.TOKEN_BUCKET, "1000000000/h"), Ticker.system(), maximum);
        }

        /** Fills it. */
        @Setup(Level.Trial)
        public void setUp(KeyedBenchmark benchmark) {
            limiter = limiter(benchmark.maximum());
            benchmark.fill(key -> limiter.tryAcquire(key, 1));
        }
    }

    /** Ours with blocks, of which one key has one: a key that is not blocked is looked for among the offenders, too. */
    @State(Scope.Benchmark)
    public static class OursWithBlock {

        private InMemoryRateLimiter limiter = limiter(1);

        private static InMemoryRateLimiter limiter(long maximum) {
            return new InMemoryRateLimiter(
                    Peers.limit(Algorithm.TOKEN_BUCKET, "1000000000/h").toBuilder()
                            .block(Duration.ofHours(1))
                            .build(),
                    Ticker.system(),
                    maximum);
        }

        /** Fills it. */
        @Setup(Level.Trial)
        public void setUp(KeyedBenchmark benchmark) {
            limiter = limiter(benchmark.maximum());
            benchmark.fill(key -> limiter.tryAcquire(key, 1));
            limiter.tryAcquire("offender", 1_000_000_000);
            limiter.tryAcquire("offender", 1_000_000_000);
            if (limiter.blockedKeys().count() != 1) {
                throw new IllegalStateException("one key must be blocked");
            }
        }
    }

    /** A limiter of Guava per key. */
    @State(Scope.Benchmark)
    public static class Guava {

        private Cache<String, RateLimiter> cells = Caffeine.newBuilder().build();

        /** Fills it. */
        @Setup(Level.Trial)
        public void setUp(KeyedBenchmark benchmark) {
            cells = benchmark.cache();
            benchmark.fill(key -> cells.put(key, RateLimiter.create(1e9)));
        }
    }

    /** A bucket per key. */
    @State(Scope.Benchmark)
    public static class Buckets {

        private Cache<String, Bucket> cells = Caffeine.newBuilder().build();

        /** Fills it. */
        @Setup(Level.Trial)
        public void setUp(KeyedBenchmark benchmark) {
            cells = benchmark.cache();
            benchmark.fill(key -> cells.put(key, Peers.bucket4j(1_000_000_000)));
        }
    }

    /** The registry, which never evicts. */
    @State(Scope.Benchmark)
    public static class Registry {

        private final RateLimiterRegistry limiters = RateLimiterRegistry.of(RateLimiterConfig.custom()
                .limitForPeriod(1_000_000_000)
                .limitRefreshPeriod(Duration.ofSeconds(1))
                .timeoutDuration(Duration.ZERO)
                .build());

        /** Fills it. */
        @Setup(Level.Trial)
        public void setUp(KeyedBenchmark benchmark) {
            benchmark.fill(key -> limiters.rateLimiter(key).acquirePermission());
        }
    }

    /** The rule on a parameter, which forgets all but some thousand of its values. */
    @State(Scope.Benchmark)
    public static class HotParameter {

        /** Loads the rule, once it is seen to limit: what Sentinel lacks it only logs. */
        @Setup(Level.Trial)
        public void setUp(KeyedBenchmark benchmark) {
            Peers.sentinelByParameter(1);
            if (!Peers.sentinelByParameter("checked") || Peers.sentinelByParameter("checked")) {
                throw new IllegalStateException("one call must be admitted, and no more");
            }
            Peers.sentinelByParameter(1_000_000_000);
            benchmark.fill(Peers::sentinelByParameter);
        }
    }

    @Benchmark
    public boolean floorCaffeine(InCaffeine floor, Position position) {
        AtomicLong cell = floor.cells.get(position.key(this), key -> new AtomicLong());
        return cell.compareAndSet(cell.get(), System.nanoTime());
    }

    @Benchmark
    public boolean floorConcurrentHashMap(InMap floor, Position position) {
        AtomicLong cell = floor.cells.computeIfAbsent(position.key(this), key -> new AtomicLong());
        return cell.compareAndSet(cell.get(), System.nanoTime());
    }

    @Benchmark
    public boolean ours(Ours ours, Position position) {
        return ours.limiter.tryAcquire(position.key(this), 1);
    }

    @Benchmark
    public boolean oursWithBlock(OursWithBlock ours, Position position) {
        return ours.limiter.tryAcquire(position.key(this), 1);
    }

    @Benchmark
    public boolean peerGuava(Guava guava, Position position) {
        return guava.cells
                .get(position.key(this), key -> RateLimiter.create(1e9))
                .tryAcquire();
    }

    @Benchmark
    public boolean peerBucket4j(Buckets buckets, Position position) {
        return buckets.cells
                .get(position.key(this), key -> Peers.bucket4j(1_000_000_000))
                .tryConsume(1);
    }

    @Benchmark
    public boolean peerResilience4j(Registry registry, Position position) {
        return registry.limiters.rateLimiter(position.key(this)).acquirePermission();
    }

    @Benchmark
    public boolean peerSentinel(HotParameter rule, Position position) {
        return Peers.sentinelByParameter(position.key(this));
    }
}
