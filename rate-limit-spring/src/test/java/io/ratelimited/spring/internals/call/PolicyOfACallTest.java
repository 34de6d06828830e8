package io.ratelimited.spring.internals.call;

import static io.ratelimited.core.Algorithm.CONCURRENCY;
import static io.ratelimited.core.Policy.WAIT;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Threads;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.springframework.beans.factory.ObjectProvider;

/** What applies to a call is read once, when it begins, whatever changes while its limits are asked. */
@Timeout(60)
final class PolicyOfACallTest {

    private final ManualTicker ticker = new ManualTicker();

    @Test
    void aChangeFromRejectToWaitWhileACallIsDecidedPutsItNotToSleep() {
        ContextRunner.limited(ticker)
                .withBean(Service.class)
                .withBean("operator", Operator.class)
                .run(context -> {
                    Service service = context.getBean(Service.class);
                    TestLimits limits = TestLimits.of(context);
                    service.order();
                    context.getBean(Operator.class).changes = true;
                    assertThatThrownBy(service::order).isInstanceOf(RateLimitExceededException.class);
                    assertThat(limits.limit("orders").policy()).isEqualTo(Policy.WAIT);
                    limits.change("orders", LimitChange.of("policy", "reject"));
                    assertThat(service.orderAsync().toCompletableFuture()).isCompletedExceptionally();
                    assertThat(ticker.sleeping()).isZero();
                });
    }

    /** The request of a method without expressions is made once, and anew when its policy has changed. */
    @Test
    void theNextCallFollowsTheChange() {
        ContextRunner.limited(ticker)
                .withBean(Service.class)
                .withBean("operator", Operator.class)
                .run(context -> {
                    Service service = context.getBean(Service.class);
                    TestLimits limits = TestLimits.of(context);
                    service.plain();
                    assertThat(service.plain().toCompletableFuture()).isCompletedExceptionally();
                    limits.change("plain", waiting());
                    CompletionStage<String> waits = service.plain();
                    assertThat(waits.toCompletableFuture()).isNotDone();
                    limits.change("plain", LimitChange.of("policy", "reject"));
                    assertThat(service.plain().toCompletableFuture()).isCompletedExceptionally();
                    waits.toCompletableFuture().cancel(false);
                });
    }

    /**
     * A call from after the change holds at once what none waits for under its rules, and one from before waits for it. Each then
     * waits for the other, which ends with the first longest wait.
     */
    @Test
    void callsFromBeforeAndAfterAChangeFromWaitToRejectWaitForEachOtherNoLongerThanTheirPoliciesAllow() {
        ContextRunner.limited(ticker)
                .withBean(Service.class)
                .withBean("operator", Operator.class)
                .run(context -> {
                    Service service = context.getBean(Service.class);
                    TestLimits limits = TestLimits.of(context);
                    CompletableFuture<String> work = new CompletableFuture<>();
                    service.cars(work);
                    CompletableFuture<String> done = CompletableFuture.completedFuture("done");
                    CompletableFuture<String> before = service.both(done).toCompletableFuture();
                    limits.change("rooms", LimitChange.of("policy", "reject"));
                    CompletableFuture<String> after = service.both(done).toCompletableFuture();
                    work.complete("done");
                    Threads.until(() -> limits.limit("rooms").waiting() == 1);
                    assertThat(limits.limit("cars").waiting()).isOne();
                    ticker.advance(Duration.ofHours(1).minusNanos(1));
                    assertThat(before).isNotDone();
                    assertThat(after).isNotDone();
                    ticker.advance(Duration.ofNanos(1));
                    assertThatThrownBy(before::get).hasCauseInstanceOf(RateLimitExceededException.class);
                    assertThat(after.get()).isEqualTo("done");
                    Threads.until(() -> limits.peek("cars", null).remaining() == 1);
                    Threads.until(() -> limits.peek("rooms", null).remaining() == 1);
                    assertThat(ticker.sleeping()).isZero();
                });
    }

    /** A double cannot tell it from 1. */
    @Test
    void aDecimalNumberALittleAboveAWholeOneIsRoundedUp() {
        ContextRunner.limited(ticker)
                .withBean(Service.class)
                .withBean("operator", Operator.class)
                .run(context -> {
                    Service service = context.getBean(Service.class);
                    TestLimits limits = TestLimits.of(context);
                    service.cost(new BigDecimal("1.000000000000000000001"));
                    assertThat(limits.peek("cost", null).remaining()).isEqualTo(98);
                    service.cost(new BigDecimal("1.000"));
                    service.cost(new BigDecimal("1E-1000000000"));
                    assertThat(limits.peek("cost", null).remaining()).isEqualTo(96);
                    service.heavy(new BigDecimal("1.000000000000000000001"));
                    assertThat(limits.peek("heavy", null).remaining()).isEqualTo(98);
                    service.heavy(new BigDecimal("2.00"));
                    assertThat(limits.peek("heavy", null).remaining()).isEqualTo(96);
                });
    }

    private static LimitChange waiting() {
        return LimitChange.of("policy", "wait").with("max-wait", "2h");
    }

    /** Changes a limit while the key of another one is evaluated. */
    public static class Operator {

        private final ObjectProvider<RateLimitOperations> limits;
        private boolean changes;

        public Operator(ObjectProvider<RateLimitOperations> limits) {
            this.limits = limits;
        }

        public String key() {
            if (changes) {
                limits.getObject().change("orders", waiting());
            }
            return "key";
        }
    }

    public static class Service {

        @RateLimited(name = "orders", rate = "1/h", burst = 1)
        @RateLimited(name = "customers", rate = "100/h", key = "@operator.key()")
        public void order() {}

        @RateLimited(name = "orders", rate = "1/h", burst = 1)
        @RateLimited(name = "customers", rate = "100/h", key = "@operator.key()")
        public CompletionStage<String> orderAsync() {
            return CompletableFuture.completedFuture("done");
        }

        @RateLimited(name = "plain", rate = "1/h", burst = 1)
        public CompletionStage<String> plain() {
            return CompletableFuture.completedFuture("done");
        }

        @RateLimited(name = "cars", algorithm = CONCURRENCY, maxConcurrent = 1, policy = WAIT, maxWait = "2h")
        public CompletionStage<String> cars(CompletionStage<String> work) {
            return work;
        }

        @RateLimited(name = "cars", algorithm = CONCURRENCY, maxConcurrent = 1, policy = WAIT, maxWait = "2h")
        @RateLimited(name = "rooms", algorithm = CONCURRENCY, maxConcurrent = 1, policy = WAIT, maxWait = "1h")
        public CompletionStage<String> both(CompletionStage<String> work) {
            return work;
        }

        @RateLimited(name = "cost", rate = "100/d", charge = "#amount")
        public void cost(BigDecimal amount) {}

        @RateLimited(name = "heavy", rate = "100/d", permits = "#amount")
        public void heavy(BigDecimal amount) {}
    }
}
