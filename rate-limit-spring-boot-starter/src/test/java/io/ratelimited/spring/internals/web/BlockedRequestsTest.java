package io.ratelimited.spring.internals.web;

import static io.ratelimited.spring.internals.web.RunningServer.policies;
import static io.ratelimited.spring.internals.web.RunningServer.states;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Policy;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.json.JsonParserFactory;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RestController;

/** What a blocked caller is told, on every server. */
@ParameterizedClass
@EnumSource(
        value = Kind.class,
        names = {"TOMCAT", "REACTOR_NETTY"})
@Tag("once")
class BlockedRequestsTest {

    private static RunningServer server;

    @Parameter
    Kind kind;

    @BeforeParameterizedClassInvocation
    static void start(Kind kind) {
        server = kind.start(
                List.of(App.class),
                "spring.web.resources.static-locations=classpath:/pages/",
                "rate-limit.limits.routed.rate=2/m",
                "rate-limit.limits.routed.block=10m",
                "rate-limit.routes[0].path=/routed/**",
                "rate-limit.routes[0].key=clientIp",
                "rate-limit.routes[0].limits=routed");
    }

    @AfterParameterizedClassInvocation
    static void stop() {
        server.close();
    }

    /** Sends requests until the first is refused. */
    private static HttpResponse<String> firstRefusal(String path) {
        server.ticker().advance(Duration.ofDays(2));
        HttpResponse<String> response = server.get(path);
        for (int i = 0; i < 2; i++) {
            assertThat(response.statusCode()).isEqualTo(200);
            response = server.get(path);
        }
        return response;
    }

    @ParameterizedTest
    @ValueSource(strings = {"/door/ann", "/routed/x"})
    void aBlockedCallerGetsAProblemOfItsOwnTypeAndTheTimeLeft(String path) {
        String limit = path.startsWith("/door") ? "door" : "routed";
        requireBlocked(firstRefusal(path), path, limit, 600);

        server.ticker().advance(Duration.ofMinutes(9));
        requireBlocked(server.get(path), path, limit, 60);
        assertThat(server.get("/door/bob").statusCode()).isEqualTo(200);

        server.ticker().advance(Duration.ofMinutes(1));
        HttpResponse<String> later = server.get(path);
        assertThat(later.statusCode()).isEqualTo(200);
        assertThat(states(later)).isEqualTo(Map.of(limit, Map.of("r", 1L, "t", 30L)));
    }

    private static void requireBlocked(HttpResponse<String> response, String path, String limit, int seconds) {
        assertThat(response.statusCode()).isEqualTo(429);
        assertThat(response.headers().firstValue("Content-Type")).contains("application/problem+json");
        assertThat(response.headers().allValues("Retry-After")).containsExactly("" + seconds);
        assertThat(policies(response)).isEqualTo(Map.of(limit, Map.of("q", 2L, "w", 60L)));
        assertThat(states(response)).isEqualTo(Map.of(limit, Map.of("r", 0L, "t", (long) seconds)));
        assertThat(JsonParserFactory.getJsonParser().parseMap(response.body()))
                .isEqualTo(Map.of(
                        "type",
                        "https://iana.org/assignments/http-problem-types#abnormal-usage-detected",
                        "title",
                        "Request not satisfied due to detection of abnormal request pattern",
                        "status",
                        429,
                        "detail",
                        "Rate limit '" + limit + "' has blocked this caller; retry after " + seconds + " s.",
                        "instance",
                        path,
                        "violated-policies",
                        List.of(limit)));
    }

    @Test
    void aBrowserGetsTheErrorPage() {
        firstRefusal("/door/eve");

        HttpResponse<String> page = server.get("/door/eve", "Accept", "text/html,*/*;q=0.8");

        assertThat(page.statusCode()).isEqualTo(429);
        assertThat(page.headers().firstValue("Content-Type").orElse("")).startsWith("text/html");
        assertThat(page.headers().allValues("Retry-After")).containsExactly("600");
    }

    @Test
    void whatIsBlockedUnderShadowGoesAndNobodyHearsOfIt() {
        for (int i = 0; i < 10; i++) {
            HttpResponse<String> response = server.get("/shadow/ann");
            assertThat(response.statusCode()).isEqualTo(200);
            assertThat(response.headers().firstValue("RateLimit")).isEmpty();
        }
    }

    /** The limit of the longest time decides, as without blocks. */
    @Test
    void ofTwoLimitsTheBlockIsTheRefusalAndTheOtherIsNotCharged() {
        server.ticker().advance(Duration.ofDays(2));
        for (int i = 0; i < 2; i++) {
            assertThat(server.get("/both/ann").statusCode()).isEqualTo(200);
        }
        for (int i = 0; i < 5; i++) {
            HttpResponse<String> refused = server.get("/both/ann");
            assertThat(refused.body()).contains("abnormal-usage-detected", "\"violated-policies\":[\"short\"]");
            assertThat(refused.headers().allValues("Retry-After")).containsExactly("600");
        }
        assertThat(states(server.get("/both/bob")).get("long")).containsEntry("r", 2L);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        Doors doors() {
            return new Doors();
        }
    }

    @RestController
    static class Doors {

        @GetMapping("/door/{who}")
        @RateLimited(name = "door", rate = "2/m", key = "#who", block = "10m")
        String door(@PathVariable String who) {
            return who;
        }

        @GetMapping("/shadow/{who}")
        @RateLimited(name = "shadow", rate = "2/m", key = "#who", block = "10m", policy = Policy.SHADOW)
        String shadow(@PathVariable String who) {
            return who;
        }

        @GetMapping("/both/{who}")
        @RateLimited(name = "long", rate = "5/h", key = "'all'")
        @RateLimited(name = "short", rate = "2/m", key = "#who", block = "10m")
        String both(@PathVariable String who) {
            return who;
        }

        @GetMapping("/routed/x")
        String routed() {
            return "x";
        }
    }
}
