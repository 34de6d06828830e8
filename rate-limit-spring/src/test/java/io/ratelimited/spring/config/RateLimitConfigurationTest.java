package io.ratelimited.spring.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.Explanation;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.MissingKey;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.limit.SettingsSource;
import io.ratelimited.spring.internals.text.PropertyText;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.ZoneId;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.aop.support.AopUtils;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.stereotype.Component;

/** Limits in applications of the Spring Framework, without Spring Boot. */
class RateLimitConfigurationTest {

    private static final ContextRunner RUNNER = ContextRunner.plain();

    @Test
    void anAnnotatedMethodIsLimitedAndAPropertyWinsOverItsAnnotation() {
        RUNNER.with(Shop.class).run(context -> {
            Shop shop = context.getBean(Shop.class);
            assertThat(shop.order()).isEqualTo("ordered");
            assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(shop::order);
        });
        RUNNER.with(Shop.class)
                .withPropertyValues("rate-limit.limits.orders.rate=2/h", "rate-limit.limits.orders.key='all'")
                .run(context -> {
                    Shop shop = context.getBean(Shop.class);
                    shop.order();
                    assertThat(shop.order()).isEqualTo("ordered");
                    assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(shop::order);
                });
    }

    @Test
    void theApplicationThatTheGuideShowsIsLimited() throws IOException {
        Matcher snippet = Pattern.compile("(?s)## Without Spring Boot\n.*?```java\n.*?\n\n(.*?)```")
                .matcher(Files.readString(Path.of("../docs/with-spring.md")));
        assertThat(snippet.find()).isTrue();
        assertThat(Files.readString(
                        Path.of("src/test/java/io/ratelimited/spring/config/RateLimitConfigurationTest.java")))
                .contains(snippet.group(1));
        try (AnnotationConfigApplicationContext context = new AnnotationConfigApplicationContext(Nightly.class)) {
            NightlyReports reports = context.getBean(NightlyReports.class);
            reports.create();
            assertThat(reports.create()).isEqualTo("report");
            assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(reports::create);
        }
    }

    @Test
    void codeAndOperatorsHaveTheirBeans() {
        RUNNER.withPropertyValues("rate-limit.limits.search.rate=1/h").run(context -> {
            RateLimits limits = context.getBean(RateLimits.class);
            assertThat(limits.tryAcquire("search", "ada")).isTrue();
            assertThat(limits.tryAcquire("search", "ada")).isFalse();
            context.getBean(RateLimitOperations.class).change("search", LimitChange.rate("2/h"));
            assertThat(limits.peek("search", "bob").remaining()).isEqualTo(2);
        });
    }

    /** As everywhere in Spring: the application decides whether classes or their interfaces are proxied. */
    @Test
    void aBeanWithAnInterfaceIsLimitedByItsInterface() {
        RUNNER.with(InterfacedQuotes.class).run(context -> {
            Quotes quotes = context.getBean(Quotes.class);
            assertThat(AopUtils.isJdkDynamicProxy(quotes)).isTrue();
            assertThat(quotes.quote()).isEqualTo(7);
            assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(quotes::quote);
        });
    }

    @Test
    void beansOfTheApplicationTakeThePlaceOfOursWhereverTheyAreDeclared() {
        try (AnnotationConfigApplicationContext context =
                new AnnotationConfigApplicationContext(Own.class, Shop.class)) {
            Shop shop = context.getBean(Shop.class);
            shop.order();
            assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(shop::order);
            assertThat(context.getBean(Ticker.class)).isSameAs(Own.TICKER);
            Own.TICKER.advance(Duration.ofHours(1));
            assertThat(shop.order()).isEqualTo("ordered");
        }
    }

    @Test
    void anApplicationWithoutLimitsCallsEverything() {
        RUNNER.with(Shop.class).withPropertyValues("rate-limit.enabled=false").run(context -> {
            Shop shop = context.getBean(Shop.class);
            shop.order();
            assertThat(shop.order()).isEqualTo("ordered");
            assertThat(context.getBean(RateLimits.class).tryAcquire("anything", null))
                    .isTrue();
        });
    }

