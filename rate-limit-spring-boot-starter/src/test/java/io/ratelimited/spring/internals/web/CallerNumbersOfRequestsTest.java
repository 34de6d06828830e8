package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.MeterRegistry;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.net.http.HttpResponse;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** What callers with their own numbers see, and that no client chooses its own. */
@Tag("once")
@ExtendWith(OutputCaptureExtension.class)
class CallerNumbersOfRequestsTest {

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void headersEndpointAndMetersHaveTheNumbersOfTheCallerAndNoClientChoosesThem(Kind kind, CapturedOutput output) {
        try (RunningServer server = kind.start(
                List.of(App.class),
                "management.endpoints.web.exposure.include=ratelimits",
                "rate-limit.actuator.mask-keys=false")) {
            HttpResponse<String> response = server.get("/api", "X-Tenant", "acme");
            assertThat(response.headers().allValues("RateLimit-Policy")).containsExactly("\"api\";q=9;w=60");
            assertThat(response.headers().allValues("RateLimit").toString()).contains("\"api\";r=8");
            assertThat(server.get("/api", "X-Tenant", "other").headers().allValues("RateLimit-Policy"))
                    .containsExactly("\"api\";q=2;w=60");
            assertThat(server.get("/actuator/ratelimits/api/acme").body())
                    .contains("\"numbers\":{\"rate\":\"9/m\",\"burst\":9}", "\"remaining\":8");
            assertThat(server.get("/actuator/ratelimits/api/other").body())
                    .doesNotContain("numbers")
                    .contains("\"remaining\":1");

            MeterRegistry meters = server.context.getBean(MeterRegistry.class);
            assertThat(meters.get("rate.limit.decisions")
                            .tags("limit", "api", "outcome", "admitted")
                            .counter()
                            .count())
                    .isEqualTo(2);
            assertThat(meters.get("rate.limit.keys").tag("limit", "api").gauge().value())
                    .isEqualTo(2);

            for (String chosen : List.of("unlimited", "900/m", "900/m burst 900")) {
                assertThat(server.get("/chosen", "X-Plan", chosen).headers().allValues("RateLimit-Policy"))
                        .containsExactly("\"chosen\";q=5;w=60");
            }
            assertThat(output).containsOnlyOnce("[RL-281]");
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Api.class)
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean("plans")
        Plans plans() {
            return new Plans();
        }
    }

    static class Plans {

        public String limitOf(String tenant) {
            return tenant.equals("acme") ? "9/m" : null;
        }
    }

    @RestController
    static class Api {

        @GetMapping("/api")
        @RateLimited(
                name = "api",
                rate = "2/m",
                key = "header('X-Tenant')",
                tier = "@plans.limitOf(header('X-Tenant'))")
        public String call() {
            return "";
        }

        @GetMapping("/chosen")
        @RateLimited(name = "chosen", rate = "5/m", tier = "header('X-Plan')")
        public String chosen() {
            return "";
        }
    }
}
