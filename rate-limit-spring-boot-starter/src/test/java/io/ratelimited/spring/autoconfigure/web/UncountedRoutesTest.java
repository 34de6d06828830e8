package io.ratelimited.spring.autoconfigure.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.servlet.ServletRateLimitAutoConfiguration;
import io.ratelimited.spring.internals.web.RunningServer;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.LazyInitializationBeanFactoryPostProcessor;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Configuration;

@ExtendWith(OutputCaptureExtension.class)
class UncountedRoutesTest {

    private static final String[] ROUTE = {
        "rate-limit.limits.api.rate=5/m", "rate-limit.routes[0].path=/api/**", "rate-limit.routes[0].limits=api"
    };
    private static final String WARNING = "rate-limit.routes limit nothing";

    /** Whose filters were excluded. */
    private final WebApplicationContextRunner withoutFilters = new WebApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(RateLimitAutoConfiguration.class));

    @Test
    void aWebApplicationWithNeitherStackIsWarned(CapturedOutput output) {
        withoutFilters
                .withPropertyValues(ROUTE)
                .run(context -> assertThat(output).containsOnlyOnce(WARNING));
    }

    @Test
    void aLazyOneToo(CapturedOutput output) {
        withoutFilters
                .withPropertyValues(ROUTE)
                .withBean(LazyInitializationBeanFactoryPostProcessor.class)
                .run(context -> assertThat(output).containsOnlyOnce(WARNING));
    }

    /** Such as a batch job with the configuration of the web application: it starts. */
    @Test
    void anApplicationThatServesNoRequestsIsWarned(CapturedOutput output) {
        Contexts.runner().withPropertyValues(ROUTE).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output).containsOnlyOnce(WARNING).contains("[RL-214]");
        });
    }

    @Test
    void aWebApplicationThatIsStartedAsNoneIsWarned(CapturedOutput output) {
        SpringApplication application = new SpringApplication(Started.class);
        List<String> arguments = new ArrayList<>(List.of(
                "--spring.main.web-application-type=none", "--spring.autoconfigure.exclude=" + RunningServer.WITHOUT));
        Stream.of(ROUTE).map("--"::concat).forEach(arguments::add);
        application.run(arguments.toArray(String[]::new)).close();
        assertThat(output).containsOnlyOnce(WARNING);
    }

    @Test
    void othersAreNot(CapturedOutput output) {
        withoutFilters.run(context -> assertThat(context).hasNotFailed());
        withoutFilters
                .withPropertyValues(ROUTE)
                .withConfiguration(AutoConfigurations.of(ServletRateLimitAutoConfiguration.class))
                .run(context -> assertThat(context).hasNotFailed());
        Contexts.runner().run(context -> assertThat(context).hasNotFailed());
        Contexts.runner()
                .withPropertyValues(ROUTE)
                .withPropertyValues("rate-limit.enabled=false")
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(output).doesNotContain(WARNING);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Started {}
}
