package io.ratelimited.benchmarks;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;

/** A reservation of a known key that is settled, beside one that is not, and beside two of them. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 4, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(
        value = 3,
        jvmArgsAppend = {"-Xms1g", "-Xmx1g"})
@State(Scope.Benchmark)
public class SettleBenchmark {

    /** Two that are counted in one word, and one with a monitor. */
    @Param({"TOKEN_BUCKET", "FIXED_WINDOW", "SLIDING_WINDOW"})
    public Algorithm algorithm = Algorithm.TOKEN_BUCKET;

    private final String key = "key";
    private @Nullable InMemoryRateLimiter made;

    /** Makes a limiter that admits every call. */
    @Setup
    public void setUp() {
        made = new InMemoryRateLimiter(
                Limit.of("settle", algorithm).rate("400000000/s").build());
    }

    private Reservation reserve() {
        return Objects.requireNonNull(made).reserve(key, 4, 0);
    }

    @Benchmark
    public boolean reserved() {
        return reserve().isRefused();
    }

    @Benchmark
    public boolean reservedTwice() {
        Reservation first = reserve();
        return reserve().isRefused() || first.isRefused();
    }

    @Benchmark
    public boolean settledForLess() {
        return settled(1);
    }

    @Benchmark
    public boolean settledForTheSame() {
        return settled(4);
    }

    @Benchmark
    public boolean settledForMore() {
        return settled(6);
    }

    private boolean settled(long cost) {
        Reservation reservation = reserve();
        reservation.settle(cost);
        return reservation.isRefused();
    }
}
