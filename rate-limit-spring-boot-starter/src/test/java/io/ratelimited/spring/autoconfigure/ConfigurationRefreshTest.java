package io.ratelimited.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimitChangedEvent;
import io.ratelimited.spring.RateLimitChangedEvent.Scope;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.limit.InstanceDifferences;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.cloud.context.environment.EnvironmentChangeEvent;
import org.springframework.context.ApplicationEvent;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.PayloadApplicationEvent;
import org.springframework.core.env.MapPropertySource;

@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class ConfigurationRefreshTest {

    private final Map<String, Object> configuration = new HashMap<>();
    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(RateLimitAutoConfiguration.class))
            .withBean(Ticker.class, ManualTicker::new)
            .withInitializer(context -> context.getEnvironment()
                    .getPropertySources()
                    .addFirst(new MapPropertySource("changing", configuration)));

    @Test
    void aChangedLimitIsInForceAndAddsNoPermits() {
        start(Map.of("rate-limit.limits.search.rate", "100/s"), (context, limits) -> {
            assertThat(limits.tryAcquire("search", null, 75)).isTrue();

            refresh(context, Map.of("rate-limit.limits.search.rate", "200/s"));

            assertThat(limits.limit("search").limit().rate()).hasToString("200/s");
            assertThat(limits.peek("search", null).remaining()).isEqualTo(25);
        });
    }

    @Test
    void whetherAnythingIsLimitedIsSettledAtTheStartForMethodsAndCodeAlike() {
        start(Map.of("rate-limit.limits.search.rate", "1/h"), (context, limits) -> {
            assertThat(limits.tryAcquire("search", null)).isTrue();

            refresh(context, Map.of("rate-limit.enabled", "false"));

            assertThat(limits.tryAcquire("search", null)).isFalse();
        });
    }

    @Test
    void policyAndWaitChangeToo() {
        start(Map.of("rate-limit.limits.search.rate", "100/s"), (context, limits) -> {
            limits.limit("search");

            refresh(
                    context,
                    Map.of("rate-limit.limits.search.policy", "wait", "rate-limit.limits.search.max-wait", "250ms"));

            assertThat(limits.limit("search").policy()).isEqualTo(Policy.WAIT);
            assertThat(limits.limit("search").maxWaitNanos())
                    .isEqualTo(Duration.ofMillis(250).toNanos());
        });
    }

    @Test
    void aChangedDefaultReachesLimitsThatSayNothingThemselves() {
        start(
                Map.of(
                        "rate-limit.limits.search.rate", "100/s",
                        "rate-limit.limits.login.rate", "5/m",
                        "rate-limit.limits.login.policy", "reject"),
                (context, limits) -> {
                    limits.limit("search");
                    limits.limit("login");

                    refresh(context, Map.of("rate-limit.defaults.policy", "shadow"));

                    assertThat(limits.limit("search").policy()).isEqualTo(Policy.SHADOW);
                    assertThat(limits.limit("login").policy()).isEqualTo(Policy.REJECT);
                });
    }

    @Test
    void aRemovedPropertyFallsBackToTheDefault() {
        start(
                Map.of("rate-limit.limits.search.rate", "100/s", "rate-limit.limits.search.burst", "300"),
                (context, limits) -> {
                    assertThat(limits.limit("search").limit().burst()).isEqualTo(300);

                    configuration.remove("rate-limit.limits.search.burst");
                    refresh(context, Map.of());

                    assertThat(limits.limit("search").limit().burst()).isEqualTo(100);
                });
    }

    @Test
    void eachLimitThatARefreshChangesIsReported() {
        List<RateLimitChangedEvent> changes = new ArrayList<>();
        start(
                Map.of("rate-limit.limits.search.rate", "100/s", "rate-limit.limits.login.rate", "5/m"),
                (context, limits) -> {
                    limits.limit("search");
                    limits.limit("login");
                    context.addApplicationListener(event -> {
                        if (event instanceof PayloadApplicationEvent<?> of
                                && of.getPayload() instanceof RateLimitChangedEvent change) {
                            changes.add(change);
                        }
                    });

                    refresh(
                            context,
                            Map.of("rate-limit.limits.search.burst", "50", "rate-limit.limits.login.key", "#name"));

                    assertThat(changes)
                            .containsExactly(new RateLimitChangedEvent(
                                    "search", null, Map.of("burst", 100L), Map.of("burst", 50L), Scope.INSTANCE, null));
                });
    }

    @Test
    void whatWasChangedAtRunTimeStaysUnlessItsPropertyChanges() {
        start(Map.of("rate-limit.limits.search.rate", "100/s"), (context, limits) -> {
            limits.change("search", LimitChange.of("burst", "400"));

            refresh(context, Map.of("rate-limit.limits.search.rate", "200/s"));

            Limit expected = Limit.of("search", Algorithm.TOKEN_BUCKET)
                    .rate("200/s")
                    .burst(400)
                    .build();
            assertThat(limits.limit("search").limit()).isEqualTo(expected);
        });
    }

    @Test
    void aRefreshThatChangesNothingLeavesRunTimeChanges() {
        start(Map.of("rate-limit.limits.search.rate", "100/s"), (context, limits) -> {
            limits.change("search", LimitChange.rate("7/s"));

            refresh(context, Map.of("some.other.property", "changed"));

            assertThat(limits.limit("search").limit().rate()).hasToString("7/s");
        });
    }

    @Test
    void anotherAlgorithmBeginsAnewAndAnotherNumberDoesNot() {
        start(Map.of("rate-limit.limits.search.rate", "100/s"), (context, limits) -> {
            assertThat(limits.tryAcquire("search", null, 60)).isTrue();

            refresh(context, Map.of("rate-limit.limits.search.algorithm", "sliding-log"));

            assertThat(limits.limit("search").limit().algorithm()).isEqualTo(Algorithm.SLIDING_LOG);
            assertThat(limits.tryAcquire("search", null, 100)).isTrue();

            refresh(context, Map.of("rate-limit.limits.search.rate", "120/s"));

            assertThat(limits.peek("search", null).remaining()).isEqualTo(20);
        });
    }

    @Test
    void tiersChange() {
        start(
                Map.of(
                        "rate-limit.limits.search.rate", "100/s",
                        "rate-limit.limits.search.tier", "#plan",
                        "rate-limit.limits.search.tiers.gold.rate", "1000/s"),
                (context, limits) -> {
                    limits.limit("search");

                    refresh(context, Map.of("rate-limit.limits.search.tiers.gold.rate", "2000/s"));

                    assertThat(limits.limit("search").tiers().get("gold").rate())
                            .hasToString("2000/s");
                });
    }

    @Test
    void anUnreadableValueIsLoggedAndChangesNothing(CapturedOutput output) {
        start(Map.of("rate-limit.limits.search.rate", "100/s"), (context, limits) -> {
            limits.limit("search");

            refresh(
                    context,
                    Map.of("rate-limit.limits.search.rate", "200/s", "rate-limit.limits.search.burst", "plenty"));

            assertThat(limits.limit("search").limit().rate()).hasToString("100/s");
            assertThat(output.getOut())
                    .contains("ERROR")
                    .contains("rate-limit.limits.search.burst")
                    .contains("plenty");
        });
    }

    @Test
    void aPropertyThatDoesNotExistIsLoggedAndChangesNothing(CapturedOutput output) {
        start(Map.of("rate-limit.limits.search.rate", "100/s"), (context, limits) -> {
            limits.limit("search");

            refresh(
                    context,
                    Map.of("rate-limit.limits.search.rate", "200/s", "rate-limit.limits.search.bursts", "300"));

            assertThat(limits.limit("search").limit().rate()).hasToString("100/s");
            assertThat(output.getOut()).contains("ERROR").contains("rate-limit.limits.search.bursts");
        });
    }

    @Test
    void anAddressInThePlaceOfRedisIsNotLogged(CapturedOutput output) {
        start(Map.of("rate-limit.limits.search.rate", "100/s"), (context, limits) -> {
            limits.limit("search");

            refresh(context, Map.of("rate-limit.redis", "redis://me:secret@cache"));

            assertThat(output).contains("ERROR").contains("rate-limit.redis").doesNotContain("secret");
        });
    }

    /** Some properties are read only at startup; an invalid one would fail the next. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "search.max-overshoot=5",
                "search.tiers.gold.max-overshoot=5",
                "search.backend=redsi",
                "search.candidates=fast",
                "report.charge=#result",
            })
    void anInvalidValueOfAPropertyThatIsReadOnceChangesNothing(String property, CapturedOutput output) {
        start(
                Map.of(
                        "rate-limit.limits.search.rate", "100/s",
                        "rate-limit.limits.search.tiers.gold.rate", "200/s",
                        "rate-limit.limits.report.algorithm", "concurrency",
                        "rate-limit.limits.report.max-concurrent", "3"),
                (context, limits) -> {
                    limits.limit("search");
                    limits.limit("report");
                    String[] parts = property.split("=");

                    refresh(
                            context,
                            Map.of("rate-limit.limits." + parts[0], parts[1], "rate-limit.limits.search.burst", "7"));

                    assertThat(output).contains("ERROR").contains("The configuration was not applied");
                    assertThat(limits.limit("search").limit().burst()).isEqualTo(100);
                    // Other instances still learn how this one is configured.
                    Collection<ConfiguredLimit> all =
                            context.getBean(LimitRegistry.class).all();
                    assertThat(new InstanceDifferences("memory", () -> all).own())
                            .contains("report", "max-concurrent+3");
                });
    }

    /** Only an application that names Redis at startup connects to it. */
    @ParameterizedTest
    @ValueSource(strings = {"rate-limit.backend", "rate-limit.defaults.backend", "rate-limit.limits.search.backend"})
    void aChangeToRedisWaitsForTheNextStartupAndHoldsUpNothingElse(String property, CapturedOutput output) {
        start(Map.of("rate-limit.limits.search.rate", "100/s"), (context, limits) -> {
            limits.limit("search");

            refresh(
                    context,
                    Map.of(
                            property,
                            "redis",
                            "rate-limit.limits.search.on-failure",
                            "deny",
                            "rate-limit.limits.search.rate",
                            "0/s"));

            assertThat(limits.tryAcquire("search", null)).isFalse();
            assertThat(output)
                    .contains("WARN")
                    .contains("takes effect at the next startup")
                    .contains("backend=redis")
                    .doesNotContain("ERROR");
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"search.max-overshoot=5", "search.tiers.gold.rate=fast", "search.candidates=fast"})
    void anInvalidValueBesideAChangeToRedisChangesNothing(String property, CapturedOutput output) {
        start(
                Map.of(
                        "rate-limit.limits.search.rate", "100/s",
                        "rate-limit.limits.search.tiers.gold.rate", "200/s"),
                (context, limits) -> {
                    limits.limit("search");
                    String[] parts = property.split("=");

                    refresh(
                            context,
                            Map.of(
                                    "rate-limit.limits.search.backend",
                                    "redis",
                                    "rate-limit.limits." + parts[0],
                                    parts[1],
                                    "rate-limit.limits.search.burst",
                                    "7"));

                    assertThat(output).contains("ERROR").contains("The configuration was not applied");
                    assertThat(limits.limit("search").limit().burst()).isEqualTo(100);
                });
    }

    @ParameterizedTest
    @ValueSource(strings = {"io.ratelimited.redis", "io.lettuce"})
    void aChangeToRedisWithoutItsLibrariesIsInvalid(String missing, CapturedOutput output) {
        start(
                runner.withClassLoader(new FilteredClassLoader(missing)),
                Map.of("rate-limit.limits.search.rate", "100/s"),
                (context, limits) -> {
                    limits.limit("search");

                    refresh(
                            context,
                            Map.of(
                                    "rate-limit.limits.search.backend", "redis",
                                    "rate-limit.limits.search.burst", "7"));

                    assertThat(output).contains("ERROR").contains("is not on the class path");
                    assertThat(limits.limit("search").limit().burst()).isEqualTo(100);
                });
    }

    @ParameterizedTest
    @CsvSource({"on-failure, deny, onFailure", "max-overshoot, 5%, maxOvershoot"})
    void aPropertyOfATierThatIsReadOnceIsWarnedOf(String property, String value, String label, CapturedOutput output) {
        start(
                Map.of(
                        "rate-limit.limits.search.rate", "100/s",
                        "rate-limit.limits.search.tier", "#plan",
                        "rate-limit.limits.search.tiers.gold.rate", "1000/s"),
                (context, limits) -> {
                    limits.limit("search");

                    refresh(context, Map.of("rate-limit.limits.search.tiers.gold." + property, value));

                    assertThat(output)
                            .contains("WARN")
                            .contains("takes effect at the next startup")
                            .contains("tiers.gold." + label + "=")
                            .doesNotContain("ERROR");
                });
    }

    @Test
    void oneInvalidLimitLeavesAllAsTheyWereUntilItIsCorrected(CapturedOutput output) {
        start(Map.of("rate-limit.limits.a.rate", "1/s", "rate-limit.limits.b.rate", "1/s"), (context, limits) -> {
            limits.limit("a");
            limits.limit("b");

            refresh(context, Map.of("rate-limit.limits.a.rate", "2/s", "rate-limit.limits.b.rate", "fast"));
            assertThat(limits.limit("a").limit().rate()).hasToString("1/s");
            assertThat(output.getOut()).contains("ERROR").contains("'b'").contains("\"fast\"");

            refresh(context, Map.of("rate-limit.limits.b.rate", "3/s"));
            assertThat(limits.limit("a").limit().rate()).hasToString("2/s");
            assertThat(limits.limit("b").limit().rate()).hasToString("3/s");
        });
    }

    @Test
    void aRemovedLimitStaysAndHoldsUpNothing(CapturedOutput output) {
        start(
                Map.of("rate-limit.limits.search.rate", "100/s", "rate-limit.limits.old.rate", "5/m"),
                (context, limits) -> {
                    assertThat(limits.tryAcquire("old", null, 2)).isTrue();
                    configuration.remove("rate-limit.limits.old.rate");

                    refresh(context, Map.of("rate-limit.limits.search.rate", "0/s"));
                    assertThat(limits.tryAcquire("search", null)).isFalse();
                    refresh(context, Map.of("rate-limit.limits.search.rate", "7/s"));
                    assertThat(limits.limit("search").limit().rate()).hasToString("7/s");

                    assertThat(limits.peek("old", null).remaining()).isEqualTo(3);
                    assertThat(output)
                            .containsOnlyOnce("Rate limit 'old' is no longer configured")
                            .contains("until the next startup")
                            .doesNotContain("ERROR");

                    refresh(context, Map.of("rate-limit.limits.old.rate", "9/m"));
                    assertThat(limits.limit("old").limit().rate()).hasToString("9/m");
                });
    }

    /** The next startup would fail: nothing defines the limit that the annotation names. */
    @Test
    void aRemovedLimitThatAnAnnotationNamesIsAnError(CapturedOutput output) {
        start(
                runner.withBean(Shop.class),
                Map.of("rate-limit.limits.search.rate", "100/s", "rate-limit.limits.prices.rate", "5/m"),
                (context, limits) -> {
                    configuration.remove("rate-limit.limits.prices.rate");

                    refresh(context, Map.of("rate-limit.limits.search.rate", "7/s"));

                    assertThat(limits.limit("search").limit().rate()).hasToString("100/s");
                    assertThat(output)
                            .contains("ERROR")
                            .contains("rate is missing: neither an annotation nor a property sets it")
                            .contains("rate-limit.limits.prices.rate");
                });
    }

    @Test
    void aRemovedLimitLeavesThatOfItsAnnotation(CapturedOutput output) {
        start(runner.withBean(Shop.class), shop("rate-limit.limits.orders.rate", "9/m"), (context, limits) -> {
            configuration.remove("rate-limit.limits.orders.rate");

            refresh(context, Map.of());

            assertThat(limits.limit("orders").limit().rate()).hasToString("2/m");
            assertThat(output).doesNotContain("ERROR").doesNotContain("no longer configured");
        });
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "rate=abc",
                "rate=5/m,candidates=fast",
                "rate=5/m,tiers.gold.rate=abc",
                "rate=5/m,warmup=1s,algorithm=gcra"
            })
    void anInvalidNewLimitChangesNothing(String properties, CapturedOutput output) {
        start(Map.of("rate-limit.limits.search.rate", "100/s"), (context, limits) -> {
            for (String property : properties.split(",")) {
                configuration.put("rate-limit.limits.neu." + property.split("=")[0], property.split("=")[1]);
            }

            refresh(context, Map.of("rate-limit.limits.search.rate", "7/s"));

            assertThat(limits.limit("search").limit().rate()).hasToString("100/s");
            assertThat(output).contains("ERROR").contains("Rate limit 'neu' is invalid");
        });
    }

    /** As at startup: a bean that is not there may have the rest. */
    @Test
    void anIncompleteNewLimitIsIgnoredWithAWarning(CapturedOutput output) {
        start(Map.of("rate-limit.limits.search.rate", "100/s"), (context, limits) -> {
            refresh(context, Map.of("rate-limit.limits.neu.burst", "5", "rate-limit.limits.search.rate", "7/s"));
            refresh(context, Map.of("rate-limit.limits.search.rate", "8/s"));

            assertThat(limits.limit("search").limit().rate()).hasToString("8/s");
            assertThat(output).containsOnlyOnce("Rate limit 'neu'").contains("[RL-207]");
        });
    }

    @Test
    void aNewLimitOnRedisIsThereAfterTheNextStartup(CapturedOutput output) {
        start(Map.of("rate-limit.limits.search.rate", "100/s"), (context, limits) -> {
            refresh(
                    context,
                    Map.of(
                            "rate-limit.limits.neu.rate", "5/m",
                            "rate-limit.limits.neu.backend", "redis",
                            "rate-limit.limits.search.rate", "7/s"));

            assertThat(limits.limit("search").limit().rate()).hasToString("7/s");
            assertThat(output).contains("WARN").contains("Rate limit 'neu' takes effect at the next startup");
            assertThatThrownBy(() -> limits.tryAcquire("neu", null)).isInstanceOf(IllegalArgumentException.class);
        });
    }

    @Test
    void callsInFlightCannotBecomeARate(CapturedOutput output) {
        start(
                Map.of(
                        "rate-limit.limits.report.algorithm", "concurrency",
                        "rate-limit.limits.report.max-concurrent", "3"),
                (context, limits) -> {
                    limits.limit("report");

                    configuration.remove("rate-limit.limits.report.max-concurrent");
                    refresh(
                            context,
                            Map.of(
                                    "rate-limit.limits.report.algorithm", "gcra",
                                    "rate-limit.limits.report.rate", "3/s"));

                    assertThat(limits.limit("report").limit().maxConcurrent()).isEqualTo(3);
                    assertThat(output.getOut()).contains("ERROR").contains("algorithm cannot change");
                });
    }

    @Test
    void aPropertyThatIsReadOnceIsWarnedOf(CapturedOutput output) {
        start(
                Map.of("rate-limit.limits.search.rate", "100/s", "rate-limit.limits.search.key", "clientIp"),
                (context, limits) -> {
                    limits.limit("search");

                    refresh(context, Map.of("rate-limit.limits.search.key", "principal"));

                    assertThat(limits.limit("search").properties().get("key")).isEqualTo("clientIp");
                    assertThat(output.getOut()).contains("WARN").contains("takes effect at the next start");
                });
    }

    @Test
    void aNewLimitCanBeUsedAfterARefresh() {
        start(Map.of("rate-limit.limits.search.rate", "100/s"), (context, limits) -> {
            assertThatThrownBy(() -> limits.limit("late")).isInstanceOf(IllegalArgumentException.class);

            refresh(context, Map.of("rate-limit.limits.late.rate", "1/s"));

            assertThat(limits.tryAcquire("late", null)).isTrue();
            assertThat(limits.tryAcquire("late", null)).isFalse();
        });
    }

    @Test
    void aTierThatWasChangedAtRunTimeStaysWhereAnotherOneChanges() {
        start(
                Map.of(
                        "rate-limit.limits.search.rate", "10/s",
                        "rate-limit.limits.search.tier", "#plan",
                        "rate-limit.limits.search.tiers.gold.rate", "50/s",
                        "rate-limit.limits.search.tiers.silver.rate", "20/s"),
                (context, limits) -> {
                    limits.change("search", LimitChange.tier("gold").with("rate", "77/s"));

                    refresh(context, Map.of("rate-limit.limits.search.tiers.silver.rate", "21/s"));
                    assertThat(tier(limits, "gold")).isEqualTo("77/s");
                    assertThat(tier(limits, "silver")).isEqualTo("21/s");

                    refresh(context, Map.of("rate-limit.limits.search.tiers.gold.rate", "60/s"));
                    assertThat(tier(limits, "gold")).isEqualTo("60/s");
                });
    }

    @Test
    void aTierThatTheConfigurationHasGotSinceTheStartCannotBeChanged() {
        start(
                Map.of(
                        "rate-limit.limits.search.rate", "10/s",
                        "rate-limit.limits.search.tier", "#plan",
                        "rate-limit.limits.search.tiers.gold.rate", "50/s"),
                (context, limits) -> {
                    limits.limit("search");
                    refresh(context, Map.of("rate-limit.limits.search.tiers.silver.rate", "20/s"));

                    assertThatThrownBy(() -> limits.change(
                                    "search", LimitChange.tier("silver").with("rate", "5/s")))
                            .hasMessageContaining("there is no tier 'silver'; there are [gold]");
                });
    }

    private static String tier(TestLimits limits, String tier) {
        return limits.limit("search").tiers().get(tier).rate().toString();
    }

    @Test
    void otherEventsAreIgnored() {
        start(Map.of("rate-limit.limits.search.rate", "100/s"), (context, limits) -> {
            limits.limit("search");
            configuration.put("rate-limit.limits.search.rate", "200/s");

            context.publishEvent(new ApplicationEvent(this) {
                private static final long serialVersionUID = 1L;
            });

            assertThat(limits.limit("search").limit().rate()).hasToString("100/s");
        });
    }

    private static Map<String, String> shop(String property, String value) {
        return Map.of("rate-limit.limits.prices.rate", "5/m", property, value);
    }

    static class Shop {

        @RateLimited(name = "orders", rate = "2/m")
        public void order() {}

        @RateLimited(name = "prices", key = "'all'")
        public void prices() {}
    }

    private void start(Map<String, String> initial, BiConsumer<ConfigurableApplicationContext, TestLimits> test) {
        start(runner, initial, test);
    }

    private void start(
            ApplicationContextRunner application,
            Map<String, String> initial,
            BiConsumer<ConfigurableApplicationContext, TestLimits> test) {
        configuration.putAll(initial);
        application.run(context -> test.accept(context, TestLimits.of(context)));
    }

    private void refresh(ConfigurableApplicationContext context, Map<String, String> changes) {
        configuration.putAll(changes);
        context.publishEvent(new EnvironmentChangeEvent(context, Set.copyOf(changes.keySet())));
    }
}
