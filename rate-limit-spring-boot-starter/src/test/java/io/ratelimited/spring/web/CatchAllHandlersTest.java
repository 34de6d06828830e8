package io.ratelimited.spring.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimitAutoConfiguration;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.web.RunningServer.Kind;
import io.ratelimited.spring.web.reactive.ReactiveRateLimitAutoConfiguration;
import io.ratelimited.spring.web.servlet.ServletRateLimitAutoConfiguration;
import java.net.http.HttpResponse;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.context.runner.ReactiveWebApplicationContextRunner;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ControllerAdvice;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.bind.annotation.RestControllerAdvice;

/** An exception handler for everything makes failures of refusals: it is warned of, and the remedy helps. */
@ExtendWith(OutputCaptureExtension.class)
class CatchAllHandlersTest {

    private static final String PROBLEM = "also handles refusals of rate limits";
    private static final String ADVICE = CatchAll.class.getName() + ".failed(Exception) " + PROBLEM;

    private final WebApplicationContextRunner runner = new WebApplicationContextRunner()
            .withConfiguration(
                    AutoConfigurations.of(RateLimitAutoConfiguration.class, ServletRateLimitAutoConfiguration.class));

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void theRemedyLeavesRefusalsToTheStarter(Kind kind, CapturedOutput output) {
        try (RunningServer server = kind.start(List.of(App.class, Api.class, WithRemedy.class))) {
            assertThat(server.get("/one").statusCode()).isEqualTo(200);
            HttpResponse<String> refused = server.get("/one");

            assertThat(refused.statusCode()).isEqualTo(429);
            assertThat(refused.headers().firstValue("Content-Type")).contains("application/problem+json");
            assertThat(refused.headers().allValues("Retry-After")).containsExactly("60");
            assertThat(server.get("/broken").statusCode()).isEqualTo(500);
            assertThat(output).doesNotContain(PROBLEM).doesNotContain("Failure in @ExceptionHandler");
        }
    }

    @Test
    void anAdviceForEverythingIsWarnedOfOnceOnTheServletStack(CapturedOutput output) {
        runner.withBean(Api.class)
                .withBean(Another.class)
                .withBean(CatchAll.class)
                .run(
                        context -> assertThat(output)
                                .containsOnlyOnce(ADVICE)
                                .contains(
                                        "@ExceptionHandler void refused(RateLimitExceededException refusal) { throw refusal; }"));
    }

    @Test
    void anAdviceForEverythingIsWarnedOfOnceOnWebFlux(CapturedOutput output) {
        new ReactiveWebApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        RateLimitAutoConfiguration.class, ReactiveRateLimitAutoConfiguration.class))
                .withBean(Api.class)
                .withBean(CatchAll.class)
                .run(context -> assertThat(output).containsOnlyOnce(ADVICE));
    }

    @Test
    void aControllerThatHandlesEverythingItselfIsWarnedOf(CapturedOutput output) {
        runner.withBean(Api.class)
                .withBean(Greedy.class)
                .run(context -> assertThat(output)
                        .containsOnlyOnce(Greedy.class.getName() + ".failed(RuntimeException) " + PROBLEM));
    }

    @Test
    void anAdviceForOtherControllersIsNotWarnedOf(CapturedOutput output) {
        runner.withBean(Api.class)
                .withBean(OfNobody.class)
                .run(context -> assertThat(output).doesNotContain(PROBLEM));
    }

    @Test
    void anAdviceThatComesAfterOneForRefusalsIsNotWarnedOf(CapturedOutput output) {
        runner.withBean(Api.class)
                .withBean(CatchAll.class)
                .withBean(First.class)
                .run(context -> assertThat(output).doesNotContain(PROBLEM));
    }

    @Test
    void anAdviceThatComesBeforeOneForRefusalsIsWarnedOf(CapturedOutput output) {
        runner.withBean(Api.class)
                .withBean(FirstForEverything.class)
                .withBean(First.class)
                .run(context -> assertThat(output).contains("FirstForEverything.failed(Throwable) " + PROBLEM));
    }

    @Test
    void handlersThatSpringHasNotReadYetDoNotStopTheStart() {
        runner.withBean(Api.class)
                .withBean(Ambiguous.class)
                .run(context -> assertThat(context).hasNotFailed());
    }

    @Test
    void whereNothingIsLimitedNothingIsSaid(CapturedOutput output) {
        runner.withBean(Another.class)
                .withBean(CatchAll.class)
                .run(context -> assertThat(output).doesNotContain(PROBLEM));
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    @RestController
    static class Api {

        @GetMapping("/one")
        @RateLimited(name = "one", rate = "1/m")
        String one() {
            return "1";
        }

        @GetMapping("/broken")
        String broken() {
            throw new IllegalStateException("as the test wants");
        }
    }

    @RestController
    static class Another {

        @GetMapping("/another")
        String another() {
            return "another";
        }
    }

    @RestController
    static class Greedy {

        @ExceptionHandler
        ResponseEntity<String> failed(RuntimeException failure) {
            return ResponseEntity.internalServerError().body(failure.getMessage());
        }
    }

    @RestController
    static class Ambiguous {

        @ExceptionHandler
        String one(IllegalStateException failure) {
            return "one";
        }

        @ExceptionHandler
        String two(IllegalStateException failure) {
            return "two";
        }
    }

    @ControllerAdvice
    static class CatchAll {

        @ExceptionHandler(Exception.class)
        ResponseEntity<String> failed(Exception failure) {
            return ResponseEntity.internalServerError().body(failure.getMessage());
        }
    }

    @RestControllerAdvice
    static class WithRemedy extends CatchAll {

        @ExceptionHandler
        void refused(RateLimitExceededException refusal) {
            throw refusal;
        }
    }

    @ControllerAdvice(assignableTypes = Runnable.class)
    static class OfNobody extends CatchAll {}

    @ControllerAdvice
    @Order(1)
    static class First {

        @ExceptionHandler
        ResponseEntity<String> refused(RateLimitExceededException refusal) {
            return ResponseEntity.status(429).body(refusal.limit());
        }
    }

    @ControllerAdvice
    @Order(0)
    static class FirstForEverything {

        @ExceptionHandler(Exception.class)
        ResponseEntity<String> failed(Throwable failure) {
            return ResponseEntity.internalServerError().body(failure.getMessage());
        }
    }
}
