package io.ratelimited.benchmarks;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** A flood of keys that call once: each call makes a cell and evicts one that is not full again. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 4, time = 1)
@Measurement(iterations = 4, time = 1)
@Fork(
        value = 2,
        jvmArgsAppend = {"-Xms2g", "-Xmx2g", "-XX:+AlwaysPreTouch"})
@State(Scope.Benchmark)
public class FloodBenchmark {

    private static final long MAXIMUM_KEYS = 100_000;

    private final Cache<String, AtomicLong> cells =
            Caffeine.newBuilder().maximumSize(MAXIMUM_KEYS).build();
    /** A permit takes longer to return than a key stays in the cache, and no key ever spends all. */
    private final InMemoryRateLimiter limiter =
            new InMemoryRateLimiter(Peers.limit(Algorithm.TOKEN_BUCKET, "5000/h"), Ticker.system(), MAXIMUM_KEYS);

    /** The next key of a thread. */
    @State(Scope.Thread)
    public static class Next {

        private final String prefix = Thread.currentThread().getId() + "-caller-";
        private long number;

        private String key() {
            return prefix + number++;
        }
    }

    @Benchmark
    public boolean floorCaffeine(Next next) {
        AtomicLong cell = cells.get(next.key(), key -> new AtomicLong());
        return cell.compareAndSet(cell.get(), System.nanoTime());
    }

    @Benchmark
    public boolean ours(Next next) {
        return limiter.tryAcquire(next.key(), 1);
    }
}
