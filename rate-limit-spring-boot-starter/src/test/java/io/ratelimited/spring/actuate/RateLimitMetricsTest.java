package io.ratelimited.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.micrometer.core.instrument.Meter;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.Tag;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.micrometer.observation.ObservationRegistry;
import io.micrometer.prometheusmetrics.PrometheusConfig;
import io.micrometer.prometheusmetrics.PrometheusMeterRegistry;
import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.CompositeMeterRegistryAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.MetricsAutoConfiguration;
import org.springframework.boot.micrometer.metrics.autoconfigure.export.simple.SimpleMetricsExportAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;

class RateLimitMetricsTest {

    private final ManualTicker ticker = new ManualTicker().autoAdvance();
    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    MetricsAutoConfiguration.class,
                    SimpleMetricsExportAutoConfiguration.class,
                    CompositeMeterRegistryAutoConfiguration.class,
                    RateLimitAutoConfiguration.class,
                    RateLimitMetricsAutoConfiguration.class))
            .withBean(Ticker.class, () -> ticker)
            .withPropertyValues("rate-limit.limits.search.rate=2/s");

    @Test
    void admittedAndRejectedCallsAreCounted() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            for (int i = 0; i < 5; i++) {
                limits.tryAcquire("search", "some caller");
            }

            assertThat(count(context.getBean(MeterRegistry.class), "admitted", "memory"))
                    .isEqualTo(2);
            assertThat(count(context.getBean(MeterRegistry.class), "rejected", "memory"))
                    .isEqualTo(3);
        });
    }

    @Test
    void gaugesCountCallersWithNumbersOfTheirOwn() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            limits.override("search", "own", LimitChange.rate("7/s"), null);
            limits.tryAcquire("search", "own");
            limits.tryAcquire("search", "other");
            assertThat(context.getBean(MeterRegistry.class)
                            .get("rate.limit.keys")
                            .tag("limit", "search")
                            .gauge()
                            .value())
                    .isEqualTo(2);
        });
    }

    /** A list of all of them would be larger. */
    @Test
    void aRejectionLooksAtNoOtherCallerWithNumbersOfItsOwn() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            int callers = 3_000;
            for (int i = 0; i < callers; i++) {
                limits.override("search", "caller " + i, LimitChange.rate((i + 2) + "/d"), null);
            }
            while (limits.tryAcquire("search", "caller 0")) {
                continue;
            }
            ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
            long least = Long.MAX_VALUE;
            for (int i = 0; i < 50; i++) {
                long before = threads.getCurrentThreadAllocatedBytes();
                limits.tryAcquire("search", "caller 0");
                least = Math.min(least, threads.getCurrentThreadAllocatedBytes() - before);
            }
            assertThat(least).isLessThan(callers);
        });
    }

    @Test
    void executedCallsAreCountedAsTryAcquireIs() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            int refused = 0;
            for (int i = 0; i < 5; i++) {
                try {
                    limits.execute("search", null, () -> "answer");
                } catch (RateLimitExceededException ex) {
                    refused++;
                }
            }

            assertThat(refused).isEqualTo(3);
            assertThat(count(context.getBean(MeterRegistry.class), "admitted", "memory"))
                    .isEqualTo(2);
            assertThat(count(context.getBean(MeterRegistry.class), "rejected", "memory"))
                    .isEqualTo(3);
        });
    }

    @Test
    void shadowedCallsAreCountedAndGo() {
        runner.withPropertyValues("rate-limit.limits.search.policy=shadow").run(context -> {
            TestLimits limits = TestLimits.of(context);
            for (int i = 0; i < 5; i++) {
                limits.execute("search", null, () -> "answer");
            }

            assertThat(count(context.getBean(MeterRegistry.class), "shadowed", "memory"))
                    .isEqualTo(3);
        });
    }

    @Test
    void onlyDelayedCallsAreTimed() {
        runner.withPropertyValues("rate-limit.limits.search.policy=wait", "rate-limit.limits.search.max-wait=10s")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    for (int i = 0; i < 5; i++) {
                        limits.execute("search", null, () -> "answer");
                    }

                    MeterRegistry registry = context.getBean(MeterRegistry.class);
                    assertThat(count(registry, "admitted", "memory")).isEqualTo(2);
                    assertThat(count(registry, "delayed", "memory")).isEqualTo(3);
                    assertThat(registry.get("rate.limit.wait")
                                    .tag("limit", "search")
                                    .timer()
                                    .count())
                            .isEqualTo(3);
                });
    }

    @Test
    void theTimerHasTheWaitOfTheCall() {
        runner.run(context -> {
            NamedLimit limit = TestLimits.of(context).limit("search");

            context.getBean(RateLimitMetrics.class)
                    .onDecision(new RateLimitDecision(
                            limit,
                            Outcome.DELAYED,
                            null,
                            Duration.ofMillis(1500),
                            () -> decision(Decision.Source.MEMORY)));

            assertThat(context.getBean(MeterRegistry.class)
                            .get("rate.limit.wait")
                            .timer()
                            .totalTime(TimeUnit.MILLISECONDS))
                    .isEqualTo(1500);
        });
    }

    @Test
    void aLimiterThatAlwaysDecidesInMemoryIsNotAskedToDescribeADecision() {
        runner.run(context -> {
            NamedLimit limit = TestLimits.of(context).limit("search");

            context.getBean(RateLimitMetrics.class)
                    .onDecision(new RateLimitDecision(limit, Outcome.ADMITTED, null, Duration.ZERO, () -> {
                        throw new AssertionError("described");
                    }));

            assertThat(count(context.getBean(MeterRegistry.class), "admitted", "memory"))
                    .isEqualTo(1);
        });
    }

    @Test
    void gaugesShowKeysAndSleepers() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            limits.tryAcquire("search", "a");
            limits.tryAcquire("search", "b");

            MeterRegistry registry = context.getBean(MeterRegistry.class);
            assertThat(registry.get("rate.limit.keys")
                            .tag("limit", "search")
                            .gauge()
                            .value())
                    .isEqualTo(2);
            assertThat(registry.get("rate.limit.waiting")
                            .tag("limit", "search")
                            .gauge()
                            .value())
                    .isZero();
        });
    }

    @Test
    void theConfiguredRateIsAGaugeThatFollowsChanges() {
        runner.withPropertyValues(
                        "rate-limit.limits.places.algorithm=concurrency",
                        "rate-limit.limits.places.max-concurrent=7",
                        "rate-limit.limits.free.rate=unlimited",
                        "rate-limit.limits.paid.rate=120/m")
                .run(context -> {
                    MeterRegistry registry = context.getBean(MeterRegistry.class);
                    assertThat(registry.get("rate.limit.rate")
                                    .tag("limit", "paid")
                                    .gauge()
                                    .value())
                            .isEqualTo(2);
                    assertThat(registry.get("rate.limit.rate")
                                    .tag("limit", "free")
                                    .gauge()
                                    .value())
                            .isNaN();
                    assertThat(registry.get("rate.limit.max.concurrent")
                                    .tag("limit", "places")
                                    .gauge()
                                    .value())
                            .isEqualTo(7);

                    TestLimits.of(context).change("paid", LimitChange.rate("30/s"));

                    assertThat(registry.get("rate.limit.rate")
                                    .tag("limit", "paid")
                                    .gauge()
                                    .value())
                            .isEqualTo(30);
                });
    }

    @Test
    void noMeterHasAKeyAsATag() {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            for (int i = 0; i < 100; i++) {
                limits.tryAcquire("search", "caller-" + i);
                limits.tryAcquire("search", "caller-1");
            }

            List<Meter> meters = context.getBean(MeterRegistry.class).getMeters().stream()
                    .filter(meter -> meter.getId().getName().startsWith("rate.limit"))
                    .toList();
            assertThat(meters).hasSize(6);
            assertThat(meters)
                    .allSatisfy(meter -> assertThat(meter.getId().getTags())
                            .extracting(Tag::getKey)
                            .isSubsetOf("limit", "outcome", "source"));
            assertThat(meters.toString()).doesNotContain("caller");
        });
    }

    @Test
    void aPrometheusScrapeShowsTheMetersAndNoKey() {
        PrometheusMeterRegistry prometheus = new PrometheusMeterRegistry(PrometheusConfig.DEFAULT);
        runner.withBean(MeterRegistry.class, () -> prometheus)
                .withPropertyValues("rate-limit.limits.search.policy=wait", "rate-limit.limits.search.max-wait=500ms")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    for (int i = 0; i < 3; i++) {
                        limits.execute("search", "secret", () -> "answer");
                    }
                    limits.tryAcquire("search", "secret");

                    assertThat(prometheus.scrape().lines())
                            .contains(
                                    "rate_limit_decisions_total{limit=\"search\",outcome=\"admitted\",source=\"memory\"} 2.0",
                                    "rate_limit_decisions_total{limit=\"search\",outcome=\"delayed\",source=\"memory\"} 1.0",
                                    "rate_limit_decisions_total{limit=\"search\",outcome=\"rejected\",source=\"memory\"} 1.0",
                                    "rate_limit_keys{limit=\"search\"} 1.0",
                                    "rate_limit_waiting{limit=\"search\"} 0.0",
                                    "rate_limit_wait_seconds_count{limit=\"search\"} 1")
                            .noneMatch(line -> line.contains("secret"));
                });
    }

    @Test
    void aClosedContextLeavesNoMetersAndTheNextOneHasItsOwn() {
        MeterRegistry shared = new SimpleMeterRegistry();
        ApplicationContextRunner sharing = new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        RateLimitAutoConfiguration.class, RateLimitMetricsAutoConfiguration.class))
                .withBean(MeterRegistry.class, () -> shared, definition -> definition.setDestroyMethodName(""))
                .withBean(Ticker.class, () -> ticker)
                .withPropertyValues("rate-limit.limits.search.rate=2/s", "rate-limit.limits.search.candidates=5/s");
        sharing.run(context -> {
            TestLimits.of(context).tryAcquire("search", "a");
            assertThat(count(shared, "admitted", "memory")).isEqualTo(1);
        });
        assertThat(shared.getMeters()).isEmpty();

        sharing.run(context -> {
            TestLimits limits = TestLimits.of(context);
            limits.tryAcquire("search", "a");
            limits.tryAcquire("search", "b");
            assertThat(count(shared, "admitted", "memory")).isEqualTo(2);
            assertThat(shared.get("rate.limit.keys").gauge().value()).isEqualTo(2);
        });
    }

    /** As in Spring Boot: it records nothing where no registry is the one for all, which its composite usually is. */
    @Test
    void severalRegistriesOfWhichNoneIsPrimaryHaveNoMeters() {
        ApplicationContextRunner several = new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        RateLimitAutoConfiguration.class,
                        RateLimitMetricsAutoConfiguration.class,
                        RateLimitObservationAutoConfiguration.class))
                .withBean("one", SimpleMeterRegistry.class)
                .withBean("two", SimpleMeterRegistry.class)
                .withBean("observing", ObservationRegistry.class, ObservationRegistry::create)
                .withBean("observingToo", ObservationRegistry.class, ObservationRegistry::create);
        several.run(context -> assertThat(context)
                .hasNotFailed()
                .hasSingleBean(RateLimits.class)
                .doesNotHaveBean(DecisionObserver.class));
        several.withBean(
                        "all",
                        SimpleMeterRegistry.class,
                        SimpleMeterRegistry::new,
                        definition -> definition.setPrimary(true))
                .run(context -> assertThat(context).hasNotFailed().hasSingleBean(DecisionObserver.class));
    }

    @Test
    void withoutMicrometerNothingIsMeasured() {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        RateLimitAutoConfiguration.class, RateLimitMetricsAutoConfiguration.class))
                .withClassLoader(new FilteredClassLoader("io.micrometer"))
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .hasSingleBean(RateLimits.class)
                        .doesNotHaveBean(DecisionObserver.class));
    }

    @Test
    void everyCallOfAnAnnotatedMethodIsCountedOnce() {
        runner.withConfiguration(AutoConfigurations.of(AopAutoConfiguration.class))
                .withBean(Shop.class)
                .run(context -> {
                    Shop shop = context.getBean(Shop.class);
                    int refused = 0;
                    for (int i = 0; i < 5; i++) {
                        try {
                            shop.search();
                        } catch (RateLimitExceededException ex) {
                            refused++;
                        }
                    }

                    assertThat(refused).isEqualTo(3);
                    MeterRegistry registry = context.getBean(MeterRegistry.class);
                    assertThat(count(registry, "admitted", "memory")).isEqualTo(2);
                    assertThat(count(registry, "rejected", "memory")).isEqualTo(3);
                });
    }

    @Test
    void permitsOfChargedCallsAreCountedByKind() {
        runner.withConfiguration(AutoConfigurations.of(AopAutoConfiguration.class))
                .withBean(Shop.class)
                .run(context -> {
                    MeterRegistry registry = context.getBean(MeterRegistry.class);
                    assertThat(registry.find("rate.limit.permits").counters()).isEmpty();
                    Shop shop = context.getBean(Shop.class);
                    shop.answer(4);
                    shop.answer(25);
                    shop.answer(10);
                    TestLimits.of(context).reserve("tokens", "secret", 3).settle(1);

                    assertThat(permits(registry, "reserved")).isEqualTo(33);
                    assertThat(permits(registry, "returned")).isEqualTo(8);
                    assertThat(permits(registry, "added")).isEqualTo(15);
                    assertThat(registry.get("rate.limit.charge.failures")
                                    .tag("limit", "tokens")
                                    .counter()
                                    .count())
                            .isZero();

                    shop.answer(-1);
                    shop.answer(-1);

                    assertThat(registry.get("rate.limit.charge.failures")
                                    .tag("limit", "tokens")
                                    .counter()
                                    .count())
                            .isEqualTo(2);
                    assertThat(permits(registry, "reserved")).isEqualTo(53);
                    assertThat(permits(registry, "returned")).isEqualTo(8);
                    assertThat(permits(registry, "added")).isEqualTo(15);
                });
    }

    private static double permits(MeterRegistry registry, String kind) {
        return registry.get("rate.limit.permits")
                .tags("limit", "tokens", "kind", kind)
                .counter()
                .count();
    }

    @Test
    void withoutARegistryNothingIsMeasured() {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        RateLimitAutoConfiguration.class, RateLimitMetricsAutoConfiguration.class))
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(RateLimitMetrics.class));
    }

    @Test
    void withoutTheMetricsModuleOfSpringBootARegistryIsEnough() {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        RateLimitAutoConfiguration.class, RateLimitMetricsAutoConfiguration.class))
                .withClassLoader(new FilteredClassLoader(MetricsAutoConfiguration.class, Endpoint.class))
                .withBean(MeterRegistry.class, SimpleMeterRegistry::new)
                .run(context -> assertThat(context).hasNotFailed().hasSingleBean(RateLimitMetrics.class));
    }

    @Test
    void aDisabledStarterMeasuresNothing() {
        runner.withPropertyValues("rate-limit.enabled=false")
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(RateLimitMetrics.class));
    }

    static class Shop {

        @RateLimited("search")
        public void search() {}

        @RateLimited(name = "tokens", rate = "1000/s", permits = "10", charge = "#result")
        public int answer(int tokens) {
            return tokens;
        }
    }

    private static double count(MeterRegistry registry, String outcome, String source) {
        return registry.get("rate.limit.decisions")
                .tags("limit", "search", "outcome", outcome, "source", source)
                .counter()
                .count();
    }

    private static Decision decision(Decision.Source source) {
        return new Decision("search", true, Duration.ZERO, null, false, 1, Duration.ZERO, source);
    }
}
