package io.ratelimited.spring.redis;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Threads;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisHealth.State;
import io.ratelimited.redis.RedisProcess;
import io.ratelimited.redis.RedisUnavailableException;
import io.ratelimited.redis.SharedRecords;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimitChangedEvent.Scope;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.actuate.RateLimitsEndpoint;
import io.ratelimited.spring.actuate.RateLimitsEndpointAutoConfiguration;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import java.math.BigDecimal;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.autoconfigure.ImportAutoConfiguration;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.health.contributor.HealthIndicator;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.cloud.context.environment.EnvironmentChangeEvent;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.env.MapPropertySource;
import org.springframework.security.authentication.TestingAuthenticationToken;
import org.springframework.security.core.context.SecurityContextHolder;

/** Changes of limits that several instances share, and budgets of callers. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("once")
@Tag("slow")
class FleetChangesTest {
    /** Ten thousand lines take longer to be written than the changes to be made. */
    private static final String UNREPORTED = "logging.level.io.ratelimited.spring.internals.limit.ChangeReports=warn";

    private static RedisProcess server;

    private final Deque<ConfigurableApplicationContext> running = new ArrayDeque<>();

    @BeforeAll
    static void startServer() {
        server = RedisProcess.start();
    }

    @AfterAll
    static void stopServer() {
        server.close();
    }

    @BeforeEach
    void empty() {
        server.ask(commands -> commands.flushall());
    }

    @AfterEach
    void stop() {
        running.forEach(ConfigurableApplicationContext::close);
    }

    /** Of all that is on the class path, what has to do with changes: each instance starts in half of the time. */
    @Configuration(proxyBeanMethods = false)
    @ImportAutoConfiguration({
        RateLimitAutoConfiguration.class,
        RateLimitsEndpointAutoConfiguration.class,
        RedisRateLimitAutoConfiguration.class,
        RedisRateLimitHealthAutoConfiguration.class,
        AopAutoConfiguration.class
    })
    static class Application {}

    private ConfigurableApplicationContext instance(String... more) {
        return instance(server, more);
    }

    private ConfigurableApplicationContext instance(RedisProcess of, String... more) {
        List<String> properties = new ArrayList<>(List.of(
                "spring.main.banner-mode=off",
                "management.endpoints.jmx.exposure.include=ratelimits",
                "spring.jmx.enabled=false",
                "management.endpoints.web.exposure.include=ratelimits",
                "rate-limit.backend=redis",
                "rate-limit.redis.url=redis://127.0.0.1:" + of.port(),
                "rate-limit.redis.timeout=20s",
                "rate-limit.limits.search.algorithm=fixed-window",
                "rate-limit.limits.search.rate=10/d",
                "rate-limit.limits.search.tiers.gold.rate=20/d",
                "rate-limit.limits.search.tiers.silver.rate=15/d",
                "rate-limit.limits.local.rate=10/d",
                "rate-limit.limits.local.backend=memory"));
        properties.removeIf(property -> List.of(more).contains("without=silver") && property.contains("silver"));
        properties.addAll(List.of(more));
        ConfigurableApplicationContext instance = new SpringApplicationBuilder(Application.class)
                .web(WebApplicationType.NONE)
                .properties(properties.toArray(String[]::new))
                .run();
        running.push(instance);
        return instance;
    }

    private static TestLimits limits(ConfigurableApplicationContext instance) {
        return TestLimits.of(instance);
    }

    private static String rate(ConfigurableApplicationContext instance) {
        return limits(instance).limit("search").limit().rate().toString();
    }

    private static String tier(ConfigurableApplicationContext instance, String tier) {
        return limits(instance).limit("search").tiers().get(tier).rate().toString();
    }

    private static LimitChange rateOf(String rate) {
        return LimitChange.rate(rate);
    }

    @Test
    void aChangeReachesEveryInstanceAndThoseThatJoinAndStaysOverRestarts() {
        ConfigurableApplicationContext one = instance();
        ConfigurableApplicationContext two = instance();

        limits(one).change("search", LimitChange.rate("50/d"));
        limits(one).change("search", LimitChange.tier("gold").with("rate", "200/d"));

        assertThat(rate(one)).isEqualTo("50/d");
        Threads.untilAsserted(() -> assertThat(tier(two, "gold")).isEqualTo("200/d"));
        assertThat(rate(two)).isEqualTo("50/d");
        one.close();
        two.close();
        ConfigurableApplicationContext three = instance("rate-limit.limits.search.tiers.silver.rate=16/d");
        assertThat(rate(three)).isEqualTo("50/d");
        assertThat(tier(three, "gold")).isEqualTo("200/d");
        assertThat(tier(three, "silver")).isEqualTo("16/d");

        ConfigurableApplicationContext four = instance();
        limits(three).revert("search");
        assertThat(rate(three)).isEqualTo("10/d");
        Threads.untilAsserted(() -> assertThat(tier(four, "gold")).isEqualTo("20/d"));
        assertThat(rate(four)).isEqualTo("10/d");
        assertThat(rate(instance())).isEqualTo("10/d");
    }

    /** Also by those that start later. */
    @Test
    void everyInstanceLogsWhoHasMadeAChangeAndShowsIt(CapturedOutput output) {
        ConfigurableApplicationContext one = instance();
        ConfigurableApplicationContext two = instance();
        as("ann", () -> limits(one).change("search", rateOf("50/d")));
        as("bob", () -> limits(one).override("search", "zoe", rateOf("3/d"), null));

        Threads.untilAsserted(
                () -> assertThat(limits(two).peek("search", "zoe").remaining()).isEqualTo(3));
        ConfigurableApplicationContext three = instance();
        assertThat(output.toString().lines())
                .filteredOn(line -> line.matches(".*'search': .*rate 10/d -> 50/d.*scope fleet, by ann, at 20.*Z.*"))
                .hasSize(3);
        assertThat(output.toString().lines())
                .filteredOn(
                        line -> line.matches(".*'search', key .*rate unset -> 3/d.*scope fleet, by bob, at 20.*Z.*"))
                .hasSize(2);
        for (ConfigurableApplicationContext each : List.of(one, two, three)) {
            RateLimitsEndpoint endpoint = each.getBean(RateLimitsEndpoint.class);
            assertThat(endpoint.limit("search", null))
                    .containsEntry("changedBy", "ann")
                    .containsKey("changedAt");
            assertThat(endpoint.limit("search", "zoe"))
                    .containsEntry("changedBy", "bob")
                    .containsKey("changedAt");
            assertThat(endpoint.limit("search", "yan")).doesNotContainKey("changedBy");
        }
        limits(two).revert("search");
        assertThat(two.getBean(RateLimitsEndpoint.class).limit("search", null))
                .doesNotContainKeys("changedBy", "changedAt");
    }

    private static void as(String name, Runnable change) {
        SecurityContextHolder.getContext().setAuthentication(new TestingAuthenticationToken(name, null));
        try {
            change.run();
        } finally {
            SecurityContextHolder.clearContext();
        }
    }

    @Test
    void theAnswerSaysWhomAChangeReaches() {
        ConfigurableApplicationContext one = instance();
        RateLimitsEndpoint endpoint = one.getBean(RateLimitsEndpoint.class);

        assertThat(endpoint.update("search", "rate=11/d"))
                .containsEntry("scope", "fleet")
                .containsEntry("rate", "11/d");
        assertThat(endpoint.update("local", "rate=11/d")).containsEntry("scope", "instance");
        assertThat(endpoint.update("search", "revert=true"))
                .containsEntry("scope", "fleet")
                .containsEntry("rate", "10/d");
        assertThat(endpoint.update("local", "revert=true")).containsEntry("rate", "10/d");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> endpoint.update("search", "revert=true, rate=3/d"))
                .withMessageContaining("without other members");
        assertThatIllegalArgumentException().isThrownBy(() -> endpoint.update("search", "revert=maybe"));
        assertThat(rate(one)).isEqualTo("10/d");

        ConfigurableApplicationContext alone = instance("rate-limit.redis.share-changes=false");
        assertThat(limits(alone).limit("search").scope()).isEqualTo(Scope.INSTANCE);
        limits(alone).change("search", LimitChange.rate("99/d"));
        assertThat(rate(alone)).isEqualTo("99/d");
        assertThat(rate(instance())).isEqualTo("10/d");
    }

    @Test
    void aRaisedQuotaHelpsAtOnceWhereARefusalWasRemembered() {
        ConfigurableApplicationContext one = instance();
        ConfigurableApplicationContext two = instance();
        assertThat(limits(one).tryAcquire("search", "ann", 10)).isTrue();
        assertThat(limits(two).tryAcquire("search", "ann")).isFalse();

        limits(one).change("search", LimitChange.rate("12/d"));

        assertThat(limits(one).tryAcquire("search", "ann")).isTrue();
        Threads.until(() -> limits(two).tryAcquire("search", "ann"));
        assertThat(limits(one).tryAcquire("search", "ann")).isFalse();
    }

    @Test
    void changesOfTwoInstancesAtTheSameTimeAreBothMade() {
        ConfigurableApplicationContext one = instance();
        ConfigurableApplicationContext two = instance();

        CompletableFuture<?> first = CompletableFuture.runAsync(() -> {
            for (int i = 1; i <= 20; i++) {
                limits(one).change("search", rateOf(100 + i + "/d"));
            }
        });
        for (int i = 1; i <= 20; i++) {
            limits(two).change("search", LimitChange.tier("gold").with("rate", 200 + i + "/d"));
        }
        first.join();

        for (ConfigurableApplicationContext each : running) {
            Threads.untilAsserted(() -> {
                assertThat(rate(each)).isEqualTo("120/d");
                assertThat(tier(each, "gold")).isEqualTo("220/d");
            });
        }
    }

    @Test
    void anInstanceThatCannotApplyAChangeSaysSoAndGoesOn(CapturedOutput output) {
        ConfigurableApplicationContext one = instance();
        limits(one).change("search", LimitChange.tier("silver").with("rate", "17/d"));
        ConfigurableApplicationContext older = instance("without=silver");
        RateLimitsEndpoint endpoint = older.getBean(RateLimitsEndpoint.class);
        HealthIndicator health = older.getBean("rateLimitHealthIndicator", HealthIndicator.class);

        assertThat(rate(older)).isEqualTo("10/d");
        assertThat(output).containsOnlyOnce("which cannot apply the change");
        assertThat(endpoint.limit("search", null))
                .containsEntry("changeNotApplied", "there is no tier 'silver'; there are [gold]");
        assertThat(health.health().getStatus().getCode()).isEqualTo("DEGRADED");
        assertThat(health.health().getDetails()).containsKey("changesNotApplied");
        assertThatThrownBy(() -> limits(older).change("search", rateOf("30/d")))
                .isInstanceOf(InvalidRateLimitException.class)
                .hasMessageContaining("does not apply the change for all");

        limits(one).revert("search");
        Threads.untilAsserted(() -> assertThat(endpoint.limit("search", null)).doesNotContainKey("changeNotApplied"));
        assertThat(health.health().getStatus().getCode()).isEqualTo("UP");
        limits(one).change("search", rateOf("30/d"));
        Threads.untilAsserted(() -> assertThat(rate(older)).isEqualTo("30/d"));
    }

    /** An instance with a limit on calls in flight, which can have no priorities on Redis. */
    private ConfigurableApplicationContext instanceWithPool() {
        return instance(
                "rate-limit.limits.pool.algorithm=concurrency",
                "rate-limit.limits.pool.max-concurrent=5",
                "rate-limit.limits.a.rate=10/s",
                "rate-limit.limits.z.rate=10/s");
    }

    private static int pool(ConfigurableApplicationContext instance) {
        return limits(instance).limit("pool").limit().maxConcurrent();
    }

    private static String health(ConfigurableApplicationContext instance) {
        return instance.getBean("rateLimitHealthIndicator", HealthIndicator.class)
                .health()
                .getStatus()
                .getCode();
    }

    @Test
    void aChangeThatRedisDoesNotSupportIsMadeNowhereAndTheNextIsMadeEverywhere() {
        ConfigurableApplicationContext one = instanceWithPool();
        ConfigurableApplicationContext two = instanceWithPool();
        RateLimitsEndpoint endpoint = one.getBean(RateLimitsEndpoint.class);

        assertThatIllegalArgumentException()
                .isThrownBy(() -> endpoint.update("pool", "priorities=high"))
                .withMessageContaining("'pool' is invalid: priorities order the calls of one process, which Redis does")
                .withMessageContaining("Origin: change at run time, of rate-limit.limits.pool.")
                .withMessageContaining("Nothing was changed");
        limits(two).change("pool", LimitChange.of("max-concurrent", "10"));

        assertThat(pool(two)).isEqualTo(10);
        Threads.untilAsserted(() -> assertThat(pool(one)).isEqualTo(10));
        assertThat(health(one)).isEqualTo("UP");
        assertThat(health(two)).isEqualTo("UP");
    }

    /** As an instance of another version may have made it. */
    @Test
    void aChangeThatNoInstanceAppliesIsRepairedByOneThatCorrectsIt() {
        ConfigurableApplicationContext one = instanceWithPool();
        ConfigurableApplicationContext two = instanceWithPool();
        RedisBackend redis = one.getBean(RedisBackend.class);
        redis.records().write(new SharedRecords.Key("pool", null), 0, "maxWaiting=7&priorities=a", null, null, 1);
        for (ConfigurableApplicationContext each : running) {
            Threads.untilAsserted(() -> assertThat(health(each)).isEqualTo("DEGRADED"));
        }

        assertThatThrownBy(() -> limits(two).change("pool", LimitChange.of("max-concurrent", "10")))
                .isInstanceOf(InvalidRateLimitException.class)
                .hasMessageContaining("does not apply the change for all instances")
                .hasMessageContaining("which Redis does not support");
        two.getBean(RateLimitsEndpoint.class).update("pool", "maxConcurrent=10, priorities=");

        for (ConfigurableApplicationContext each : running) {
            Threads.untilAsserted(() -> assertThat(health(each)).isEqualTo("UP"));
            assertThat(pool(each)).isEqualTo(10);
            assertThat(limits(each).limit("pool").limit().maxWaiting()).isEqualTo(7);
        }
    }

    @Test
    void aRefreshThatRedisDoesNotSupportForOneLimitChangesNone(CapturedOutput output) {
        ConfigurableApplicationContext one = instanceWithPool();
        one.getEnvironment()
                .getPropertySources()
                .addFirst(new MapPropertySource(
                        "changed",
                        Map.of(
                                "rate-limit.limits.a.rate", "20/s",
                                "rate-limit.limits.pool.priorities", "high,low",
                                "rate-limit.limits.z.rate", "20/s")));
        one.publishEvent(new EnvironmentChangeEvent(one, Set.of()));

        assertThat(limits(one).limit("a").limit().rate()).hasToString("10/s");
        assertThat(limits(one).limit("z").limit().rate()).hasToString("10/s");
        assertThat(output)
                .contains("The configuration was not applied. Rate limit 'pool' is invalid: priorities order the calls")
                .contains("Origin: rate-limit.limits.pool.priorities.");
    }

    @Test
    void aChangeThatCannotBeReadIsInTheHealthOfThoseThatStartLaterAndTheOtherChangesHold() {
        ConfigurableApplicationContext one = instance();
        limits(one).change("search", rateOf("50/d"));
        limits(one).override("search", "ann", rateOf("3/d"), null);
        String changes = server.ask(redis -> redis.keys("*~changes2")).get(0);
        server.ask(redis -> redis.hset(changes, "lsearch", "rubbish\nWARN forged"));

        ConfigurableApplicationContext late = instance();
        HealthIndicator health = late.getBean("rateLimitHealthIndicator", HealthIndicator.class);
        assertThat(rate(late)).isEqualTo("10/d");
        assertThat(limits(late).peek("search", "ann").remaining()).isEqualTo(3);
        assertThat(health.health().getStatus().getCode()).isEqualTo("DEGRADED");
        assertThat(health.health().getDetails())
                .containsEntry("redis", "UP")
                .hasEntrySatisfying(
                        "problems", problems -> assertThat(problems.toString()).contains("lsearch"));

        late.getBean(RateLimitsEndpoint.class).update("search", "rate=60/d");
        assertThat(health.health().getStatus().getCode()).isEqualTo("UP");
        Threads.untilAsserted(() -> assertThat(rate(one)).isEqualTo("60/d"));
    }

    @Test
    void withoutRedisAChangeFailsAndIsMadeNowhere() {
        try (RedisProcess own = RedisProcess.start()) {
            ConfigurableApplicationContext one = instance(own);
            limits(one).change("search", LimitChange.rate("50/d"));
            own.kill();

            assertThatThrownBy(() -> {
                        for (int i = 0; i < 3; i++) {
                            limits(one).change("search", LimitChange.rate("60/d"));
                        }
                    })
                    .isInstanceOf(RedisUnavailableException.class)
                    .hasMessageContaining("changed for all instances");
            assertThat(rate(one)).isEqualTo("50/d");

            ConfigurableApplicationContext two = instance(own);
            assertThat(rate(two)).isEqualTo("10/d");
            own.restart();
            // Redis has lost its data: the instance that knows the change writes it back, and the new one learns of it.
            Threads.untilAsserted(() -> assertThat(rate(two)).isEqualTo("50/d"));
            Threads.until(() -> two.getBean(RedisBackend.class).health().state() == State.UP);
            limits(two).revert("search");
            Threads.untilAsserted(() -> assertThat(rate(one)).isEqualTo("10/d"));
        }
    }

    @Test
    void aBudgetOfACallerIsItsOwnOnEveryInstanceUntilItIsRevoked() {
        ConfigurableApplicationContext one = instance();
        ConfigurableApplicationContext two = instance();
        RateLimitsEndpoint endpoint = two.getBean(RateLimitsEndpoint.class);

        limits(one).override("search", "ann", rateOf("3/d"), Duration.ofHours(24));
        limits(one).override("search", 42L, LimitChange.of("tier", "gold"), null);

        assertThat(limits(one).tryAcquire("search", "ann", 2)).isTrue();
        Threads.untilAsserted(() -> assertThat(endpoint.limit("search", null)).containsEntry("budgets", 2));
        assertThat(limits(two).tryAcquire("search", "ann", 2)).isFalse();
        assertThat(limits(two).tryAcquire("search", "ann", 1)).isTrue();
        assertThat(limits(two).tryAcquire("search", "42", 20)).isTrue();
        assertThat(limits(one).tryAcquire("search", "bob", 10)).isTrue();
        assertThat(limits(two).tryAcquire("search", "bob")).isFalse();
        assertThat(endpoint.limit("search", "ann")).containsEntry("remaining", 0L);
        assertThat(endpoint.limit("search", "42")).containsEntry("budget", Map.of("tier", "gold"));
        ConfigurableApplicationContext three = instance();
        assertThat(limits(three).peek("search", "ann").remaining()).isZero();

        assertThat(endpoint.update("search", "key=ann, revert=true")).containsEntry("scope", "fleet");
        limits(two).removeOverride("search", 42);

        assertThat(limits(two).tryAcquire("search", "ann", 10)).isTrue();
        Threads.untilAsserted(
                () -> assertThat(one.getBean(RateLimitsEndpoint.class).limit("search", null))
                        .doesNotContainKey("budgets"));
        assertThat(limits(one).tryAcquire("search", "ann")).isFalse();
    }

    @Test
    void manyCallersMayHaveABudgetAndThoseThatEndEndEverywhere() {
        budgetsOf(300);
    }

    @Test
    @Tag("proof")
    void tenThousandCallersMayHaveABudgetAndThoseThatEndMakeRoom() {
        budgetsOf(10_000);
        ConfigurableApplicationContext one = running.peekLast();
        ConfigurableApplicationContext two = running.peekFirst();
        LimitChange small = rateOf("3/d");
        for (int i = 0; i < 100; i++) {
            limits(i % 2 == 0 ? one : two).override("search", "another " + i, small, null);
        }
        assertThatThrownBy(() -> limits(two).override("search", "too many", small, null))
                .isInstanceOf(InvalidRateLimitException.class)
                .hasMessageContaining("10000 callers have an override");
        ConfigurableApplicationContext three = instance();
        assertThat(three.getBean(RateLimitsEndpoint.class).limit("search", null))
                .containsEntry("budgets", 10_000);
        assertThat(limits(three).peek("search", "user 9999").remaining()).isZero();
    }

    /** Given by two instances; those of the first hundred end. */
    private void budgetsOf(int callers) {
        ConfigurableApplicationContext one = instance(UNREPORTED);
        ConfigurableApplicationContext two = instance(UNREPORTED);
        LimitChange small = rateOf("3/d");
        String last = "user " + (callers - 1);
        // Those that end soon come last.
        IntStream.range(100, callers)
                .parallel()
                .forEach(i -> limits(i % 2 == 0 ? one : two).override("search", "user " + i, small, null));
        for (int i = 0; i < 100; i++) {
            limits(one).override("search", "user " + i, small, Duration.ofSeconds(1));
        }

        long begin = System.nanoTime();
        limits(one).override("search", "user 200", rateOf("50/d"), null);
        Threads.untilAsserted(() ->
                assertThat(limits(two).peek("search", "user 200").remaining()).isEqualTo(50));
        System.out.printf(
                "FLEET among %,d budgets the other instance uses a new one after %d ms%n",
                callers, (System.nanoTime() - begin) / 1_000_000);
        Threads.untilAsserted(
                () -> assertThat(limits(one).peek("search", last).remaining()).isEqualTo(3));
        assertThat(limits(two).tryAcquire("search", last, 3)).isTrue();
        assertThat(limits(one).tryAcquire("search", last)).isFalse();
        assertThat(limits(two).tryAcquire("search", "user 200", 50)).isTrue();
        assertThat(limits(one).tryAcquire("search", "user 200")).isFalse();

        for (ConfigurableApplicationContext each : running) {
            Threads.untilAsserted(() -> {
                assertThat(limits(each).peek("search", "user 7").remaining()).isEqualTo(10);
                assertThat(each.getBean(RateLimitsEndpoint.class).limit("search", null))
                        .containsEntry("budgets", callers - 100);
            });
        }
    }

    /** An endpoint has the text of a key only, as it shows it. */
    @Test
    void aKeyThatIsNoPlainTextHasTheBudgetThatItsTextIsGiven() {
        ConfigurableApplicationContext one = instance();
        RateLimitsEndpoint endpoint = one.getBean(RateLimitsEndpoint.class);
        List<Object> keys = List.of(
                List.of("zoe", "gold"),
                Scope.FLEET,
                Map.of("user", 7),
                "(555) 123",
                "(List)of friends",
                List.of("a".repeat(80)),
                "long".repeat(20),
                new BigDecimal("1.5"));
        for (String limit : List.of("search", "local")) {
            for (Object key : keys) {
                String shown = key.equals("(555) 123") ? "(555) 123" : CanonicalKey.text(key);
                assertThat(endpoint.update(limit, "key=" + shown + ", rate=30/d"))
                        .as(shown)
                        .containsEntry("remaining", 30L)
                        .containsEntry("budget", Map.of("rate", "30/d"));
                assertThat(limits(one).tryAcquire(limit, key, 30)).as(shown).isTrue();
                assertThat(limits(one).tryAcquire(limit, key)).as(shown).isFalse();
                assertThat(endpoint.limit(limit, shown)).as(shown).containsEntry("remaining", 0L);
            }
            assertThat(endpoint.limit(limit, null)).containsEntry("budgets", keys.size());
            limits(one).override(limit, keys.get(0), rateOf("7/d"), null);
            assertThat(endpoint.limit(limit, null)).containsEntry("budgets", keys.size());
            for (Object key : keys) {
                endpoint.update(limit, "key=" + CanonicalKey.text(key) + ", revert=true");
                assertThat(limits(one).tryAcquire(limit, key)).isTrue();
            }
            assertThat(endpoint.limit(limit, null)).doesNotContainKey("budgets");
        }
    }

    @Test
    void inMemoryABudgetIsThisInstances() {
        ConfigurableApplicationContext one = instance("rate-limit.limits.local.tiers.gold.rate=20/d");
        RateLimitsEndpoint endpoint = one.getBean(RateLimitsEndpoint.class);

        assertThat(endpoint.update("local", "key=ann, rate=3/d, burst=4, for=24h"))
                .containsEntry("scope", "instance")
                .containsEntry("remaining", 4L)
                .extractingByKey("budget", InstanceOfAssertFactories.MAP)
                .containsEntry("rate", "3/d")
                .containsEntry("burst", 4L)
                .containsKey("for");
        assertThat(limits(one).tryAcquire("local", "ann", 4)).isTrue();
        assertThat(limits(one).tryAcquire("local", "ann")).isFalse();
        assertThat(limits(one).tryAcquire("local", "bob", 10)).isTrue();
        endpoint.update("local", "key=bob, tier=gold");
        assertThat(limits(one).tryAcquire("local", "bob", 20)).isTrue();
        for (String invalid : List.of(
                "key=ann, tier=silver",
                "key=ann, rate=0",
                "key=ann, burst=3",
                "key=ann, tier=gold, rate=3/d",
                "key=ann, for=2h",
                "key=ann, rate=3/d, for=soon",
                "key=ann, rate=3/d, for=-1s",
                "key=ann, rate=3/d, for=200000d",
                "key=ann, rate=3/d, for=",
                "key=ann, rate=3/d, burst=",
                "rate=3/d, policy=",
                "key=ann, policy=wait",
                "key=ann, warmup=3s, rate=3/d")) {
            assertThatIllegalArgumentException()
                    .as(invalid)
                    .isThrownBy(() -> endpoint.update("local", invalid))
                    .withMessageContaining("othing was changed");
        }
        assertThat(endpoint.limit("local", null)).containsEntry("budgets", 2);

        limits(one).change("local", LimitChange.of("max-waiting", "7"));
        assertThat(limits(one).tryAcquire("local", "ann")).isFalse();
        endpoint.update("local", "key=ann, revert=true");
        assertThat(limits(one).tryAcquire("local", "ann", 10)).isTrue();
    }
}
