package io.ratelimited.spring.web;

import static io.ratelimited.spring.web.RunningServer.states;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.web.RunningServer.Kind;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.CrossOrigin;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import reactor.core.publisher.Mono;

/** What hostile and foreign callers get, on every server alike: an answer that says what it is, and no error of ours. */
@ExtendWith(OutputCaptureExtension.class)
class RefusalAttacksTest {

    static final String BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

    private static final String[] ROUTES = {
        "rate-limit.limits.routed.rate=1/m",
        "rate-limit.routes[0].path=/routed",
        "rate-limit.routes[0].limits=routed",
        "rate-limit.limits.early.rate=1/m",
        "rate-limit.routes[1].path=/early",
        "rate-limit.routes[1].limits=early",
        "rate-limit.routes[1].order=before-security",
        "rate-limit.limits.heavy.rate=5/m",
        "rate-limit.limits.heavy.permits=@numbers.of(header('Weight'))",
        "rate-limit.routes[2].path=/heavy",
        "rate-limit.routes[2].limits=heavy"
    };

    @ParameterizedTest
    @EnumSource(Kind.class)
    void anAdviceForEverythingSeesNoRefusal(Kind kind, CapturedOutput output) {
        try (RunningServer server = kind.start(List.of(App.class, CatchAll.class), ROUTES)) {
            for (String path : List.of("/one", "/mono", "/future", "/routed", "/early")) {
                assertThat(server.get(path).statusCode()).as(path).isEqualTo(200);
                requireProblem(server.get(path), 429);
            }
            assertThat(server.get("/broken").body()).isEqualTo("failed");
            assertThat(output).doesNotContain("ERROR").doesNotContain("Failure in @ExceptionHandler");
        }
    }