    /** A property that is added to the table is read here, too: it has a value below. */
    @Test
    void everyPropertyOfALimitIsRead() {
        Map<String, String> texts = new TreeMap<>(Map.ofEntries(
                Map.entry("algorithm", "fixed-window"),
                Map.entry("rate", "5/d"),
                Map.entry("burst", "9"),
                Map.entry("warmup", "10s"),
                Map.entry("max-concurrent", "4"),
                Map.entry("min-concurrent", "2"),
                Map.entry("late-after", "250ms"),
                Map.entry("key", "#a0"),
                Map.entry("permits", "2"),
                Map.entry("when", "true"),
                Map.entry("charge", "#result"),
                Map.entry("tier", "'gold'"),
                Map.entry("priority", "'high'"),
                Map.entry("priorities", "high, low"),
                Map.entry("shares.low", "5%"),
                Map.entry("policy", "wait"),
                Map.entry("max-wait", "PT2S"),
                Map.entry("fallback", "instead"),
                Map.entry("block", "1m"),
                Map.entry("block-factor", "1.5"),
                Map.entry("block-max", "1h"),
                Map.entry("block-unless", "false"),
                Map.entry("zone", "Asia/Tokyo"),
                Map.entry("starts-on", "15"),
                Map.entry("slots", "7"),
                Map.entry("cold-factor", "2.5"),
                Map.entry("lease", "30s"),
                Map.entry("max-waiting", "3"),
                Map.entry("missing-key", "deny"),
                Map.entry("tiers.gold.rate", "50/d"),
                Map.entry("http-headers", "none"),
                Map.entry("candidates", "10/d, 20/d"),
                Map.entry("candidates-for", "2h"),
                Map.entry("backend", "Memory"),
                Map.entry("on-failure", "deny"),
                Map.entry("max-overshoot", "5%")));
        MapPropertySource source = new MapPropertySource("test", new TreeMap<>());
        texts.forEach((name, text) -> source.getSource().put("rate-limit.limits[Shop.order].".concat(name), text));
        Map<LimitProperty, Object> read = settings(source).settings().limits().get("Shop.order");

        assertThat(read).containsOnlyKeys(LimitProperty.values());
        assertThat(read)
                .containsEntry(LimitProperty.ALGORITHM, Algorithm.FIXED_WINDOW)
                .containsEntry(LimitProperty.BURST, 9L)
                .containsEntry(LimitProperty.POLICY, Policy.WAIT)
                .containsEntry(LimitProperty.MAX_WAIT, Duration.ofSeconds(2))
                .containsEntry(LimitProperty.PRIORITIES, List.of("high", "low"))
                .containsEntry(LimitProperty.SHARES, Map.of("low", "5%"))
                .containsEntry(LimitProperty.BLOCK_FACTOR, 1.5)
                .containsEntry(LimitProperty.ZONE, ZoneId.of("Asia/Tokyo"))
                .containsEntry(LimitProperty.MISSING_KEY, MissingKey.DENY)
                .containsEntry(LimitProperty.BACKEND, "memory")
                .containsEntry(LimitProperty.ON_FAILURE, LimitProperty.OnFailure.DENY)
                .containsEntry(LimitProperty.TIERS, Map.of("gold", Map.of(LimitProperty.RATE, "50/d")));
        assertThat(texts.keySet())
                .map(name -> name.replaceAll("\\..*", ""))
                .containsExactlyInAnyOrderElementsOf(
                        Stream.of(LimitProperty.values()).map(PropertyText::of).toList());
    }

