package io.ratelimited.spring.internals.overload;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.ReservedPermits;
import io.ratelimited.spring.TestLimits;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import reactor.core.publisher.Mono;

/** Calls of the best class go while others are refused. */
@ExtendWith(CapturedLog.Capture.class)
@Tag("slow")
class PriorityTest {

    enum Kind {
        critical,
        batch
    }

    static class Calls {

        @RateLimited(name = "calls", priority = "#kind")
        public String call(@Nullable Object kind, Callable<String> body) throws Exception {
            return body.call();
        }

        @RateLimited(name = "calls", priority = "'critical'")
        public Mono<String> best() {
            return Mono.just("best");
        }
    }

    private static ContextRunner runner(Algorithm algorithm) {
        return ContextRunner.with(ContextRunner.limited(), Calls.class)
                .withPropertyValues(
                        "rate-limit.limits.calls.algorithm=" + algorithm,
                        "rate-limit.limits.calls.max-concurrent=2",
                        "rate-limit.limits.calls.priorities=critical,batch");
    }

    @ParameterizedTest
    @EnumSource(names = {"CONCURRENCY", "ADAPTIVE"})
    void theBestClassGoesWhereOthersAreRefused(Algorithm algorithm) {
        runner(algorithm).run(context -> {
            Calls calls = context.getBean(Calls.class);
            String answer = calls.call(Kind.batch, () -> {
                for (Object other : new Object[] {Kind.batch, "batch", "", "unknown"}) {
                    assertThatThrownBy(() -> calls.call(other, () -> "no place"))
                            .as(String.valueOf(other))
                            .isInstanceOf(RateLimitExceededException.class);
                }
                assertThatThrownBy(() -> calls.call(null, () -> "no place"))
                        .isInstanceOf(RateLimitExceededException.class);
                assertThat(calls.best().block()).isEqualTo("best");
                return calls.call("critical", () -> "went");
            });
            assertThat(answer).isEqualTo("went");
        });
    }

    @ParameterizedTest
    @EnumSource(names = {"CONCURRENCY", "ADAPTIVE"})
    void codeWithoutAnnotationsStatesTheClassOfItsCalls(Algorithm algorithm) {
        runner(algorithm).run(context -> {
            RateLimits limits = context.getBean(RateLimits.class);
            RateLimits best = limits.withPriority("critical");
            limits.withPriority("batch").execute("calls", null, () -> {
                for (RateLimits other : new RateLimits[] {
                    limits, best.withPriority("batch"), best.withPriority(" "), best.withPriority(null)
                }) {
                    assertThat(other.peek("calls", null).admitted()).isFalse();
                    assertThatThrownBy(() -> other.execute("calls", null, () -> "no place"))
                            .isInstanceOf(RateLimitExceededException.class);
                    assertThat(other.executeAsync("calls", null, () -> CompletableFuture.completedFuture("no place")))
                            .isCompletedExceptionally();
                    assertThatThrownBy(() -> other.reserve("calls", null, 1))
                            .isInstanceOf(RateLimitExceededException.class);
                    assertThat(other.reserveAsync("calls", null, 1)).isCompletedExceptionally();
                }
                assertThat(best.peek("calls", null).admitted()).isTrue();
                assertThat(best.<String>execute("calls", null, () -> "went")).isEqualTo("went");
                assertThat(best.executeAsync("calls", null, () -> CompletableFuture.completedFuture("went")))
                        .isCompletedWithValue("went");
                best.reserve("calls", null, 1).close();
                best.reserveAsync("calls", null, 1).join().close();
                return "done";
            });
        });
    }

    @Test
    void aClassThatCodeStatesAndNoPropertyKnowsIsTheOneInTheMiddle(CapturedLog output) {
        runner(Algorithm.CONCURRENCY)
                .withPropertyValues(
                        "rate-limit.limits.calls.max-concurrent=3",
                        "rate-limit.limits.calls.priorities=critical,normal,batch",
                        "rate-limit.limits.bucket.rate=1/h",
                        "rate-limit.limits.equal.algorithm=adaptive")
                .run(context -> {
                    RateLimits limits = context.getBean(RateLimits.class);
                    RateLimits gold = limits.withPriority("gold");
                    ReservedPermits first = gold.reserve("calls", null, 1);
                    assertThatThrownBy(() -> limits.withPriority("batch").reserve("calls", null, 1))
                            .isInstanceOf(RateLimitExceededException.class);
                    ReservedPermits second = gold.reserve("calls", null, 1);
                    assertThatThrownBy(() -> gold.reserve("calls", null, 1))
                            .isInstanceOf(RateLimitExceededException.class);
                    limits.withPriority("critical").reserve("calls", null, 1).close();
                    second.close();
                    first.close();
                    assertThat(gold.tryAcquire("bucket", "ann")).isTrue();
                    assertThat(gold.<String>execute("equal", null, () -> "went"))
                            .isEqualTo("went");
                });
        assertThat(output)
                .containsOnlyOnce("has no priority 'gold'")
                .contains("Rate limit 'calls' has no priority 'gold'");
    }

