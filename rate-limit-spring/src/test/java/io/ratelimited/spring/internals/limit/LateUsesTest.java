package io.ratelimited.spring.internals.limit;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.internals.limit.LimitProperty.OnFailure;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.springframework.beans.factory.InitializingBean;

/** Methods that use a limit are found while other beans already use, override or change it. */
final class LateUsesTest {

    private final ContextRunner runner = ContextRunner.limited(new ManualTicker());

    static class Early implements InitializingBean {

        private final RateLimitOperations operations;

        Early(RateLimitOperations operations) {
            this.operations = operations;
        }

        @Override
        public void afterPropertiesSet() {
            operations.override("tokens", "vip", LimitChange.rate("20/h"), null);
            operations.override("logins", "vip", LimitChange.rate("2/h"), null);
        }
    }

    static class Late {

        @RateLimited(name = "tokens", key = "#user", permits = "#cost * 0", charge = "#result")
        public long ask(String user, long cost) {
            return cost;
        }

        @RateLimited(name = "logins", key = "#user", charge = "1")
        public void failedLogin(String user) {}
    }

    @Test
    void anOverrideFromBeforeAChargedUseIsCharged() {
        runner.with(Early.class, Late.class)
                .withPropertyValues(
                        "rate-limit.limits.tokens.rate=10/h",
                        "rate-limit.limits.logins.rate=2/h",
                        "rate-limit.limits.logins.block=10m")
                .run(context -> {
                    Late late = context.getBean(Late.class);
                    assertThat(admitted(late, "other")).isEqualTo(1);
                    assertThat(admitted(late, "vip")).isEqualTo(1);

                    TestLimits limits = TestLimits.of(context);
                    for (String user : new String[] {"other", "vip"}) {
                        late.failedLogin(user);
                        late.failedLogin(user);
                        assertThat(limits.peek("logins", user).blocked())
                                .as(user)
                                .isTrue();
                    }
                });
    }

    private static int admitted(Late late, String user) {
        int admitted = 0;
        for (int i = 0; i < 5; i++) {
            try {
                late.ask(user, 30);
                admitted++;
            } catch (RateLimitExceededException ex) {
                assertThat(ex.limit()).isEqualTo("tokens");
            }
        }
        return admitted;
    }

    static class Uncharged {

        @RateLimited(name = "logins", key = "#user")
        public void login(String user) {}
    }

    /** The application continues without the bean or the call. */
    @Test
    void aUseThatIsRejectedLeavesNoTrace() {
        runner.with(Uncharged.class)
                .withPropertyValues(
                        "rate-limit.limits.tokens.rate=10/h",
                        "rate-limit.limits.logins.rate=2/h",
                        "rate-limit.limits.logins.block=10m")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    ConfiguredLimit logins = limits.configured("logins");
                    context.registerBean(Late.class);
                    assertThatThrownBy(() -> context.getBean(Late.class).failedLogin("other"))
                            .hasStackTraceContaining("violations are either charges");
                    assertThatThrownBy(() -> logins.blockUses().add(false, false, "a method"))
                            .isInstanceOf(InvalidRateLimitException.class)
                            .hasMessageContaining("calls without a key cannot be blocked");

                    assertThat(limits.change("logins", LimitChange.rate("3/h")).rate())
                            .hasToString("3/h");
                    limits.override("logins", "vip", LimitChange.rate("1/h"), null);
                    for (String user : new String[] {"other", "vip"}) {
                        assertThat(logins.limiterOf(user).limit().isCharged())
                                .as(user)
                                .isFalse();
                    }
                    assertThat(limits.tryAcquire("logins", "vip")).isTrue();
                    assertThat(limits.tryAcquire("logins", "vip")).isFalse();
                    assertThat(limits.peek("logins", "vip").blocked()).isTrue();
                });
    }

    @Test
    void aUseThatIsFoundWhileTheLimitChangesLosesNoChange() {
        AtomicReference<Runnable> beforeUpdate = new AtomicReference<>(() -> {});
        runner.withBean(LimiterFactory.class, () -> new Hooked(beforeUpdate, new AtomicReference<>(() -> {})))
                .withPropertyValues("rate-limit.backend=hooked", "rate-limit.limits.search.rate=10/s")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    ConfiguredLimit search = limits.configured("search");
                    Thread operator = new Thread(() -> limits.change("search", LimitChange.rate("7/s")));
                    beforeUpdate.set(() -> {
                        beforeUpdate.set(() -> {});
                        operator.start();
                        while (operator.getState() != Thread.State.BLOCKED
                                && operator.getState() != Thread.State.TERMINATED) {
                            Thread.onSpinWait();
                        }
                    });
                    search.blockUses().add(true, true, "a method");
                    operator.join();

                    assertThat(search.properties()).containsEntry("rate", "7/s");
                    assertThat(search.limit().rate()).hasToString("7/s");
                    assertThat(search.limit().isCharged()).isTrue();
                });
    }

    @Test
    void aLimitThatIsMadeDuringARefreshHasTheRefreshedProperties() {
        AtomicReference<Runnable> beforeUpdate = new AtomicReference<>(() -> {});
        AtomicReference<Runnable> afterCreate = new AtomicReference<>(() -> {});
        runner.withBean(LimiterFactory.class, () -> new Hooked(beforeUpdate, afterCreate))
                .withPropertyValues("rate-limit.backend=hooked", "rate-limit.limits.search.rate=10/s")
                .run(context -> {
                    LimitRegistry registry = context.getBean(LimitRegistry.class);
                    beforeUpdate.set(() -> {
                        beforeUpdate.set(() -> {});
                        register(registry, "first");
                    });
                    registry.refresh(rates("5/s"));
                    assertThat(registry.get("first").limit().rate()).hasToString("5/s");

                    afterCreate.set(() -> {
                        afterCreate.set(() -> {});
                        registry.refresh(rates("7/s"));
                    });
                    register(registry, "second");
                    for (String name : new String[] {"search", "first", "second"}) {
                        assertThat(registry.get(name).limit().rate()).as(name).hasToString("7/s");
                        assertThat(registry.get(name).properties()).as(name).containsEntry("rate", "7/s");
                    }
                });
    }

    private static void register(LimitRegistry registry, String name) {
        registry.register(name, "a method", Map.of(LimitProperty.RATE, "1/s"));
    }

    private static LimitSettings rates(String rate) {
        Map<LimitProperty, Object> values = Map.of(LimitProperty.RATE, rate);
        return new LimitSettings(
                "hooked", OnFailure.LOCAL, Map.of(), Map.of("search", values, "first", values, "second", values));
    }

    /** Runs an action before limiters change, and after one is made. */
    private record Hooked(AtomicReference<Runnable> beforeUpdate, AtomicReference<Runnable> afterCreate)
            implements LimiterFactory {

        @Override
        public String backend() {
            return "hooked";
        }

        @Override
        public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
            RateLimiter limiter = new InMemoryRateLimiter(limit);
            afterCreate.get().run();
            return (RateLimiter) Proxy.newProxyInstance(
                    Hooked.class.getClassLoader(), new Class<?>[] {RateLimiter.class}, (proxy, method, arguments) -> {
                        if (method.getName().equals("update")) {
                            beforeUpdate.get().run();
                        }
                        try {
                            return method.invoke(limiter, arguments);
                        } catch (InvocationTargetException ex) {
                            throw ex.getCause();
                        }
                    });
        }
    }
}
