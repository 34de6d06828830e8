package io.ratelimited.benchmarks;

import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimitOperations;
import java.util.concurrent.TimeUnit;
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
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;

/** A call with a key, of a limit some of whose callers have a budget of their own. All calls are admitted. */
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 8, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Measurement(iterations = 3, time = 500, timeUnit = TimeUnit.MILLISECONDS)
@Fork(
        value = 2,
        jvmArgsAppend = {"-Xms1g", "-Xmx1g", "-XX:+AlwaysPreTouch", "-XX:+UseTransparentHugePages"})
@State(Scope.Benchmark)
public class BudgetsBenchmark {

    private static final LimitChange BUDGET = LimitChange.rate("900000000/s");

    /** Callers that have one; "caller 0" is the first of them. */
    @Param({"0", "1", "10000"})
    private int budgets;

    private AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext();
    private SpringBenchmark.Service service = new SpringBenchmark.Service();

    /** Starts the application, and assigns the budgets. */
    @Setup(Level.Trial)
    public void setUp() {
        context = new AnnotationConfigApplicationContext(SpringBenchmark.Application.class);
        service = context.getBean(SpringBenchmark.Service.class);
        RateLimitOperations limits = context.getBean(RateLimitOperations.class);
        service.limitedByParameter("another");
        for (int i = 0; i < budgets; i++) {
            limits.override("Service.limitedByParameter", "caller " + i, BUDGET, null);
        }
    }

    /** Stops the application. */
    @TearDown(Level.Trial)
    public void tearDown() {
        context.close();
    }

    @Benchmark
    public String without() {
        return service.limitedByParameter("another");
    }

    @Benchmark
    public String first() {
        return service.limitedByParameter("caller 0");
    }
}