    @Test
    void listsHaveTheirOrderAndDefaultsAndThePropertiesOfAllLimitsAreRead() {
        SettingsSource read = settings(new MapPropertySource(
                "test",
                Map.of(
                        "rate-limit.defaults.priorities[1]", "low",
                        "rate-limit.defaults.priorities[0]", "high",
                        "rate-limit.defaults.candidates[1]", "20/m",
                        "rate-limit.defaults.candidates[0]", "10/m",
                        "rate-limit.defaults.maxWait", "3s",
                        "rate-limit.backend", "Own",
                        "rate-limit.memory.maximum-keys", "50",
                        "rate-limit.aspect.order", "100",
                        "rate-limit.aspect.mode", "Proxy")));
        assertThat(read.settings().defaults())
                .containsEntry(LimitProperty.PRIORITIES, List.of("high", "low"))
                .containsEntry(LimitProperty.MAX_WAIT, Duration.ofSeconds(3));
        assertThat(read.settings().backend()).isEqualTo("own");
        assertThat(read.settings().backends()).containsExactly("own");
        assertThat(read.memory().stated()).isEqualTo(50);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "rate-limit.limits.search.ratte=5/s | There is no property rate-limit.limits.search.ratte | did you mean 'rate'? | RL-101",
                "rate-limit.limits.search=5/s | There is no property rate-limit.limits.search | without Spring Boot | RL-101",
                "rate-limit.limits.Shop.order.rate=5/s | rate-limit.limits.Shop.order.rate | in brackets | RL-101",
                "rate-limit.routes[0].path=/** | There is no property rate-limit.routes[0].path without Spring Boot | starter | RL-101",
                "rate-limit.limits.search.burst=many | rate-limit.limits.search.burst is \"many\" | must be a whole number | RL-102",
                "rate-limit.limits.search.burst= | rate-limit.limits.search.burst is \"\" | must be a whole number | RL-102",
                "rate-limit.limits.search.max-wait=soon | rate-limit.limits.search.max-wait is \"soon\" | a duration such as 500ms | RL-102",
                "rate-limit.limits.search.max-wait=60 | rate-limit.limits.search.max-wait is \"60\" | a duration such as 500ms | RL-102",
                "rate-limit.limits.search.zone=Moon | rate-limit.limits.search.zone is \"Moon\" | a time zone | RL-102",
                "rate-limit.limits.search.policy=default | policy is \"default\" | one of [reject, wait, shadow] | RL-102",
                "rate-limit.limits.search.cold-factor=x | cold-factor is \"x\" | must be a number | RL-102",
                "rate-limit.limits.search.rate=fast | fast | rate-limit.limits.search.rate | RL-103",
                "rate-limit.defaults.tiers.gold.slots=many | rate-limit.defaults.tiers.gold.slots is \"many\" | a whole number | RL-102",
                "rate-limit.memory.maximum-keys=0 | rate-limit.memory.maximum-keys is 0 | at least 1 | RL-102",
                "rate-limit.aspect.order=first | rate-limit.aspect.order is first | a whole number | RL-102",
                "rate-limit.aspect.order=3000000000 | rate-limit.aspect.order is 3000000000 | a whole number from -2147483648 to 2147483647 | RL-102",
                "rate-limit.aspect.mode=wove | rate-limit.aspect.mode is wove | one of [proxy, woven] | RL-102",
                "rate-limit.defaults.priorities[1]=low | priorities are numbered [1] | from 0 without a gap | RL-101",
                "rate-limit.defaults.burst[0]=5 | There is no property rate-limit.defaults.burst[0] | without Spring Boot | RL-101",
                "rate-limit.enabled=treu | rate-limit.enabled is treu | true or false | RL-102",
                "rate-limit.backend=shared | rate-limit.backend is shared | there are [memory, redis] | RL-111"
            })
    void aMistakeStopsTheStartWithThePlaceTheValueAndTheRemedy(
            String property, String problem, String more, String code) {
        RUNNER.withPropertyValues(property)
                .run(context -> assertThat(context)
                        .getFailure()
                        .extracting(Explanation::of)
                        .satisfies(explained -> assertThat(explained.getDescription() + " " + explained.getAction())
                                .contains(problem, more, "[" + code + "]")));
    }

    /** Files of properties keep a blank at the end of a line. */
    @ParameterizedTest
    @CsvSource({
        "'proxy ', io.ratelimited.rateLimitMadeBeans",
        "' Proxy', io.ratelimited.rateLimitMadeBeans",
        "'woven ', io.ratelimited.rateLimitWovenMode",
        "' Woven', io.ratelimited.rateLimitWovenMode"
    })
    void blanksAroundAModeDoNotMatter(String mode, String check) {
        RUNNER.withInitializer(context -> context.getEnvironment()
                        .getPropertySources()
                        .addFirst(new MapPropertySource("blank", Map.of("rate-limit.aspect.mode", mode))))
                .run(context -> assertThat(context).hasNotFailed().hasBean(check));
    }

    @Test
    @ExtendWith(CapturedLog.Capture.class)
    void anEnvironmentVariableThatOnlySpringBootWouldReadIsLogged(CapturedLog log) {
        settings(new MapPropertySource("variables", Map.of("RATE_LIMIT_LIMITS_SEARCH_RATE", "5/s")));
        assertThat(log).contains("RATE_LIMIT_LIMITS_SEARCH_RATE has no effect", "[RL-330]");
        settings(new MapPropertySource("service", Map.of("RATE_LIMIT_SERVICE_HOST", "10.0.0.1")));
        assertThat(log).doesNotContain("SERVICE_HOST");
    }

    @Test
    @ExtendWith(CapturedLog.Capture.class)
    void aPropertyThatNoLimitDependsOnIsLogged(CapturedLog log) {
        settings(new MapPropertySource("test", Map.of("rate-limit.http.status", "503", "rate-limit.enabeld", "false")));
        assertThat(log)
                .contains("Property rate-limit.http.status has no effect without Spring Boot", "[RL-330]")
                .contains("rate-limit.enabeld has no effect without Spring Boot (did you mean 'enabled'?)");
    }

    /** As the two contexts of a web application without Spring Boot. */
    @Test
    void contextsOfAHierarchyShareTheirLimits() {
        RUNNER.with(Shop.class)
                .withPropertyValues("rate-limit.limits.search.rate=1/h")
                .run(parent -> {
                    RUNNER.withParent(parent).with(Shop.class).run(child -> {
                        assertThat(child).hasNotFailed().doesNotHaveBean(LimitRegistry.class);
                        Shop shop = child.getBean(Shop.class);
                        assertThat(shop).isNotSameAs(parent.getBean(Shop.class));
                        shop.order();
                        assertThatExceptionOfType(RateLimitExceededException.class)
                                .isThrownBy(parent.getBean(Shop.class)::order);
                    });
                    RUNNER.withParent(parent)
                            .withPropertyValues("rate-limit.limits.search.rate=2/h")
                            .run(child -> assertThat(child)
                                    .getFailure()
                                    .rootCause()
                                    .hasMessageContaining(
                                            "rate-limit.limits.search.rate is 2/h in a child context, but 1/h in its"
                                                    + " parent"));
                });
    }

    private static SettingsSource settings(MapPropertySource source) {
        StandardEnvironment environment = new StandardEnvironment();
        environment.getPropertySources().addFirst(source);
        return new EnvironmentSettings(environment);
    }

    static class Shop {

        @RateLimited(name = "orders", rate = "1/h")
        public String order() {
            return "ordered";
        }
    }

    interface Quotes {

        int quote();
    }

    static class InterfacedQuotes implements Quotes {

        @Override
        @RateLimited(rate = "1/h")
        public int quote() {
            return 7;
        }
    }

    @Configuration
    @Import(RateLimitConfiguration.class)
    static class Own {

        private static final ManualTicker TICKER = new ManualTicker();

        @Bean
        Ticker ownTicker() {
            return TICKER;
        }
    }
}

// The application that docs/with-spring.md shows.

@Configuration
@Import({RateLimitConfiguration.class, NightlyReports.class})
class Nightly {}

@Component
class NightlyReports {
    @RateLimited(name = "nightly-reports", rate = "2/h")
    public String create() {
        return "report";
    }
}
