package io.ratelimited.spring.autoconfigure.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.servlet.ServletRateLimitAutoConfiguration;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** Limits of routes at the start: keys that callers control, bounds of the methods behind them, and what is incomplete. */
@ExtendWith(OutputCaptureExtension.class)
class RoutesAtTheStartTest {

    private static final String INVENTED = "clients control the key";

    private final ApplicationContextRunner runner = Contexts.runner(new ManualTicker());

    static class Prices {

        @RateLimited(name = "prices", rate = "5/m")
        public void all() {}
    }

    @Test
    void aRouteWhoseTierOrConditionCallersChooseIsReported(CapturedOutput output) {
        runner.withPropertyValues(
                        "rate-limit.limits.api.rate=50/s",
                        "rate-limit.limits.api.tier=header('X-Plan')",
                        "rate-limit.limits.api.when=header('X-Internal') == null",
                        "rate-limit.routes[0].path=/api/**",
                        "rate-limit.routes[0].limits=api")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(output)
                            .containsOnlyOnce("rate-limit.routes[0]: clients control the tier of rate limit 'api'")
                            .containsOnlyOnce("rate-limit.routes[0]: clients control the when of rate limit 'api'");
                });
    }

    @Test
    void aRouteOfEveryRequestBoundsTheMethodsBehindIt(CapturedOutput output) {
        runner.withBean(Prices.class)
                .withPropertyValues(
                        "rate-limit.limits.prices.key=header('X-Api-Key')",
                        "rate-limit.limits.api.rate=5/m",
                        "rate-limit.limits.api.key=session",
                        "rate-limit.limits.address.rate=50/s",
                        "rate-limit.routes[0].path=/**",
                        "rate-limit.routes[0].limits=address",
                        "rate-limit.routes[0].key=clientIp",
                        "rate-limit.routes[1].path=/api/**",
                        "rate-limit.routes[1].limits=api")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(output).doesNotContain(INVENTED);
                });
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "algorithm=concurrency; max-concurrent=100; key=clientIp",
                "algorithm=adaptive",
                "rate=unlimited; key=clientIp",
                "rate=50/s; key=clientIp; policy=shadow"
            })
    void aRouteThatBoundsNobodyDoesNotBoundTheMethodsBehindIt(String limit, CapturedOutput output) {
        runner.withBean(Prices.class)
                .withPropertyValues(
                        "rate-limit.limits.prices.key=header('X-Api-Key')",
                        "rate-limit.routes[0].path=/**",
                        "rate-limit.routes[0].limits=address")
                .withPropertyValues(Stream.of(limit.split("; "))
                        .map("rate-limit.limits.address."::concat)
                        .toArray(String[]::new))
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(output).containsOnlyOnce(INVENTED + " of rate limit 'prices'");
                });
    }

    @Test
    void aRouteWhoseKeyCallersInventIsReported(CapturedOutput output) {
        runner.withPropertyValues(
                        "rate-limit.limits.api.rate=50/s",
                        "rate-limit.limits.address.rate=50/s",
                        "rate-limit.limits.address.key=clientIp",
                        "rate-limit.routes[0].path=/api/**",
                        "rate-limit.routes[0].limits=api",
                        "rate-limit.routes[0].key=header('X-Api-Key')",
                        "rate-limit.routes[1].path=/other/**",
                        "rate-limit.routes[1].limits=address",
                        "rate-limit.routes[2].path=/bounded/**",
                        "rate-limit.routes[2].limits=api",
                        "rate-limit.routes[2].key=session",
                        "rate-limit.routes[3].path=/bounded/**",
                        "rate-limit.routes[3].limits=address")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(output)
                            .containsOnlyOnce("rate-limit.routes[0]: " + INVENTED + " of rate limit 'api'")
                            .doesNotContain("rate-limit.routes[2]: ");
                });
    }

    @Test
    void anIncompleteLimitThatARouteUsesStopsTheStart() {
        new WebApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        RateLimitAutoConfiguration.class, ServletRateLimitAutoConfiguration.class))
                .withPropertyValues(
                        "rate-limit.limits.api.missing-key=deny",
                        "rate-limit.routes[0].path=/api/**",
                        "rate-limit.routes[0].limits=api")
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .hasMessageContaining("rate is missing: no property sets it"));
    }
}
