package io.ratelimited.benchmarks;

import com.google.common.util.concurrent.RateLimiter;
import io.github.bucket4j.Bucket;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import java.time.Duration;
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
@Measurement(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(
        value = 3,
        jvmArgsAppend = {"-Xms1g", "-Xmx1g", "-XX:+AlwaysPreTouch", "-XX:+UseTransparentHugePages"})
@State(Scope.Benchmark)
public class DecideBenchmark {

    /** Whether calls are admitted or refused. */
    @Param({"admitted", "refused"})
    public String outcome = "";

    private final AtomicLong floor = new AtomicLong();
    private boolean admitted;
    private RateLimiter guava = RateLimiter.create(1e9);
    private RateLimiter guavaWarmUp = RateLimiter.create(1e9, Duration.ofMillis(1));
    private Bucket bucket4j = Peers.bucket4j(1_000_000_000);
    private io.github.resilience4j.ratelimiter.RateLimiter resilience4j = Peers.resilience4j(1_000_000_000);
    private dev.failsafe.RateLimiter<Object> failsafe = failsafe(1_000_000_000, Duration.ofSeconds(1));

    private static dev.failsafe.RateLimiter<Object> failsafe(long permits, Duration period) {
        return dev.failsafe.RateLimiter.burstyBuilder(permits, period).build();
    }

    /** Spends the limiters of the other libraries where calls are to be refused. */
    @Setup(Level.Trial)
    public void setUp() {
        admitted = outcome.equals("admitted");
        if (!admitted) {
            guava = RateLimiter.create(1);
            guavaWarmUp = RateLimiter.create(1, Duration.ofSeconds(1));
            bucket4j = Peers.bucket4j(1);
            resilience4j = Peers.resilience4j(1);
            failsafe = failsafe(1, Duration.ofDays(1));
            spend(() -> guava.tryAcquire(1_000_000));
            spend(() -> guavaWarmUp.tryAcquire(1_000_000));
            spend(this::peerBucket4j);
            spend(this::peerResilience4j);
            spend(this::peerFailsafe);
        }
    }

    private static void spend(BooleanSupplier limiter) {
        if (!limiter.getAsBoolean() || limiter.getAsBoolean()) {
            throw new IllegalStateException("one call must be admitted, and no more");
        }
    }

    /** Our limiter, alone in its process as in most applications: no other algorithm has been seen. */
    @State(Scope.Benchmark)
    public static class Ours {

        /** What decides. */
        @Param({
            "TOKEN_BUCKET",
            "GCRA",
            "SMOOTH_BURSTY",
            "LEAKY_BUCKET",
            "FIXED_WINDOW",
            "WARM_UP",
            "SLIDING_WINDOW",
            "SLIDING_LOG"
        })
        public Algorithm algorithm = Algorithm.TOKEN_BUCKET;

        private InMemoryRateLimiter limiter = new InMemoryRateLimiter(Peers.limit(algorithm, "1/d"));

        /** Makes the limiter, and spends it where calls are to be refused. */
        @Setup(Level.Trial)
        public void setUp(DecideBenchmark benchmark) {
            limiter = new InMemoryRateLimiter(Peers.limit(algorithm, benchmark.admitted ? plenty() : "1/d"));
            if (!benchmark.admitted) {
                spend(() -> limiter.tryAcquire(null, 1));
            }
        }

        /** More than can be asked: the most that the algorithm can count, or remembers in little memory. */
        private String plenty() {
            return switch (algorithm) {
                case FIXED_WINDOW -> "400000000/s";
                case SLIDING_LOG -> "1000/us";
                default -> "1000000000/s";
            };
        }
    }

    /** Calls in flight, which are reserved and released. */
    @State(Scope.Benchmark)
    public static class InFlight {

        private InMemoryRateLimiter limiter = limiter(1);

        private static InMemoryRateLimiter limiter(int most) {
            return new InMemoryRateLimiter(Limit.of("benchmark", Algorithm.CONCURRENCY)
                    .maxConcurrent(most)
                    .build());
        }

        /** Makes the limiter, with a call in flight where others are to be refused. */
        @Setup(Level.Trial)
        public void setUp(DecideBenchmark benchmark) {
            limiter = limiter(benchmark.admitted ? 1000 : 1);
            if (!benchmark.admitted && limiter.reserve(null, 1, 0).isRefused()) {
                throw new IllegalStateException("one call must be admitted");
            }
        }
    }

    /** Calls in flight under a limit that finds itself. */
    @State(Scope.Benchmark)
    public static class Adaptive {

        private InMemoryRateLimiter limiter = limiter(1);

        private static InMemoryRateLimiter limiter(int most) {
            return new InMemoryRateLimiter(Limit.of("benchmark", Algorithm.ADAPTIVE)
                    .maxConcurrent(most)
                    .build());
        }

        /** Makes the limiter, with a call in flight where others are to be refused. */
        @Setup(Level.Trial)
        public void setUp(DecideBenchmark benchmark) {
            limiter = limiter(benchmark.admitted ? 1000 : 1);
            if (!benchmark.admitted && limiter.reserve(null, 1, 0).isRefused()) {
                throw new IllegalStateException("one call must be admitted");
            }
        }
    }

    /** The rule of Sentinel, which starts threads and writes logs. */
    @State(Scope.Benchmark)
    public static class Rule {

        /** Loads the rule. */
        @Setup(Level.Trial)
        public void setUp(DecideBenchmark benchmark) {
            Peers.sentinel(benchmark.admitted ? 1e9 : 0);
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
    public boolean ours(Ours ours) {
        return ours.limiter.tryAcquire(null, 1);
    }

    @Benchmark
    public boolean oursConcurrency(InFlight inFlight) {
        Reservation reservation = inFlight.limiter.reserve(null, 1, 0);
        reservation.release();
        return reservation.isRefused();
    }

    @Benchmark
    public boolean oursAdaptive(Adaptive adaptive) {
        Reservation reservation = adaptive.limiter.reserve(null, 1, 0);
        reservation.release();
        return reservation.isRefused();
    }

    @Benchmark
    public boolean peerGuava() {
        return guava.tryAcquire();
    }

    @Benchmark
    public boolean peerGuavaWarmUp() {
        return guavaWarmUp.tryAcquire();
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
    public boolean peerSentinel(Rule rule) {
        return Peers.sentinel();
    }
}