    static class Jobs {

        @RateLimited(name = "jobs", key = "#user", priority = "#kind", policy = Policy.WAIT, maxWait = "1m")
        public CompletableFuture<Void> run(String user, Kind kind, Runnable job) {
            job.run();
            return CompletableFuture.completedFuture(null);
        }
    }

    /** By the priorities of its tier, the call in the method is behind the call in code; by those of the limit, it is not. */
    @Test
    void aCallerWithAnOverrideHasThePrioritiesOfItsTier() {
        ContextRunner.with(ContextRunner.limited(), Jobs.class)
                .withPropertyValues(
                        "rate-limit.limits.jobs.algorithm=concurrency",
                        "rate-limit.limits.jobs.max-concurrent=10",
                        "rate-limit.limits.jobs.priorities=critical,batch",
                        "rate-limit.limits.jobs.tiers.vip.max-concurrent=1",
                        "rate-limit.limits.jobs.tiers.vip.priorities=interactive,critical,batch")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    limits.override("jobs", "acme", LimitChange.tier("vip"), null);
                    List<String> order = new CopyOnWriteArrayList<>();
                    ReservedPermits held = limits.reserve("jobs", "acme", 1);
                    CompletableFuture<Void> batch =
                            context.getBean(Jobs.class).run("acme", Kind.batch, () -> order.add("batch"));
                    CompletableFuture<Void> critical = limits.withPriority("critical")
                            .executeAsync(
                                    "jobs", "acme", () -> CompletableFuture.runAsync(() -> order.add("critical")));
                    assertThat(limits.limit("jobs").waiting()).isEqualTo(2);
                    held.close();
                    CompletableFuture.allOf(batch, critical)
                            .orTimeout(20, TimeUnit.SECONDS)
                            .join();
                    assertThat(order).containsExactly("critical", "batch");
                });
    }

    @Test
    void aClassHasNoMeaningWhereNothingIsLimited() {
        runner(Algorithm.CONCURRENCY)
                .withPropertyValues("rate-limit.enabled=false", "rate-limit.limits.calls.max-concurrent=1")
                .run(context -> {
                    RateLimits batch = context.getBean(RateLimits.class).withPriority("batch");
                    assertThat(batch.<String>execute(
                                    "calls", null, () -> batch.execute("calls", null, () -> "both went")))
                            .isEqualTo("both went");
                });
    }

    @Test
    void aClassThatIsNotConfiguredIsWarnedOfOnceAndCountsAsNone(CapturedLog output) {
        RecordingBackend backend = new RecordingBackend();
        runner(Algorithm.CONCURRENCY)
                .withBean(RecordingBackend.class, () -> backend)
                .withPropertyValues("rate-limit.backend=recording")
                .run(context -> {
                    Calls calls = context.getBean(Calls.class);
                    calls.call("gold\nmedal", () -> "done");
                    calls.call("gold", () -> "done");
                    calls.call(Optional.of(Kind.critical), () -> "done");
                    calls.best().block();
                });
        assertThat(backend.ranks).containsExactly(RateLimiter.NO_RANK, RateLimiter.NO_RANK, 0, 0);
        assertThat(output)
                .containsOnlyOnce("Rate limit 'calls' has no priority 'gold")
                .contains("Priorities: [critical, batch] [RL-218]")
                .doesNotContain("gold\nmedal");
    }

    @Test
    void anExpressionThatFailsMakesNoCallAndTakesNoPlace() {
        runner(Algorithm.CONCURRENCY).withBean(Failing.class).run(context -> {
            Failing failing = context.getBean(Failing.class);
            assertThatThrownBy(() -> failing.call(null, () -> "no"))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("priority of rate limit 'calls'");
            assertThat(failing.call("critical", () -> failing.call("critical", () -> "both")))
                    .isEqualTo("both");
        });
    }

    static class Failing {

        @RateLimited(name = "calls", priority = "#kind.toString()")
        public String call(@Nullable Object kind, Callable<String> body) throws Exception {
            return body.call();
        }
    }
}
