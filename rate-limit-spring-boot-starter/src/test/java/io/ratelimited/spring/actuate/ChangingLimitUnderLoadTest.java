package io.ratelimited.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.actuate.autoconfigure.endpoint.EndpointAutoConfiguration;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.cloud.context.environment.EnvironmentChangeEvent;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.core.env.MapPropertySource;

/**
 * Rounds of: the time moves, then threads take all there is while the limit changes under them. No round brings more than
 * the burst, so that all of the integral of the changing limit can be had, less what each change rounds down, and no more.
 */
class ChangingLimitUnderLoadTest {

    private static final int THREADS = 4;
    private static final int CHANGES = 100;
    private static final long BUDGETS = 2;

    private final ManualTicker ticker = new ManualTicker();
    private final Map<String, Object> configuration = new HashMap<>();
    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    EndpointAutoConfiguration.class,
                    RateLimitAutoConfiguration.class,
                    RateLimitsEndpointAutoConfiguration.class))
            .withInitializer(context -> context.getEnvironment()
                    .getPropertySources()
                    .addFirst(new MapPropertySource("changing", configuration)))
            .withBean(Ticker.class, () -> ticker)
            .withPropertyValues(
                    "spring.jmx.enabled=true",
                    "management.endpoints.jmx.exposure.include=ratelimits",
                    "rate-limit.limits.search.burst=50");

    enum Way {
        ENDPOINT {
            @Override
            void change(ConfigurableApplicationContext context, Map<String, Object> configuration, int rate) {
                context.getBean(RateLimitsEndpoint.class).update("search", "rate=" + rate + "/s");
            }
        },
        RATE_LIMITS {
            @Override
            void change(ConfigurableApplicationContext context, Map<String, Object> configuration, int rate) {
                TestLimits.of(context).change("search", LimitChange.rate(rate + "/s"));
            }
        },
        REFRESH {
            @Override
            void change(ConfigurableApplicationContext context, Map<String, Object> configuration, int rate) {
                configuration.put("rate-limit.limits.search.rate", rate + "/s");
                context.publishEvent(new EnvironmentChangeEvent(context, Set.of("rate-limit.limits.search.rate")));
            }
        };

        abstract void change(ConfigurableApplicationContext context, Map<String, Object> configuration, int rate);
    }

    @ParameterizedTest
    @EnumSource
    void noGrantIsAboveTheIntegralOfTheChangingLimit(Way way) {
        configuration.put("rate-limit.limits.search.rate", "100/s");
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            limits.limit("search");
            AtomicLong granted = new AtomicLong();
            CyclicBarrier gate = new CyclicBarrier(THREADS + 1);
            ExecutorService executor = Executors.newFixedThreadPool(THREADS);
            List<Future<?>> callers = new ArrayList<>();
            for (int i = 0; i < THREADS; i++) {
                String key = i % 2 == 0 ? "alice" : null;
                callers.add(executor.submit(() -> {
                    for (int round = 0; round < CHANGES; round++) {
                        gate.await();
                        drain(limits, key, granted);
                        gate.await();
                    }
                    return null;
                }));
            }

            long nanoPermits = 0;
            Random random = new Random(7);
            int rate = 100;
            for (int round = 0; round < CHANGES; round++) {
                long nanos = random.nextInt(100_000_000);
                ticker.advanceNanos(nanos);
                nanoPermits += nanos * rate;
                rate = 10 + random.nextInt(490);
                gate.await();
                way.change(context, configuration, rate);
                gate.await();
            }
            for (Future<?> caller : callers) {
                caller.get();
            }
            executor.shutdown();

            long integral = 50 + nanoPermits / 1_000_000_000;
            assertThat(granted.get()).isBetween(BUDGETS * (integral - CHANGES), BUDGETS * integral);
        });
    }

    @ParameterizedTest
    @EnumSource
    void whatIsSpentStaysSpent(Way way) {
        configuration.put("rate-limit.limits.search.rate", "100/s");
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            limits.tryAcquire("search", "alice", 50);
            limits.tryAcquire("search", null, 20);

            for (int rate = 200; rate < 210; rate++) {
                way.change(context, configuration, rate);
            }

            assertThat(limits.limit("search").limit().rate()).hasToString("209/s");
            assertThat(limits.peek("search", "alice").remaining()).isZero();
            assertThat(limits.peek("search", null).remaining()).isEqualTo(30);
        });
    }

    private static void drain(TestLimits limits, String key, AtomicLong granted) {
        while (limits.tryAcquire("search", key)) {
            granted.incrementAndGet();
        }
    }
}