    /** A method of the controller itself sees on WebFlux what a method throws that returns a plain value. */
    @ParameterizedTest
    @CsvSource({"TOMCAT, /greedy/plain", "TOMCAT, /greedy/mono", "JETTY, /greedy/plain", "REACTOR_NETTY, /greedy/mono"})
    void aControllerThatHandlesEverythingSeesNoRefusal(Kind kind, String path) {
        try (RunningServer server = kind.start(List.of(App.class, Greedy.class))) {
            assertThat(server.get(path).statusCode()).isEqualTo(200);
            requireProblem(server.get(path), 429);
            assertThat(server.get("/greedy/broken").statusCode()).isEqualTo(500);
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void anAdviceForRefusalsIsAskedThoughAnotherHandlesEverything(Kind kind) {
        try (RunningServer server = kind.start(List.of(App.class, ForRefusals.class, CatchAll.class), ROUTES)) {
            for (String path : List.of("/one", "/mono", "/routed")) {
                server.get(path);
                HttpResponse<String> refused = server.get(path);
                assertThat(refused.statusCode()).as(path).isEqualTo(418);
                assertThat(refused.headers().allValues("Retry-After")).containsExactly("60");
                assertThat(refused.headers().firstValue("Cache-Control")).contains("no-store");
            }
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void noCacheKeepsARefusal(Kind kind) {
        try (RunningServer server = kind.start(List.of(App.class), ROUTES)) {
            for (String path : List.of("/one", "/routed")) {
                assertThat(server.get(path).headers().firstValue("Cache-Control"))
                        .isEmpty();
                assertThat(server.get(path).headers().allValues("Cache-Control"))
                        .containsExactly("no-store");
                // Jetty has fields of its own for error pages.
                assertThat(server.get(path, "Accept", BROWSER).headers().firstValue("Cache-Control"))
                        .hasValueSatisfying(value -> assertThat(value).contains("no-store"));
            }
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void permitsThatNoCallCanAskForAreAMistakeOfTheCaller(Kind kind, CapturedOutput output) {
        try (RunningServer server = kind.start(List.of(App.class, CatchAll.class), ROUTES)) {
            for (String tokens : List.of("-5", "0", "-9223372036854775808")) {
                requireProblem(server.get("/model?tokens=" + tokens), 400);
                requireProblem(server.get("/model/mono?tokens=" + tokens), 400);
                requireProblem(server.get("/heavy", "Weight", tokens), 400);
            }
            requireProblem(server.get("/model?tokens=9223372036854775807"), 429);
            assertThat(server.get("/model?tokens=5").statusCode()).isEqualTo(200);
            assertThat(output).doesNotContain("ERROR").doesNotContain("\tat ");
            assertThat(output.getOut().split("permits of rate limit 'model' ", -1))
                    .as("in the log once a minute")
                    .hasSize(2);
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void whatACallerSendsForgesNoLineOfTheLog(Kind kind, CapturedOutput output) {
        try (RunningServer server = kind.start(List.of(App.class), "rate-limit.limits.plan.tiers.gold.rate=50/m")) {
            server.get("/plan?tier=a%0AFORGED%20tier%1B%5B2K%E2%80%A8FORGED");
            server.get("/text?tokens=a%0D%0AFORGED%20permits");
            server.get("/number?tokens=a%0D%0AFORGED%20number");
            assertThat(output).contains("a\\u000aFORGED tier\\u001b[2K\\u2028FORGED");
            assertThat(output.getAll().lines()).noneMatch(line -> line.startsWith("FORGED"));
        }
    }

    static void requireProblem(HttpResponse<String> response, int status) {
        assertThat(response.statusCode()).as(response.body()).isEqualTo(status);
        assertThat(response.headers().firstValue("Content-Type")).contains("application/problem+json");
        assertThat(response.headers().firstValue("Cache-Control")).contains("no-store");
        assertThat(response.body()).contains("\"status\":" + status).hasSizeLessThan(400);
        if (status == 429) {
            assertThat(states(response)).isNotEmpty();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        Api api() {
            return new Api();
        }

        @Bean
        Numbers numbers() {
            return new Numbers();
        }
    }

    static class Numbers {

        public Long of(String text) {
            return text == null ? 1L : Long.valueOf(text);
        }
    }

    @RestController
    static class Api {

        @GetMapping("/one")
        @RateLimited(name = "one", rate = "1/m")
        String one() {
            return "1";
        }

        @GetMapping("/mono")
        @RateLimited(name = "mono", rate = "1/m")
        Mono<String> mono() {
            return Mono.just("1");
        }

        @GetMapping("/future")
        @RateLimited(name = "future", rate = "1/m")
        CompletableFuture<String> future() {
            return CompletableFuture.completedFuture("1");
        }

        @GetMapping({"/routed", "/early", "/heavy"})
        String routed() {
            return "routed";
        }

        @GetMapping("/broken")
        String broken() {
            throw new IllegalStateException("as the test wants");
        }

        @GetMapping("/model")
        @RateLimited(name = "model", rate = "100/m", permits = "#tokens")
        String model(@RequestParam long tokens) {
            return "answer";
        }

        @GetMapping("/model/mono")
        @RateLimited(name = "model-mono", rate = "100/m", permits = "#tokens")
        Mono<String> modelMono(@RequestParam long tokens) {
            return Mono.just("answer");
        }

        @GetMapping("/plan")
        @RateLimited(name = "plan", rate = "5/m", tier = "#tier")
        String plan(@RequestParam String tier) {
            return "plan";
        }

        @GetMapping("/text")
        @RateLimited(name = "text", rate = "5/m", permits = "#tokens")
        String text(@RequestParam Object tokens) {
            return "text";
        }

        @GetMapping("/number")
        @RateLimited(name = "number", rate = "5/m", permits = "T(Integer).parseInt(#tokens)")
        String number(@RequestParam String tokens) {
            return "number";
        }

        @CrossOrigin("http://friend.example")
        @GetMapping("/friends")
        @RateLimited(name = "friends", rate = "1/m")
        String friends(@RequestHeader String origin) {
            return origin;
        }
    }

    @RestController
    static class Greedy {

        @GetMapping("/greedy/plain")
        @RateLimited(name = "greedy-plain", rate = "1/m")
        String plain() {
            return "1";
        }

        @GetMapping("/greedy/mono")
        @RateLimited(name = "greedy-mono", rate = "1/m")
        Mono<String> mono() {
            return Mono.just("1");
        }

        @GetMapping("/greedy/broken")
        Mono<String> broken() {
            return Mono.error(new IllegalStateException("as the test wants"));
        }

        @ExceptionHandler(Exception.class)
        ResponseEntity<String> failed(Exception failure) {
            return ResponseEntity.internalServerError().body("failed");
        }
    }

    @RestControllerAdvice
    static class CatchAll {

        @ExceptionHandler(Exception.class)
        ResponseEntity<String> failed(Exception failure) {
            return ResponseEntity.internalServerError().body("failed");
        }
    }

    @RestControllerAdvice
    @Order(1)
    static class ForRefusals {

        @ExceptionHandler
        ResponseEntity<String> refused(io.ratelimited.core.RateLimitExceededException refusal) {
            return ResponseEntity.status(418).body(refusal.limit());
        }
    }
}
