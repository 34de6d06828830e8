package io.ratelimited.benchmarks;

import com.google.common.util.concurrent.RateLimiter;
import io.github.bucket4j.Bucket;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.InMemoryRateLimiter;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
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
 * One limiter without keys, asked for one permit. {@code admitted}: the rate is far above what is asked, so every call is
 * admitted; {@code refused}: the budget is spent, so none is.
 */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 4, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 5, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(
        value = 5,
        jvmArgsAppend = {"-Xms1g", "-Xmx1g", "-XX:+AlwaysPreTouch", "-XX:+UseTransparentHugePages"})
@State(Scope.Benchmark)
public class DecideBenchmark {

    /** Whether calls are admitted or refused. */
    @Param({"admitted", "refused"})
    public String outcome = "";

    private final AtomicLong floor = new AtomicLong();
    private boolean admitted;
    private InMemoryRateLimiter tokenBucket = limiter(Algorithm.TOKEN_BUCKET);
    private InMemoryRateLimiter smoothBursty = limiter(Algorithm.SMOOTH_BURSTY);
    private InMemoryRateLimiter warmUp = limiter(Algorithm.WARM_UP);
    private InMemoryRateLimiter leakyBucket = limiter(Algorithm.LEAKY_BUCKET);
    private InMemoryRateLimiter fixedWindow = limiter(Algorithm.FIXED_WINDOW);
    private InMemoryRateLimiter slidingWindow = limiter(Algorithm.SLIDING_WINDOW);
    private InMemoryRateLimiter slidingLog = limiter(Algorithm.SLIDING_LOG);
    private RateLimiter guava = RateLimiter.create(1);
    private Bucket bucket4j = Peers.bucket4j(1);
    private io.github.resilience4j.ratelimiter.RateLimiter resilience4j = Peers.resilience4j(1);
    private dev.failsafe.RateLimiter<Object> failsafe =
            dev.failsafe.RateLimiter.burstyBuilder(1, Duration.ofDays(1)).build();

    private static InMemoryRateLimiter limiter(Algorithm algorithm) {
        return new InMemoryRateLimiter(Peers.limit(algorithm, "1/d"));
    }

    /** Makes the limiters, and spends them where calls are to be refused. */
    @Setup(Level.Trial)
    public void setUp() {
        admitted = outcome.equals("admitted");
        if (admitted) {
            tokenBucket = new InMemoryRateLimiter(Peers.limit(Algorithm.TOKEN_BUCKET, "1000000000/s"));
            smoothBursty = new InMemoryRateLimiter(Peers.limit(Algorithm.SMOOTH_BURSTY, "1000000000/s"));
            warmUp = new InMemoryRateLimiter(Peers.limit(Algorithm.WARM_UP, "1000000000/s"));
            leakyBucket = new InMemoryRateLimiter(Peers.limit(Algorithm.LEAKY_BUCKET, "1000000000/s"));
            fixedWindow = new InMemoryRateLimiter(Peers.limit(Algorithm.FIXED_WINDOW, "400000000/s"));
            slidingWindow = new InMemoryRateLimiter(Peers.limit(Algorithm.SLIDING_WINDOW, "1000000000/s"));
            slidingLog = new InMemoryRateLimiter(Peers.limit(Algorithm.SLIDING_LOG, "1000/us"));
            guava = RateLimiter.create(1e9);
            bucket4j = Peers.bucket4j(1_000_000_000);
            resilience4j = Peers.resilience4j(1_000_000_000);
            failsafe = dev.failsafe.RateLimiter.burstyBuilder(1_000_000_000, Duration.ofSeconds(1))
                    .build();
        }
        Peers.sentinel(admitted ? 1e9 : 0);
        List<BooleanSupplier> all = List.of(
                this::tokenBucket,
                this::smoothBursty,
                this::warmUp,
                this::leakyBucket,
                this::fixedWindow,
                this::slidingWindow,
                this::slidingLog,
                () -> guava.tryAcquire(admitted ? 1 : 1_000_000),
                this::peerBucket4j,
                this::peerResilience4j,
                this::peerFailsafe);
        for (BooleanSupplier one : all) {
            boolean first = one.getAsBoolean();
            boolean later = one.getAsBoolean();
            if (!admitted && (!first || later)) {
                throw new IllegalStateException("one call a day must be admitted, and no more");
            }
        }
    }

    /** One clock read, and a compare-and-set or a volatile read. */
    @Benchmark
    public boolean floor() {
        long now = System.nanoTime();
        long seen = floor.get();
        return admitted ? floor.compareAndSet(seen, now) : now - seen > 0;
    }

    @Benchmark
    public boolean tokenBucket() {
        return tokenBucket.tryAcquire(null, 1);
    }

    @Benchmark
    public boolean smoothBursty() {
        return smoothBursty.tryAcquire(null, 1);
    }

    @Benchmark
    public boolean warmUp() {
        return warmUp.tryAcquire(null, 1);
    }

    @Benchmark
    public boolean leakyBucket() {
        return leakyBucket.tryAcquire(null, 1);
    }

    @Benchmark
    public boolean fixedWindow() {
        return fixedWindow.tryAcquire(null, 1);
    }

    @Benchmark
    public boolean slidingWindow() {
        return slidingWindow.tryAcquire(null, 1);
    }

    @Benchmark
    public boolean slidingLog() {
        return slidingLog.tryAcquire(null, 1);
    }

    @Benchmark
    public boolean peerGuava() {
        return guava.tryAcquire();
    }

    @Benchmark
    public boolean peerBucket4j() {
        return bucket4j.tryConsume(1);
    }

    @Benchmark
    public boolean peerResilience4j() {
        return resilience4j.acquirePermission();
    }

    @Benchmark
    public boolean peerFailsafe() {
        return failsafe.tryAcquirePermit();
    }

    @Benchmark
    public boolean peerSentinel() {
        return Peers.sentinel();
    }
}
