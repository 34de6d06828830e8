package io.ratelimited.benchmarks;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.memory.InMemoryRateLimiter;
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

/** Calls that go to one of several limits in turn. All are admitted. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 4, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(
        value = 2,
        jvmArgsAppend = {"-Xms1g", "-Xmx1g", "-XX:+AlwaysPreTouch", "-XX:+UseTransparentHugePages"})
@State(Scope.Benchmark)
public class LimitsBenchmark {

    /** Number of limits, a power of two. */
    @Param({"1", "4", "16", "64"})
    public int limits;

    private AtomicLong[] floor = {};
    private InMemoryRateLimiter[] ours = {};
    private int next;

    /** Makes them. */
    @Setup(Level.Trial)
    public void setUp() {
        floor = new AtomicLong[limits];
        ours = new InMemoryRateLimiter[limits];
        for (int i = 0; i < limits; i++) {
            floor[i] = new AtomicLong();
            ours[i] = new InMemoryRateLimiter(Peers.limit(Algorithm.TOKEN_BUCKET, "1000000000/s"));
        }
    }

    @Benchmark
    public boolean floor() {
        AtomicLong cell = floor[next++ & (limits - 1)];
        long now = System.nanoTime();
        return cell.compareAndSet(cell.get(), now);
    }

    @Benchmark
    public boolean ours() {
        return ours[next++ & (limits - 1)].tryAcquire(null, 1);
    }
}
