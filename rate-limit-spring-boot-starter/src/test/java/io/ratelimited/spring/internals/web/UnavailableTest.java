package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import io.micrometer.core.instrument.MeterRegistry;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.net.http.HttpResponse;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Mono;

/** What callers are told of a limit that nobody can decide, since Redis is away and {@code on-failure} is {@code deny}. */
@ParameterizedClass
@EnumSource(Kind.class)
@Tag("slow")
class UnavailableTest {

    private static final String[] PROPERTIES = {
        // Nobody listens there.
        "spring.data.redis.port=1",
        "rate-limit.redis.timeout=5s",
        "rate-limit.redis.on-failure=deny",
        "rate-limit.limits.plain.backend=redis",
        "rate-limit.limits.reactive.backend=redis",
        "rate-limit.limits.away.backend=redis",
        "rate-limit.limits.place.backend=redis",
        "rate-limit.limits.routed.backend=redis",
        "rate-limit.limits.routed.rate=5/h",
        "rate-limit.routes[0].path=/routed",
        "rate-limit.routes[0].limits=routed"
    };

    private static RunningServer server;

    @BeforeParameterizedClassInvocation
    static void start(Kind kind) {
        server = kind.start(List.of(App.class), PROPERTIES);
    }

    @AfterParameterizedClassInvocation
    static void stop() {
        server.close();
    }

    @Parameter
    Kind kind;

    @Test
    void aLimitThatNobodyCanDecideIsAnUnavailableServiceAndNoQuota() {
        for (String limit : List.of("plain", "reactive", "place", "routed")) {
            HttpResponse<String> refusal = server.get("/" + limit);

            assertThat(refusal.statusCode()).as(limit).isEqualTo(503);
            assertThat(refusal.headers().firstValue("Content-Type")).hasValue("application/problem+json");
            assertThat(refusal.headers().firstValue("Cache-Control")).hasValue("no-store");
            assertThat(refusal.headers().firstValue("Retry-After")).as(limit).isEmpty();
            assertThat(refusal.headers().firstValue("RateLimit")).as(limit).isEmpty();
            assertThat(refusal.headers().firstValue("RateLimit-Policy").orElse(""))
                    .contains("\"" + limit + "\"");
            assertThat(refusal.body())
                    .as(limit)
                    .contains("\"title\":\"Service Unavailable\"", "Rate limit '" + limit + "' is unavailable")
                    .doesNotContain("quota", "exceeded", "reduced", "violated");
        }
        HttpResponse<String> page = server.get("/plain", "Accept", "text/html");
        assertThat(page.statusCode()).isEqualTo(503);
        assertThat(page.headers().firstValue("Retry-After")).isEmpty();

        RateLimits limits = server.context.getBean(RateLimits.class);
        assertThatExceptionOfType(RateLimitExceededException.class)
                .isThrownBy(() -> limits.execute("plain", null, () -> "goes"))
                .withMessageContaining("is unavailable")
                .withMessageNotContaining("exceeded")
                .satisfies(refusal -> {
                    assertThat(refusal.decision().source()).isEqualTo(Source.UNAVAILABLE);
                    assertThat(refusal.decision().retryAfter()).isNull();
                    assertThat(refusal.decision().never()).isFalse();
                });
        assertThat(server.context
                        .getBean(MeterRegistry.class)
                        .get("rate.limit.decisions")
                        .tags("limit", "plain", "outcome", "rejected", "source", "unavailable")
                        .counter()
                        .count())
                .isPositive();
    }

    @Test
    void whatWasMeasuredBesideItIsAnsweredAsMeasured() {
        HttpResponse<String> unavailable = server.get("/several");
        assertThat(unavailable.statusCode()).isEqualTo(503);
        assertThat(unavailable.headers().firstValue("Retry-After")).isEmpty();
        assertThat(unavailable.body()).doesNotContain("violated", "here");

        for (String path : List.of("/spent", "/flight")) {
            HttpResponse<String> refusal = server.get(path);
            assertThat(refusal.statusCode()).as(path).isEqualTo(429);
            assertThat(refusal.body())
                    .as(path)
                    .contains("quota-exceeded", "\"violated-policies\":[\"here" + path.replace('/', '-') + "\"]");
            assertThat(refusal.headers().firstValue("RateLimit").orElse("")).doesNotContain("away");
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({SharedBeans.class, Controller.class})
    static class App {}

    @RestController
    static class Controller {

        @GetMapping("/plain")
        @RateLimited(name = "plain", rate = "5/h")
        String plain() {
            return "plain";
        }

        @GetMapping("/reactive")
        @RateLimited(name = "reactive", rate = "5/h")
        Mono<String> reactive() {
            return Mono.just("reactive");
        }

        @GetMapping("/place")
        @RateLimited(name = "place", algorithm = io.ratelimited.core.Algorithm.CONCURRENCY, maxConcurrent = 5)
        String place() {
            return "place";
        }

        @GetMapping("/routed")
        String routed() {
            return "routed";
        }

        @GetMapping("/several")
        @RateLimited(name = "here", rate = "5/h")
        @RateLimited(name = "away", rate = "5/h")
        String several() {
            return "several";
        }

        @GetMapping("/spent")
        @RateLimited(name = "away", rate = "5/h")
        @RateLimited(name = "here-spent", rate = "0/s")
        String spent() {
            return "spent";
        }

        @GetMapping("/flight")
        @RateLimited(name = "away", rate = "5/h")
        @RateLimited(name = "here-flight", algorithm = io.ratelimited.core.Algorithm.CONCURRENCY, maxConcurrent = 0)
        String flight() {
            return "flight";
        }
    }
}
