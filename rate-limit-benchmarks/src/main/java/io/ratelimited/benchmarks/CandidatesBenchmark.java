package io.ratelimited.benchmarks;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.candidates.CandidateTracker;
import io.ratelimited.core.internals.candidates.Candidates;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
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

/** What candidates cost a call, beside a decision of the limit and a look at the clock in the same run. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 4, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(2)
@State(Scope.Benchmark)
public class CandidatesBenchmark {

    private static final int KEYS = 1 << 17;

    @Param({"3", "9"})
    public int candidates;

    private final String[] keys =
            IntStream.range(0, KEYS).mapToObj(i -> "caller-" + i).toArray(String[]::new);
    private InMemoryRateLimiter limiter = new InMemoryRateLimiter(limit());
    private CandidateTracker tracker = tracker(3);
    private CandidateTracker flooded = tracker(3);
    private int next;

    private static Limit limit() {
        return Limit.of("live", Algorithm.TOKEN_BUCKET).rate("1000000000/s").build();
    }

    private static CandidateTracker tracker(int number) {
        String rates =
                IntStream.range(0, number).mapToObj(i -> (1L << i) * 100 + "/m").collect(Collectors.joining(","));
        return new CandidateTracker(limit(), Candidates.of(limit(), rates), Ticker.system(), 0);
    }

    /** The flooded one follows a sixteenth of the keys or less. */
    @Setup(Level.Trial)
    public void setUp() {
        limiter = new InMemoryRateLimiter(limit());
        tracker = tracker(candidates);
        flooded = tracker(candidates);
        for (String key : keys) {
            flooded.tried(key, 1, 0, false);
        }
    }

    @Benchmark
    public long clock() {
        return System.nanoTime();
    }

    @Benchmark
    public boolean decision() {
        return limiter.tryAcquire(null, 1);
    }

    @Benchmark
    public void withoutKey() {
        tracker.tried(null, 1, 0, false);
    }

    @Benchmark
    public void oneKey() {
        tracker.tried("caller", 1, 0, false);
    }

    /** One of a hundred keys, which are all followed. */
    @Benchmark
    public void followedKeys() {
        tracker.tried(keys[next++ % 100], 1, 0, false);
    }

    /** What it costs to have such a key in hand. */
    @Benchmark
    public int hashOfManyKeys() {
        return keys[next++ & (KEYS - 1)].hashCode();
    }

    @Benchmark
    public void manyKeys() {
        flooded.tried(keys[next++ & (KEYS - 1)], 1, 0, false);
    }
}
