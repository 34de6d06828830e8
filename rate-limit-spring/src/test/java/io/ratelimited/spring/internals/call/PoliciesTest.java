package io.ratelimited.spring.internals.call;

import static io.ratelimited.core.Algorithm.CONCURRENCY;
import static io.ratelimited.core.Algorithm.LEAKY_BUCKET;
import static io.ratelimited.core.Policy.SHADOW;
import static io.ratelimited.core.Policy.WAIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.backend.LimiterFactory;
import java.lang.reflect.Proxy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** What becomes of a blocking call over its limit, with time moved by hand. */
@Timeout(60)
class PoliciesTest {

    private final ManualTicker ticker = new ManualTicker();
    private final ContextRunner runner = ContextRunner.limited(ticker).withBean(Calls.class);

    private void run(Consumer<Calls> test) {
        runner.run(context -> {
            assertThat(context).hasNotFailed();
            test.accept(context.getBean(Calls.class));
        });
    }

    @Test
    void aRefusedCallIsNotMadeAndGoesWhenItsTimeHasCome() {
        run(bean -> {
            bean.reject();
            bean.reject();
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(bean::reject)
                    .satisfies(refusal -> {
                        assertThat(refusal.limit()).isEqualTo("Calls.reject");
                        assertThat(refusal.decision().retryAfter()).isEqualTo(Duration.ofMillis(500));
                    });
            assertThat(bean.made()).hasSize(2);
            ticker.advanceNanos(499_999_999);
            refused(bean::reject);
            ticker.advanceNanos(1);
            bean.reject();
            assertThat(bean.made()).hasSize(3);
        });
    }

    @Test
    void aWaitOfExactlyTheLongestIsGranted() {
        ticker.autoAdvance();
        run(bean -> {
            bean.waiting();
            bean.waiting();
            bean.waiting();
            assertThat(ticker.nanos()).isEqualTo(2_000_000_000L);
            assertThat(bean.made()).hasSize(3);
        });
    }

    @Test
    void aWaitThatWouldTakeLongerIsRefusedWithoutSleeping() throws Exception {
        runner.run(context -> {
            Calls bean = context.getBean(Calls.class);
            bean.waiting();
            Caller first = Caller.of(bean::waiting);
            awaitSleeping(1);
            Caller second = Caller.of(bean::waiting);
            awaitSleeping(2);
            refused(bean::waiting);
            assertThat(ticker.nanos()).isZero();
            ticker.advance(Duration.ofSeconds(1));
            assertThat(first.outcome()).isNull();
            assertThat(bean.made()).hasSize(2);
            ticker.advance(Duration.ofSeconds(1));
            assertThat(second.outcome()).isNull();
        });
    }

