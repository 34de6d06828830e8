package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.reactive.ReactiveRateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.servlet.ServletRateLimitAutoConfiguration;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.test.context.runner.AbstractApplicationContextRunner;
import org.springframework.boot.test.context.runner.ReactiveWebApplicationContextRunner;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.webflux.autoconfigure.WebFluxAutoConfiguration;
import org.springframework.boot.webmvc.autoconfigure.WebMvcAutoConfiguration;
import org.springframework.core.annotation.Order;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.RestControllerAdvice;

/** Startup warns of advice for every exception, which answers rejections too. */
@ExtendWith(OutputCaptureExtension.class)
class CatchAllCheckTest {

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void isWarnedOfWhereNothingIsMadeForRejections(boolean servlet, CapturedOutput output) {
        start(servlet, Limited.class, CatchAll.class, Other.class);
        assertThat(output)
                .contains(
                        "Rejected calls get the response of CatchAllCheckTest.CatchAll.failed instead of a 429 response",
                        "[RL-233]");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void isFineBesideAMethodForRejections(boolean servlet, CapturedOutput output) {
        start(servlet, Limited.class, Both.class);
        start(servlet, Limited.class, First.class, CatchAll.class);
        start(servlet, Limited.class, Other.class);
        start(servlet, CatchAll.class);
        assertThat(output).doesNotContain("Rejected calls");
    }

    private static void start(boolean servlet, Class<?>... components) {
        if (servlet) {
            run(
                    new WebApplicationContextRunner()
                            .withConfiguration(AutoConfigurations.of(
                                    WebMvcAutoConfiguration.class, ServletRateLimitAutoConfiguration.class)),
                    components);
        } else {
            run(
                    new ReactiveWebApplicationContextRunner()
                            .withConfiguration(AutoConfigurations.of(
                                    WebFluxAutoConfiguration.class, ReactiveRateLimitAutoConfiguration.class)),
                    components);
        }
    }

    private static void run(AbstractApplicationContextRunner<?, ?, ?> runner, Class<?>... components) {
        runner.withConfiguration(AutoConfigurations.of(AopAutoConfiguration.class, RateLimitAutoConfiguration.class))
                .withUserConfiguration(components)
                .run(context -> assertThat(context.getStartupFailure()).isNull());
    }

    static class Limited {

        @RateLimited(name = "limited", rate = "1/m")
        public void call() {}
    }

    @RestControllerAdvice
    static class Other {

        @ExceptionHandler
        String failed(IllegalArgumentException failure) {
            return "argument";
        }
    }

    @RestControllerAdvice
    static class CatchAll {

        @ExceptionHandler
        String failed(Exception failure) {
            return "failed";
        }
    }

    @RestControllerAdvice
    @Order(1)
    static class First {

        @ExceptionHandler
        String rejected(RateLimitExceededException rejection) {
            return "rejected";
        }
    }

    @RestControllerAdvice
    static class Both {

        @ExceptionHandler
        void rejected(RateLimitExceededException rejection) {
            throw rejection;
        }

        @ExceptionHandler
        String failed(Exception failure) {
            return "failed";
        }
    }
}
