package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.spring.RateLimited;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Mono;

/** A request that several limits refuse: on methods and routes of both stacks, in any order of declaration. */
@Tag("slow")
class SeveralRejectionsTest {

    private static final String[] ROUTES = {
        "rate-limit.limits.route-pace.rate=1/s",
        "rate-limit.limits.route-quota.algorithm=fixed-window",
        "rate-limit.limits.route-quota.rate=2/h",
        "rate-limit.limits.route-shadow.algorithm=fixed-window",
        "rate-limit.limits.route-shadow.rate=1/d",
        "rate-limit.limits.route-shadow.policy=shadow",
        "rate-limit.routes[0].path=/route",
        "rate-limit.routes[0].limits=route-pace,route-quota,route-shadow",
        "rate-limit.limits.swapped-pace.rate=1/s",
        "rate-limit.limits.swapped-quota.algorithm=fixed-window",
        "rate-limit.limits.swapped-quota.rate=2/h",
        "rate-limit.routes[1].path=/swapped",
        "rate-limit.routes[1].limits=swapped-quota,swapped-pace"
    };

    @ParameterizedTest
    @EnumSource
    void whoObeysRetryAfterIsAdmitted(RunningServer.Kind kind) {
        try (RunningServer server = kind.start(List.of(App.class), ROUTES)) {
            for (String path : List.of("/first", "/second", "/reactive", "/route", "/swapped")) {
                server.ticker().advance(Duration.ofHours(1));
                assertThat(server.get(path).statusCode()).as(path).isEqualTo(200);
                server.ticker().advance(Duration.ofSeconds(1));
                assertThat(server.get(path).statusCode()).as(path).isEqualTo(200);

                HttpResponse<String> refusal = server.get(path);

                assertThat(refusal.statusCode()).as(path).isEqualTo(429);
                long seconds = Long.parseLong(
                        refusal.headers().firstValue("Retry-After").orElseThrow());
                assertThat(seconds).as(path).isGreaterThan(1);
                assertThat(refusal.body()).as(path).contains("quota' is exceeded", "violated-policies");
                assertThat(refusal.body().substring(refusal.body().indexOf("violated-policies")))
                        .as(path)
                        .contains("pace\"", "quota\"")
                        .doesNotContain("shadow");
                assertThat(String.join(", ", refusal.headers().allValues("RateLimit")))
                        .as(path)
                        .contains("pace\";r=0;t=1")
                        .contains("quota\";r=0;t=" + seconds);
                server.ticker().advance(Duration.ofSeconds(seconds));
                assertThat(server.get(path).statusCode()).as(path).isEqualTo(200);
            }
        }
    }

    @Configuration
    @EnableAutoConfiguration
    @Import({SharedBeans.class, Controller.class})
    static class App {}

    @RestController
    static class Controller {

        @GetMapping("/first")
        @RateLimited(name = "first-pace", rate = "1/s")
        @RateLimited(name = "first-quota", algorithm = Algorithm.FIXED_WINDOW, rate = "2/h")
        String first() {
            return "first";
        }

        @GetMapping("/second")
        @RateLimited(name = "second-quota", algorithm = Algorithm.FIXED_WINDOW, rate = "2/h")
        @RateLimited(name = "second-pace", rate = "1/s", policy = Policy.WAIT, maxWait = "10ms")
        String second() {
            return "second";
        }

        @GetMapping("/reactive")
        @RateLimited(name = "reactive-pace", rate = "1/s")
        @RateLimited(name = "reactive-quota", algorithm = Algorithm.FIXED_WINDOW, rate = "2/h")
        @RateLimited(name = "reactive-shadow", algorithm = Algorithm.FIXED_WINDOW, rate = "1/d", policy = Policy.SHADOW)
        Mono<String> reactive() {
            return Mono.just("reactive");
        }

        @GetMapping({"/route", "/swapped"})
        String routed() {
            return "routed";
        }
    }
}
