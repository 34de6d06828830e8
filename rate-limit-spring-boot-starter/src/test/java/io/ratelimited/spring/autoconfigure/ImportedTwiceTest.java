package io.ratelimited.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.config.RateLimitConfiguration;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.limit.SettingsSource;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;

/** The auto-configuration and the configuration class that it shares with applications without Spring Boot. */
class ImportedTwiceTest {

    private final ApplicationContextRunner runner = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(RateLimitAutoConfiguration.class, AopAutoConfiguration.class))
            .withPropertyValues("rate-limit.limits.search.rate=1/h", "rate-limit.http.status=503");

    @Test
    void anApplicationThatImportsTheClassOfTheStarterHasOneOfEach() {
        runner.withUserConfiguration(Imports.class).run(context -> {
            assertThat(context)
                    .hasNotFailed()
                    .hasSingleBean(LimitRegistry.class)
                    .hasSingleBean(ConfigurationRefresh.class);
            assertThat(context.getBean(SettingsSource.class)).isInstanceOf(BoundSettings.class);
            assertThat(context.getBean(Ticker.class)).isSameAs(Imports.TICKER);
            assertThat(context.getBean(RateLimits.class).tryAcquire("search", null))
                    .isTrue();
            assertThat(context.getBean(RateLimits.class).tryAcquire("search", null))
                    .isFalse();
        });
    }

    @Test
    void theStarterAloneDeclaresNothingThatStandsBack() {
        runner.run(context -> assertThat(context)
                .hasSingleBean(SettingsSource.class)
                .hasSingleBean(LimitRegistry.class)
                .hasSingleBean(Ticker.class));
        runner.withBean(Ticker.class, () -> Imports.TICKER)
                .run(context -> assertThat(context).hasSingleBean(Ticker.class));
    }

    @Configuration
    @Import(RateLimitConfiguration.class)
    static class Imports {

        private static final Ticker TICKER = new ManualTicker();

        @Bean
        Ticker ownTicker() {
            return TICKER;
        }
    }
}