    @Test
    void queuedCallsGoOneIntervalApart() {
        ticker.autoAdvance();
        run(bean -> {
            List<Long> times = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                bean.queue();
                times.add(ticker.nanos());
            }
            assertThat(times).containsExactly(0L, 100_000_000L, 200_000_000L, 300_000_000L);
        });
    }

    @Test
    void moreSleepersThanMayWaitAreRefusedAtOnce() {
        runner.withPropertyValues("rate-limit.limits[Calls.waiting].max-waiting=1")
                .run(context -> {
                    Calls bean = context.getBean(Calls.class);
                    bean.waiting();
                    Caller sleeper = Caller.of(bean::waiting);
                    awaitSleeping(1);
                    refused(bean::waiting);
                    ticker.advance(Duration.ofSeconds(1));
                    assertThat(sleeper.outcome()).isNull();
                });
    }

    @Test
    void aLimitThatLetsNobodyWaitAllowsNobodyToSleep() {
        runner.withPropertyValues("rate-limit.limits[Calls.reject].max-waiting=1000")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    LimitRequest waiting = LimitRequest.of(limits.configured("Calls.waiting"), null, 1, null);
                    LimitRequest rejecting = LimitRequest.of(limits.configured("Calls.reject"), null, 1, null);
                    assertThat(LimitRequest.statedMaxWaiting(new LimitRequest[] {waiting, rejecting}))
                            .isZero();
                });
    }

    @Test
    void anInterruptedCallGivesItsPermitsBackKeepsTheFlagAndFails() {
        run(bean -> {
            bean.waiting();
            Caller sleeper = Caller.of(bean::waiting);
            awaitSleeping(1);
            sleeper.thread.interrupt();
            assertThat(sleeper.outcome())
                    .isInstanceOf(CancellationException.class)
                    .hasMessageContaining("interrupted while waiting for rate limit 'Calls.waiting'")
                    .hasCauseInstanceOf(InterruptedException.class);
            assertThat(sleeper.interrupted).isTrue();
            assertThat(bean.made()).hasSize(1);
            ticker.advance(Duration.ofSeconds(1));
            bean.waiting();
            assertThat(ticker.nanos()).isEqualTo(1_000_000_000L);
        });
    }

    @Test
    void aShadowedCallAlwaysGoesAndIsTold() {
        List<Outcome> outcomes = new ArrayList<>();
        DecisionObserver observer = decision -> outcomes.add(decision.outcome());
        runner.withBean(DecisionObserver.class, () -> observer).run(context -> {
            Calls bean = context.getBean(Calls.class);
            bean.shadow();
            bean.shadow();
            ticker.advance(Duration.ofSeconds(1));
            bean.shadow();
            assertThat(outcomes).containsExactly(Outcome.ADMITTED, Outcome.SHADOWED, Outcome.ADMITTED);
            assertThat(bean.made()).hasSize(3);
        });
    }

    @Test
    @ExtendWith(CapturedLog.Capture.class)
    void aDryRunWhoseBackendFailsIsLoggedOncePerMinute(CapturedLog log) {
        LimiterFactory unavailable = new LimiterFactory() {
            @Override
            public String backend() {
                return "unavailable";
            }

            @Override
            public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
                return (RateLimiter) Proxy.newProxyInstance(
                        RateLimiter.class.getClassLoader(),
                        new Class<?>[] {RateLimiter.class},
                        (proxy, method, arguments) -> {
                            if (method.getName().equals("limit")) {
                                return limit;
                            }
                            throw new IllegalStateException("unavailable");
                        });
            }
        };
        runner.withBean(LimiterFactory.class, () -> unavailable)
                .withPropertyValues("rate-limit.limits[Calls.shadow].backend=unavailable")
                .run(context -> {
                    Calls bean = context.getBean(Calls.class);
                    for (int i = 0; i < 1_000; i++) {
                        bean.shadow();
                    }
                    assertThat(log.toString().split("could not count a call", -1))
                            .hasSize(2);
                    ticker.advance(Duration.ofMinutes(1));
                    bean.shadow();
                    assertThat(log.toString().split("could not count a call", -1))
                            .hasSize(3);
                    assertThat(bean.made()).hasSize(1_001);
                });
    }

    @Test
    @ExtendWith(CapturedLog.Capture.class)
    void anObserverThatFailsIsLoggedOncePerMinute(CapturedLog log) {
        DecisionObserver broken = decision -> {
            throw new IllegalStateException("broken");
        };
        runner.withBean(DecisionObserver.class, () -> broken).run(context -> {
            Calls bean = context.getBean(Calls.class);
            for (int i = 0; i < 1_000; i++) {
                bean.shadow();
            }
            assertThat(log.toString().split("IllegalStateException: broken", -1))
                    .hasSize(2);
        });
    }

    /** What the limit would have rejected, once its calls wait. */
    @ParameterizedTest
    @CsvSource({
        "shadowedQueue, defaults.headers=, 20, 20",
        "shadowedWait, defaults.headers=, 15, 15",
        "queue, defaults.policy=shadow, 5, 5",
        "queue, limits[Calls.queue].policy=shadow, 5, 5",
        "waiting, limits[Calls.waiting].policy=shadow, 3, 2",
        "reject, limits[Calls.reject].policy=shadow, 2, 2",
    })
    void aShadowedCallThatWouldHaveWaitedIsNotOverTheLimit(String call, String property, int within, int later) {
        List<Outcome> outcomes = new ArrayList<>();
        DecisionObserver observer = decision -> outcomes.add(decision.outcome());
        runner.withBean(DecisionObserver.class, () -> observer)
                .withPropertyValues(property.endsWith("=") ? new String[0] : new String[] {"rate-limit." + property})
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    Calls bean = context.getBean(Calls.class);
                    for (int i = 0; i < 40; i++) {
                        call(bean, call);
                    }
                    assertThat(ticker.nanos()).isZero();
                    assertThat(Collections.frequency(outcomes, Outcome.ADMITTED))
                            .isEqualTo(within);
                    assertThat(Collections.frequency(outcomes, Outcome.SHADOWED))
                            .isEqualTo(40 - within);
                    outcomes.clear();
                    ticker.advance(Duration.ofSeconds(2));
                    for (int i = 0; i < 40; i++) {
                        call(bean, call);
                    }
                    assertThat(Collections.frequency(outcomes, Outcome.ADMITTED))
                            .isEqualTo(later);
                });
    }

    /** Nobody waits for a place in a dry run. */
    @Test
    void aShadowedCallInFlightThatWouldHaveWaitedCountsAsOverTheLimit() {
        List<Outcome> outcomes = new ArrayList<>();
        DecisionObserver observer = decision -> outcomes.add(decision.outcome());
        runner.withBean(DecisionObserver.class, () -> observer)
                .withPropertyValues("rate-limit.limits[Calls.inFlight].policy=shadow")
                .withPropertyValues("rate-limit.limits[Calls.inFlight].max-wait=2s")
                .run(context -> {
                    Calls bean = context.getBean(Calls.class);
                    bean.inFlight(() -> bean.inFlight(() -> {}));
                    bean.inFlight(() -> {});
                    assertThat(outcomes).containsExactly(Outcome.ADMITTED, Outcome.SHADOWED, Outcome.ADMITTED);
                });
    }

    @Test
    void severalLimitsAdmitAllOrChargeNone() {
        run(bean -> {
            bean.several("ann");
            for (int i = 0; i < 5; i++) {
                refused(() -> bean.several("ann"));
            }
            bean.several("bob");
            bean.several("cid");
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> bean.several("dan"))
                    .satisfies(refusal -> assertThat(refusal.limit()).isEqualTo("Calls.several#2"));
            ticker.advance(Duration.ofHours(1));
            bean.several("dan");
        });
    }

    @Test
    void onlyTheLimitThatLetACallWaitReportsTheWait() {
        List<String> told = new ArrayList<>();
        ticker.autoAdvance();
        runner.withBean(
                        DecisionObserver.class,
                        () -> decision ->
                                told.add(decision.limit().name() + " " + decision.outcome() + " " + decision.waited()))
                .run(context -> {
                    context.getBean(Calls.class).paced();
                    context.getBean(Calls.class).paced();
                });
        assertThat(told)
                .containsExactly(
                        "pace ADMITTED PT0S", "wide ADMITTED PT0S", "pace DELAYED PT0.1S", "wide ADMITTED PT0S");
    }

    @Test
    void aFallbackAnswersARefusalWithOrWithoutIt() {
        run(bean -> {
            assertThat(bean.withFallback("a")).isEqualTo("called a");
            assertThat(bean.withFallback("b")).isEqualTo("instead of b");
            assertThat(bean.withToldFallback("a")).isEqualTo("called a");
            assertThat(bean.withToldFallback("b")).isEqualTo("told of Calls.withToldFallback and b");
        });
    }

    @Test
    void aFallbackOfAGenericTypeHasItsTypeVariables() {
        ContextRunner.with(ContextRunner.limited(ticker), FindsWords.class, FindsNumbers.class)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    FindsWords words = context.getBean(FindsWords.class);
                    assertThat(words.find("a")).isEqualTo("found a");
                    assertThat(words.find("b")).isEqualTo("nothing for b");
                    FindsNumbers numbers = context.getBean(FindsNumbers.class);
                    assertThat(numbers.find(1)).isEqualTo("found 1");
                    assertThat(numbers.find(2)).isEqualTo("no number 2 by finding");
                });
    }

    @Test
    void aFallbackNeverAnswersTheMethodsOwnException() {
        run(bean -> {
            assertThatIllegalStateException()
                    .isThrownBy(() -> bean.withFallback("broken"))
                    .withMessage("business");
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> bean.outer("inner"))
                    .satisfies(refusal -> assertThat(refusal.limit()).isEqualTo("elsewhere"));
        });
    }

    @Test
    void anExceptionOfTheFallbackIsThrownAsItIs() {
        run(bean -> {
            bean.failingFallback();
            assertThatIllegalStateException()
                    .isThrownBy(bean::failingFallback)
                    .withMessage("fallback")
                    .withNoCause();
        });
    }

    @Test
    void aCallInFlightCountsUntilItEndsEvenByAnException() {
        run(bean -> {
            bean.inFlight(() -> refused(() -> bean.inFlight(() -> {})));
            bean.inFlight(() -> {});
            for (int i = 0; i < 3; i++) {
                assertThatIllegalStateException()
                        .isThrownBy(() -> bean.inFlight(() -> {
                            throw new IllegalStateException("business");
                        }));
            }
            bean.inFlight(() -> {});
        });
    }

    @Test
    void aKeyThatFailsChargesNoOtherLimit() {
        run(bean -> {
            assertThatIllegalStateException().isThrownBy(() -> bean.secondFails(null));
            bean.secondFails("ann");
            refused(() -> bean.secondFails("bob"));
        });
    }

    private static void call(Calls bean, String name) {
        switch (name) {
            case "shadowedQueue" -> bean.shadowedQueue();
            case "shadowedWait" -> bean.shadowedWait();
            case "queue" -> bean.queue();
            case "waiting" -> bean.waiting();
            default -> bean.reject();
        }
    }

    private void awaitSleeping(int sleepers) {
        while (ticker.sleeping() < sleepers) {
            Thread.onSpinWait();
        }
    }

    private static void refused(Runnable call) {
        assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(call::run);
    }

    /** A call in a thread of its own. */
    private static final class Caller {

        private final Thread thread;
        private final AtomicReference<Throwable> failure = new AtomicReference<>();
        private final AtomicBoolean interrupted = new AtomicBoolean();
        private final CompletableFuture<Boolean> ended = new CompletableFuture<>();

        private Caller(Runnable call) {
            thread = new Thread(() -> {
                try {
                    call.run();
                } catch (Throwable ex) {
                    failure.set(ex);
                }
                interrupted.set(Thread.currentThread().isInterrupted());
                ended.complete(true);
            });
        }

        static Caller of(Runnable call) {
            Caller caller = new Caller(call);
            caller.thread.start();
            return caller;
        }

        /** What the call threw; null if nothing. */
        Throwable outcome() {
            assertThat(ended.join()).isTrue();
            return failure.get();
        }
    }

    static class Calls {

        private final List<String> made = java.util.Collections.synchronizedList(new ArrayList<>());

        List<String> made() {
            return made;
        }

        @RateLimited(rate = "2/s")
        public void reject() {
            made.add("reject");
        }

        @RateLimited(rate = "1/s", policy = WAIT, maxWait = "2s")
        public void waiting() {
            made.add("waiting");
        }

        @RateLimited(algorithm = LEAKY_BUCKET, rate = "10/s", burst = 5)
        public void queue() {}

        @RateLimited(algorithm = LEAKY_BUCKET, rate = "10/s", burst = 20, maxWait = "2s", policy = SHADOW)
        public void shadowedQueue() {}

        @RateLimited(rate = "10/s", burst = 5, maxWait = "1s", policy = SHADOW)
        public void shadowedWait() {}

        @RateLimited(rate = "1/s", policy = SHADOW)
        public void shadow() {
            made.add("shadow");
        }

        @RateLimited(rate = "1/h", key = "#user")
        @RateLimited(rate = "3/h")
        public void several(String user) {}

        @RateLimited(name = "pace", algorithm = LEAKY_BUCKET, rate = "10/s", burst = 10, maxWait = "10s")
        @RateLimited(name = "wide", rate = "100/s", policy = WAIT, maxWait = "10s")
        public void paced() {}

        @RateLimited(rate = "1/h")
        @RateLimited(rate = "1/h", key = "#user.length()")
        public void secondFails(String user) {}

        @RateLimited(rate = "1/h", key = "#what == 'broken'", fallback = "instead")
        public String withFallback(String what) {
            if (what.equals("broken")) {
                throw new IllegalStateException("business");
            }
            return "called " + what;
        }

        @SuppressWarnings("unused")
        private String instead(String what) {
            return "instead of " + what;
        }

        @RateLimited(rate = "1/h", fallback = "told")
        public String withToldFallback(String what) {
            return "called " + what;
        }

        String told(String what, RateLimitExceededException refusal) {
            return "told of " + refusal.limit() + " and " + what;
        }

        @RateLimited(rate = "1/h", fallback = "instead")
        public String outer(String what) {
            throw new RateLimitExceededException(new io.ratelimited.core.Decision(
                    "elsewhere",
                    false,
                    Duration.ZERO,
                    null,
                    false,
                    0,
                    Duration.ZERO,
                    io.ratelimited.core.Decision.Source.MEMORY));
        }

        @RateLimited(rate = "1/h", fallback = "fails")
        public void failingFallback() {}

        void fails() {
            throw new IllegalStateException("fallback");
        }

        @RateLimited(algorithm = CONCURRENCY, maxConcurrent = 1)
        public void inFlight(Runnable body) {
            body.run();
        }
    }

    interface Finds<T> {
        @RateLimited(name = "finding words", rate = "1/h", fallback = "nothing")
        String find(T what);

        default String nothing(T what) {
            return "nothing for " + what;
        }
    }

    static class FindsWords implements Finds<String> {
        @Override
        public String find(String what) {
            return "found " + what;
        }
    }

    static class FindsAny<T> {
        @RateLimited(name = "finding", rate = "1/h", fallback = "none")
        public String find(T what) {
            return "found " + what;
        }
    }

    static class FindsNumbers extends FindsAny<Integer> {
        String none(Integer what, RateLimitExceededException refusal) {
            return "no number " + what + " by " + refusal.limit();
        }
    }
}
