package io.ratelimited.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RouteProperties;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.context.properties.bind.BindHandler;
import org.springframework.boot.context.properties.bind.Bindable;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.bind.UnboundConfigurationPropertiesException;
import org.springframework.boot.context.properties.bind.handler.NoUnboundElementsBindHandler;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.core.env.MapPropertySource;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.env.SystemEnvironmentPropertySource;

/** A property source that sets a list replaces the list of the sources below it. */
class UnboundPropertiesTest {

    private final ApplicationContextRunner base = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(RateLimitAutoConfiguration.class))
            .withInitializer(context -> context.getEnvironment()
                    .getPropertySources()
                    .addLast(new MapPropertySource(
                            "base",
                            Map.of(
                                    "rate-limit.limits.any.rate", "1/m",
                                    "rate-limit.http.trusted-proxies[0]", "10.0.0.0/8",
                                    "rate-limit.http.trusted-proxies[1]", "192.168.0.0/16",
                                    "rate-limit.routes[0].path", "/base",
                                    "rate-limit.routes[0].methods[0]", "GET",
                                    "rate-limit.routes[0].exclude[0]", "/base/open",
                                    "rate-limit.routes[0].limits[0]", "any",
                                    "rate-limit.routes[1].path", "/second",
                                    "rate-limit.routes[1].methods[0]", "PUT",
                                    "rate-limit.routes[1].limits[0]", "any"))));

    @Test
    void aHigherSourceReplacesTheRoutes() {
        base.withPropertyValues("rate-limit.routes[0].path=/prod", "rate-limit.routes[0].limits[0]=any")
                .run(context -> assertThat(
                                context.getBean(RateLimitProperties.class).routes())
                        .isEqualTo(List.of(new RouteProperties("/prod", null, null, List.of("any"), null, null))));
    }

    @Test
    void aVariableOfTheEnvironmentReplacesThem() {
        base.withInitializer(context -> context.getEnvironment()
                        .getPropertySources()
                        .addFirst(new SystemEnvironmentPropertySource(
                                "test-systemEnvironment",
                                Map.of(
                                        "RATE_LIMIT_ROUTES_0_PATH", "/prod",
                                        "RATE_LIMIT_ROUTES_0_LIMITS", "any",
                                        "RATE_LIMIT_HTTP_TRUSTED_PROXIES", "1"))))
                .run(context -> {
                    RateLimitProperties properties = context.getBean(RateLimitProperties.class);
                    assertThat(properties.routes())
                            .extracting(RouteProperties::path)
                            .containsExactly("/prod");
                    assertThat(properties.routes())
                            .extracting(RouteProperties::methods)
                            .containsOnlyNulls();
                    assertThat(properties.http().trustedProxies()).containsExactly("1");
                });
    }

    /** As a test does whose context lacks the beans that keys of routes name. */
    @Test
    void aHigherSourceRemovesTheRoutes() {
        ApplicationContextRunner lacking = base.withInitializer(context -> context.getEnvironment()
                .getPropertySources()
                .addBefore(
                        "base",
                        new MapPropertySource(
                                "application",
                                Map.of(
                                        "rate-limit.routes[0].path", "/prod",
                                        "rate-limit.routes[0].key", "@tenants.current()",
                                        "rate-limit.routes[0].limits[0]", "any"))));
        lacking.run(context ->
                assertThat(context).getFailure().rootCause().hasMessageContaining("names the unknown bean @tenants"));
        lacking.withPropertyValues("rate-limit.routes=").run(context -> {
            assertThat(context.getBean(RateLimitProperties.class).routes()).isEmpty();
            assertThat(context.getBean(RateLimits.class).tryAcquire("any", null))
                    .isTrue();
        });
    }

    @Test
    void aRouteThatLosesItsLimitsSaysWhy() {
        base.withPropertyValues("rate-limit.routes[0].path=/prod")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("rate-limit.routes[0].limits")
                        .extracting("remedy")
                        .asString()
                        .contains("replaces the whole list"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "rate-limit.routes[0].metods[0]",
                "rate-limit.limits[5].rtae",
                "rate-limit.limits.any.tiers[5].rtae",
                "rate-limit.clients.partner.hots",
                "rate-limit.defaults.rtae"
            })
    void aMisspeltNameIsReported(String name) {
        base.withPropertyValues(name + "=GET", "rate-limit.routes[0].path=/x", "rate-limit.routes[0].limits[0]=any")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .isInstanceOf(UnboundConfigurationPropertiesException.class)
                        .hasMessageContaining(name));
        base.withInitializer(context -> context.getEnvironment()
                        .getPropertySources()
                        .addLast(new MapPropertySource("lowest", Map.of(name, "GET"))))
                .run(context -> {
                    if (name.startsWith("rate-limit.routes")) {
                        assertThat(context).hasNotFailed();
                    } else {
                        assertThat(context).getFailure().rootCause().hasMessageContaining(name);
                    }
                });
    }

    /** A number would be milliseconds, so that a block of 60 would be over at once. */
    @ParameterizedTest
    @CsvSource({
        "limits.any.block, 60",
        "limits.any.tiers.gold.max-wait, ${two}",
        "clients.partner.max-pause, 2",
        "redis.timeout, 2"
    })
    void aDurationNeedsAUnit(String name, String value) {
        StandardEnvironment environment = new StandardEnvironment();
        environment
                .getPropertySources()
                .addFirst(new MapPropertySource("low", Map.of("rate-limit." + name, value, "two", "+2")));
        assertThatThrownBy(() -> Binder.get(environment)
                        .bindOrCreate(
                                "rate-limit",
                                Bindable.of(RateLimitProperties.class),
                                new UnboundProperties(BindHandler.DEFAULT)))
                .rootCause()
                .isInstanceOf(InvalidRateLimitException.class)
                .hasMessageMatching("Property rate-limit\\." + Pattern.quote(name)
                        + " is \\+?(60|2), but must be a duration such as 500ms, 10s or PT10S\\.")
                .extracting("remedy")
                .isEqualTo("Add its unit. [RL-102]");
    }

    @Test
    void aRefreshReadsListsAlike() {
        StandardEnvironment environment = new StandardEnvironment();
        environment
                .getPropertySources()
                .addFirst(new MapPropertySource("low", Map.of("rate-limit.routes[0].methods[0]", "GET")));
        environment
                .getPropertySources()
                .addFirst(new MapPropertySource("high", Map.of("rate-limit.routes[0].path", "/prod")));
        RateLimitProperties properties = Binder.get(environment)
                .bindOrCreate(
                        "rate-limit",
                        Bindable.of(RateLimitProperties.class),
                        new UnboundProperties(new NoUnboundElementsBindHandler(BindHandler.DEFAULT)));
        assertThat(properties.routes()).extracting(RouteProperties::methods).containsOnlyNulls();
    }
}
