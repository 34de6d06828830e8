package io.ratelimited.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimitChangedEvent;
import io.ratelimited.spring.RateLimitChangedEvent.Scope;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import javax.management.MBeanException;
import javax.management.MBeanOperationInfo;
import javax.management.MBeanParameterInfo;
import javax.management.MBeanServer;
import javax.management.ObjectName;
import org.assertj.core.api.InstanceOfAssertFactories;
import org.assertj.core.api.ThrowableAssert;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.actuate.autoconfigure.endpoint.EndpointAutoConfiguration;
import org.springframework.boot.actuate.autoconfigure.endpoint.jmx.JmxEndpointAutoConfiguration;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.jmx.JmxAutoConfiguration;
import org.springframework.boot.jackson.autoconfigure.JacksonAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.ApplicationListener;

class RateLimitsEndpointJmxTest {

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(
                    JmxAutoConfiguration.class,
                    JacksonAutoConfiguration.class,
                    EndpointAutoConfiguration.class,
                    JmxEndpointAutoConfiguration.class,
                    RateLimitAutoConfiguration.class,
                    RateLimitsEndpointAutoConfiguration.class))
            .withBean(Ticker.class, ManualTicker::new)
            .withPropertyValues(
                    "spring.jmx.enabled=true",
                    "spring.jmx.unique-names=true",
                    "management.endpoints.jmx.exposure.include=ratelimits",
                    "rate-limit.actuator.mask-keys=false",
                    "rate-limit.limits.search.rate=100/s");

    @Test
    void limitsAndKeysAreShown() {
        run((bean, limits) -> {
            limits.tryAcquire("search", 42L, 60);

            assertThat(bean.invoke("limits", Map.of()).get("limits")).asString().contains("search={", "rate=100/s");
            assertThat(bean.invoke("limit", Map.of("name", "search"))).containsEntry("rate", "100/s");
            assertThat(bean.invoke("limit", Map.of("name", "search", "key", "42")))
                    .containsEntry("remaining", 40L)
                    .containsEntry("reset", 0.6);
        });
    }

    @Test
    void aBlockedKeyIsShownAndForgiven() {
        run(runner.withPropertyValues("rate-limit.limits.search.block=1m"), (bean, limits) -> {
            limits.tryAcquire("search", "ann", 100);
            limits.tryAcquire("search", "ann");
            assertThat(bean.invoke("limit", Map.of("name", "search"))).containsEntry("blocked", 1);
            assertThat(bean.invoke("limit", Map.of("name", "search", "key", "ann")))
                    .containsEntry("blocked", true);

            bean.invoke("forget", Map.of("name", "search", "key", "ann"));

            assertThat(limits.tryAcquire("search", "ann")).isTrue();
        });
    }

    @Test
    void aLimitIsChanged() {
        run((bean, limits) -> {
            limits.tryAcquire("search", null, 60);

            Map<String, Object> changed =
                    bean.invoke("update", Map.of("name", "search", "changes", "rate=200/s, burst=150"));

            assertThat(changed)
                    .containsEntry("rate", "200/s")
                    .containsEntry("burst", 150L)
                    .containsEntry("remaining", 40L);
        });
    }

    @Test
    void listsAndMapsAreChanged() {
        run(
                runner.withPropertyValues(
                        "rate-limit.limits.report.algorithm=concurrency",
                        "rate-limit.limits.report.max-concurrent=100"),
                (bean, limits) -> {
                    String changes = "priorities=critical, normal,batch, shares=normal=20%, batch=5%, maxConcurrent=50";
                    bean.invoke("update", Map.of("name", "report", "changes", changes));

                    Limit changed = limits.limit("report").limit();
                    assertThat(changed.priorities()).containsExactly("critical", "normal", "batch");
                    assertThat(changed.shares()).containsOnlyKeys("normal", "batch");
                    assertThat(changed.maxConcurrent()).isEqualTo(50);
                });
    }

    @Test
    void aChangeIsReportedWithoutAPrincipal() {
        List<RateLimitChangedEvent> changes = new ArrayList<>();
        run(
                runner.withInitializer(context -> context.addApplicationListener(
                        ApplicationListener.forPayload((RateLimitChangedEvent change) -> changes.add(change)))),
                (bean, limits) -> bean.invoke("update", Map.of("name", "search", "changes", "rate=200/s, burst=150")));

        assertThat(changes)
                .containsExactly(new RateLimitChangedEvent(
                        "search",
                        null,
                        Map.of("rate", "100/s", "burst", 100L),
                        Map.of("rate", "200/s", "burst", 150L),
                        Scope.INSTANCE,
                        null));
    }

    @Test
    void aKeyIsForgotten() {
        run((bean, limits) -> {
            limits.tryAcquire("search", "a,b/c", 60);

            bean.invoke("forget", Map.of("name", "search", "key", "a,b/c"));

            assertThat(limits.peek("search", "a,b/c").remaining()).isEqualTo(100);
        });
    }

    @Test
    void mistakesAreSaid() {
        run((bean, limits) -> {
            assertFailure(() -> bean.invoke("limit", Map.of("name", "serch")), "there is no rate limit named 'serch'");
            assertFailure(() -> bean.invoke("update", Map.of("name", "search", "changes", "rate=fast")), "\"fast\"");
            assertFailure(
                    () -> bean.invoke("update", Map.of("name", "search", "changes", "rate=5/s, bust=9")),
                    "a limit has no [bust] (did you mean 'burst'?)");
            assertFailure(
                    () -> bean.invoke("update", Map.of("name", "search", "changes", "200/s")),
                    "\"200/s\" is not a change; write it as in rate=200/s, burst=400");
            assertThat(limits.limit("search").limit().rate()).hasToString("100/s");
        });
    }

    @Test
    void whatIsLeftOfABudgetsTimeIsRoundedUp() {
        runner.run(context -> {
            RateLimitsEndpoint endpoint = context.getBean(RateLimitsEndpoint.class);
            ManualTicker ticker = (ManualTicker) context.getBean(Ticker.class);
            endpoint.update("search", "key=bob, rate=3/d, for=24h");
            ticker.advance(Duration.ofNanos(1));

            assertThat(endpoint.limit("search", "bob"))
                    .extractingByKey("budget", InstanceOfAssertFactories.MAP)
                    .containsEntry("for", "1d");

            ticker.advance(Duration.ofHours(24).minusNanos(2));
            assertThat(endpoint.limit("search", "bob"))
                    .extractingByKey("budget", InstanceOfAssertFactories.MAP)
                    .containsEntry("for", "1s");
        });
    }

    /** A bare number would be milliseconds: the budget would have ended before anybody could see it. */
    @ParameterizedTest
    @ValueSource(strings = {"3", " 24 ", "-1", "0", " ", "1ns", "later"})
    void aBudgetLastsForATimeWithAUnit(String lasting) {
        runner.run(context -> {
            RateLimitsEndpoint endpoint = context.getBean(RateLimitsEndpoint.class);
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> endpoint.update("search", "bob", Map.of("rate", "3/d", "for", lasting), null))
                    .withMessageMatching(".*(use a duration with its unit, such as 24h|lasts from 1 ms to 3650d).*");
            assertThat(endpoint.limit("search", "bob")).doesNotContainKey("budget");
        });
    }

    @Test
    void withoutActuatorThereIsNoEndpoint() {
        new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        RateLimitAutoConfiguration.class, RateLimitsEndpointAutoConfiguration.class))
                .withClassLoader(new FilteredClassLoader(Endpoint.class))
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .hasSingleBean(RateLimits.class)
                        .doesNotHaveBean(RateLimitsEndpoint.class)
                        .doesNotHaveBean(RejectedKeys.class));
    }

    @Test
    void anEndpointThatIsNotExposedCostsNothing() {
        runner.withPropertyValues("management.endpoints.jmx.exposure.include=health")
                .run(context -> assertThat(context)
                        .hasNotFailed()
                        .doesNotHaveBean(RateLimitsEndpoint.class)
                        .doesNotHaveBean(RejectedKeys.class));
    }

    @Test
    void aDisabledStarterHasNoEndpoint() {
        runner.withPropertyValues("rate-limit.enabled=false")
                .run(context -> assertThat(context).hasNotFailed().doesNotHaveBean(RateLimitsEndpoint.class));
    }

    private static void assertFailure(ThrowableAssert.ThrowingCallable call, String message) {
        assertThatThrownBy(call).hasRootCauseInstanceOf(RuntimeException.class).satisfies(failure -> {
            Throwable cause = failure;
            while (!(cause instanceof MBeanException)) {
                cause = cause.getCause();
            }
            assertThat(cause.getCause()).hasMessageContaining(message);
        });
    }

    private void run(BiConsumer<Bean, TestLimits> test) {
        run(runner, test);
    }

    private static void run(ApplicationContextRunner runner, BiConsumer<Bean, TestLimits> test) {
        runner.run(context -> {
            TestLimits limits = TestLimits.of(context);
            limits.limit("search");
            MBeanServer server = context.getBean(MBeanServer.class);
            ObjectName name = server.queryNames(
                            new ObjectName("org.springframework.boot:type=Endpoint,name=Ratelimits,*"), null)
                    .iterator()
                    .next();
            test.accept(new Bean(server, name), limits);
        });
    }

    private record Bean(MBeanServer server, ObjectName name) {

        @SuppressWarnings("unchecked")
        private Map<String, Object> invoke(String operation, Map<String, String> arguments) {
            try {
                MBeanOperationInfo info = Arrays.stream(
                                server.getMBeanInfo(name).getOperations())
                        .filter(candidate -> candidate.getName().equals(operation))
                        .findFirst()
                        .orElseThrow();
                MBeanParameterInfo[] signature = info.getSignature();
                return (Map<String, Object>) server.invoke(
                        name,
                        operation,
                        Arrays.stream(signature)
                                .map(parameter -> arguments.get(parameter.getName()))
                                .toArray(),
                        Arrays.stream(signature)
                                .map(MBeanParameterInfo::getType)
                                .toArray(String[]::new));
            } catch (Exception ex) {
                throw new IllegalStateException(ex);
            }
        }
    }
}
