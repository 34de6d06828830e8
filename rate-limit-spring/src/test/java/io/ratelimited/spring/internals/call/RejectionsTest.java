package io.ratelimited.spring.internals.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.backend.LimiterFactory;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.core.annotation.Order;

/** What is recorded of a refused call, and how often its limit is asked. */
final class RejectionsTest {

    private final ManualTicker ticker = new ManualTicker();
    private final List<String> refused = new ArrayList<>();
    private final List<String> asked = new ArrayList<>();

    private final ContextRunner runner = ContextRunner.limited(ticker)
            .withBean(Service.class)
            .withBean(DecisionObserver.class, () -> decision -> {
                if (decision.outcome() == Outcome.REJECTED) {
                    refused.add(decision.limit().name() + " " + decision.key());
                }
            });

    @Test
    void refusedKeyIsRecordedWhereAMethodHasALimitForTwoKeys() {
        runner.run(context -> {
            Service service = context.getBean(Service.class);
            service.transfer("Ada", "Grace");
            assertThatThrownBy(() -> service.transfer("Alan", "Grace")).isInstanceOf(RateLimitExceededException.class);
            assertThat(service.transferAsync("Alan", "Grace")).isCompletedExceptionally();
            assertThatThrownBy(() -> service.transfer("Ada", "Alan")).isInstanceOf(RateLimitExceededException.class);
            assertThat(refused).containsExactly("account Grace", "account Grace", "account Ada");
        });
    }

    @Test
    void bothUsesOfOneKeyAreRecorded() {
        runner.run(context -> {
            assertThatThrownBy(() -> context.getBean(Service.class).transfer("Ada", "Ada"))
                    .isInstanceOfSatisfying(
                            RateLimitExceededException.class,
                            refusal -> assertThat(refusal.decision().never()).isTrue());
            assertThat(refused).containsExactly("account Ada", "account Ada");
        });
    }

    @Test
    void callWhoseSecondKeyIsMissingIsRecordedAsSuch() {
        runner.withPropertyValues("rate-limit.limits.account.missing-key=deny").run(context -> {
            Service service = context.getBean(Service.class);
            assertThatThrownBy(() -> service.transfer("Ada", null)).isInstanceOf(RateLimitExceededException.class);
            assertThat(refused).containsExactly("account null");
        });
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void refusedCallIsDecidedOnce(boolean keyed) {
        runner.withBean(CountingFactory.class, () -> new CountingFactory(ticker, asked))
                .run(context -> {
                    Service service = context.getBean(Service.class);
                    Runnable call = keyed ? () -> service.keyed("Ada") : service::plain;
                    call.run();
                    assertThat(asked).containsExactly("tryAcquire");
                    asked.clear();
                    assertThatThrownBy(call::run)
                            .isInstanceOfSatisfying(
                                    RateLimitExceededException.class,
                                    refusal -> assertThat(refusal.decision().retryAfter())
                                            .hasMinutes(60));
                    assertThat(asked).containsExactly("tryAcquire", "peek");
                    assertThat(refused).hasSize(1);
                });
    }

    @Test
    void fallbackIsForRefusalsOfTheCallItselfOnly() {
        runner.run(context -> {
            Service service = context.getBean(Service.class);
            RateLimitExceededException inner = new RateLimitExceededException(
                    context.getBean(RateLimits.class).peek("account", "nobody"));
            assertThatThrownBy(() -> service.failing(inner)).isSameAs(inner);
            assertThat(service.failing(inner)).isEqualTo("instead");
        });
    }

    static class Service {

        @RateLimited(name = "account", rate = "1/h", key = "#from")
        @RateLimited(name = "account", rate = "1/h", key = "#to")
        public void transfer(String from, @Nullable String to) {}

        @RateLimited(name = "account", rate = "1/h", key = "#from")
        @RateLimited(name = "account", rate = "1/h", key = "#to")
        public CompletableFuture<String> transferAsync(String from, String to) {
            return CompletableFuture.completedFuture("done");
        }

        @RateLimited(rate = "1/h")
        public void plain() {}

        @RateLimited(rate = "1/h", key = "#id")
        public void keyed(String id) {}

        @RateLimited(rate = "1/h", fallback = "instead")
        public String failing(RuntimeException failure) {
            throw failure;
        }

        String instead(RuntimeException failure) {
            return "instead";
        }
    }

    /** Limiters in memory that record how they are asked. */
    @Order(0)
    private record CountingFactory(ManualTicker ticker, List<String> asked) implements LimiterFactory {

        @Override
        public String backend() {
            return "memory";
        }

        @Override
        public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
            RateLimiter limiter = new InMemoryRateLimiter(limit, ticker, 100);
            return (RateLimiter) Proxy.newProxyInstance(
                    getClass().getClassLoader(), new Class<?>[] {RateLimiter.class}, (proxy, method, args) -> {
                        if (method.getReturnType() == boolean.class
                                || method.getReturnType() == Reservation.class
                                || method.getReturnType() == Decision.class) {
                            asked.add(method.getName());
                        }
                        try {
                            return method.invoke(limiter, args);
                        } catch (InvocationTargetException ex) {
                            throw ex.getTargetException();
                        }
                    });
        }
    }
}
