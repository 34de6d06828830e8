package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.ReservedPermits;
import java.net.http.HttpResponse;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** The weight of requests to methods and routes of both stacks: 0 goes, fractions are rounded up, less than 0 is an error. */
@Tag("slow")
class WeightTest {

    @ParameterizedTest
    @EnumSource
    void aWeightOfZeroGoes(RunningServer.Kind kind) {
        try (RunningServer server = kind.start(
                List.of(App.class),
                "rate-limit.limits.routed.rate=1/h",
                "rate-limit.limits.routed.permits=@weights.of(header('N'))",
                "rate-limit.limits.by-hand.rate=3/h",
                "rate-limit.routes[0].path=/routed",
                "rate-limit.routes[0].limits=routed")) {
            for (String path : List.of("/method", "/routed")) {
                String name = path.substring(1);
                for (int call = 0; call < 3; call++) {
                    assertAnswer(send(server, path, "0"), 200, '"' + name + "\";r=1");
                }
                assertAnswer(send(server, path, "1"), 200, '"' + name + "\";r=0");
                assertAnswer(send(server, path, "0"), 200, '"' + name + "\";r=0");
                assertAnswer(send(server, path, "1"), 429, '"' + name + "\";r=0");
                assertThat(send(server, path, "-1").statusCode()).as(path).isEqualTo(400);
            }
            RateLimits limits = server.context.getBean(RateLimits.class);
            assertThat(limits.tryAcquire("by-hand", "k", 0)).isTrue();
            try (ReservedPermits call = limits.reserve("by-hand", "k", 0)) {
                call.settle(3);
            }
            assertThat(limits.peek("by-hand", "k").remaining()).isZero();
            limits.reserve("by-hand", "k", 0).close();
            assertThat(limits.tryAcquire("by-hand", "k", 1)).isFalse();
            limits.reserve("by-hand", "k", 0).settle(30);
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> limits.reserve("by-hand", "k", 0));
        }
    }

    private static HttpResponse<String> send(RunningServer server, String path, String n) {
        return server.get(path + "?n=" + n, "N", n);
    }

    private static void assertAnswer(HttpResponse<String> answer, int status, String field) {
        assertThat(answer.statusCode()).as(field).isEqualTo(status);
        assertThat(answer.headers().firstValue("RateLimit").orElse("")).startsWith(field);
    }

    @Configuration
    @EnableAutoConfiguration
    @Import({SharedBeans.class, Controller.class})
    static class App {

        @Bean
        Weights weights() {
            return new Weights();
        }
    }

    public static class Weights {

        public double of(@Nullable String text) {
            return text == null ? 1 : Double.parseDouble(text);
        }
    }

    @RestController
    static class Controller {

        @GetMapping("/method")
        @RateLimited(name = "method", rate = "1/h", permits = "#n / 2.0")
        String method(@RequestParam double n) {
            return "method";
        }

        @GetMapping("/routed")
        String routed() {
            return "routed";
        }
    }
}
