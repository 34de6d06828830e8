package io.ratelimited.spring.internals.web;

import static io.ratelimited.spring.internals.web.RunningServer.states;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import jakarta.servlet.RequestDispatcher;
import jakarta.servlet.http.HttpServletRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.webmvc.autoconfigure.error.ErrorViewResolver;
import org.springframework.boot.webmvc.error.ErrorController;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.http.ResponseEntity;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.web.server.ServerHttpSecurity;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.server.SecurityWebFilterChain;
import org.springframework.web.bind.annotation.CrossOrigin;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.cors.CorsConfiguration;
import org.springframework.web.cors.CorsConfigurationSource;
import org.springframework.web.reactive.config.WebFluxConfigurer;
import org.springframework.web.servlet.ModelAndView;
import org.springframework.web.servlet.View;
import org.springframework.web.servlet.config.annotation.CorsRegistry;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;
import reactor.core.publisher.Mono;

/** What hostile and foreign callers get, on every server alike: an answer that says what it is, and no error of ours. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class RejectionAttacksTest {

    @RegisterExtension
    static final SharedServers SERVERS = new SharedServers();

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
        "rate-limit.routes[2].limits=heavy",
        "rate-limit.limits.written-keys.rate=5/m",
        "rate-limit.limits.written-keys.key=header('X-Api-Key')",
        "rate-limit.limits.written-address.rate=3/m",
        "rate-limit.limits.written-address.key=clientIp",
        "rate-limit.routes[3].path=/routed/written",
        "rate-limit.routes[3].limits=written-keys,written-address",
        "rate-limit.limits.prefixed.rate=5/m",
        "rate-limit.limits.prefixed.key=header('X-Tenant').substring(0, 3)",
        "rate-limit.routes[4].path=/routed/prefixed",
        "rate-limit.routes[4].limits=prefixed"
    };

    @ParameterizedTest
    @EnumSource(Kind.class)
    void anAdviceForEverythingThatThrowsRefusalsAgainLeavesThemAsTheyAre(Kind kind, CapturedOutput output) {
        RunningServer server = SERVERS.get(kind, List.of(App.class, CatchAll.class), ROUTES);
        for (String path : List.of("/one", "/mono", "/future", "/routed", "/early")) {
            assertThat(server.get(path).statusCode()).as(path).isEqualTo(200);
            requireProblem(server.get(path), 429);
        }
        assertThat(server.get("/broken").body()).isEqualTo("failed");
        assertThat(output).doesNotContain("ERROR").doesNotContain("Failure in @ExceptionHandler");
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void aControllerThatHandlesEverythingHandlesRefusalsToo(Kind kind, CapturedOutput output) {
        RunningServer server = withoutAdvice(kind);
        for (String path : List.of("/greedy/plain", "/greedy/caused", "/greedy/mono")) {
            assertThat(server.get(path).statusCode()).as(path).isEqualTo(200);
            HttpResponse<String> refused = server.get(path);
            assertThat(refused.statusCode()).as(path).isEqualTo(500);
            assertThat(refused.body()).isEqualTo("failed");
            assertThat(refused.headers().allValues("Retry-After")).containsExactly("60");
        }
        for (String path : List.of("/greedy/broken", "/greedy/broken/plain")) {
            HttpResponse<String> failed = server.get(path);
            assertThat(failed.statusCode()).as(path).isEqualTo(500);
            assertThat(failed.body()).isEqualTo("failed");
        }
        assertThat(output).doesNotContain("ERROR").doesNotContain("Failure in @ExceptionHandler");
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void aControllerThatHandlesRefusalsSeesThem(Kind kind) {
        RunningServer server = withoutAdvice(kind);
        for (String path : List.of("/polite/plain", "/polite/mono")) {
            assertThat(server.get(path).statusCode()).as(path).isEqualTo(200);
            HttpResponse<String> refused = server.get(path);
            assertThat(refused.statusCode()).as(path).isEqualTo(418);
            assertThat(refused.headers().allValues("Retry-After")).containsExactly("60");
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
        RunningServer server = withoutAdvice(kind);
        for (String path : List.of("/one", "/routed")) {
            assertThat(server.get(path).headers().firstValue("Cache-Control")).isEmpty();
            assertThat(server.get(path).headers().allValues("Cache-Control")).containsExactly("no-store");
            // Jetty has fields of its own for error pages.
            assertThat(server.get(path, "Accept", BROWSER).headers().firstValue("Cache-Control"))
                    .hasValueSatisfying(value -> assertThat(value).contains("no-store"));
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void permitsThatNoCallCanAskForAreAMistakeOfTheCaller(Kind kind, CapturedOutput output) {
        RunningServer server = withoutAdvice(kind);
        for (String tokens : List.of("-5", "-1", "-9223372036854775808")) {
            requireProblem(server.get("/model?tokens=" + tokens), 400);
            requireProblem(server.get("/model/mono?tokens=" + tokens), 400);
            requireProblem(server.get("/heavy", "Weight", tokens), 400);
        }
        for (String text : List.of("abc", "1e3", "", "99999999999999999999")) {
            requireProblem(server.get("/number?tokens=" + text), 400);
            requireProblem(server.get("/text?tokens=" + text), 400);
        }
        requireProblem(server.get("/model?tokens=9223372036854775807"), 429);
        assertThat(server.get("/model?tokens=5").statusCode()).isEqualTo(200);
        assertThat(output).doesNotContain("ERROR").doesNotContain("\tat ");
        assertThat(output.getOut().split("permits of rate limit 'model' ", -1))
                .as("in the log once a minute")
                .hasSize(2);
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void anExpressionThatFailsOfWhatACallerHasWrittenIsAMistakeOfTheCaller(Kind kind, CapturedOutput output) {
        RunningServer server = withoutAdvice(kind);
        for (String path : List.of("/tenant", "/tenant/mono", "/tenant/tier", "/routed/prefixed")) {
            requireProblem(server.get(path), 400);
            requireProblem(server.get(path, "X-Tenant", "ab"), 400);
            assertThat(server.get(path, "X-Tenant", "abc").statusCode())
                    .as(path)
                    .isNotIn(400, 500);
        }
        requireProblem(server.get("/flagged"), 400);
        assertThat(server.get("/flagged?flag=true").statusCode()).isEqualTo(200);
        assertThat(server.get("/tenant").body())
                .contains(
                        "\"detail\":\"The request has a missing or invalid value for the key of rate limit 'tenant'.\"");
        assertThat(output).doesNotContain("ERROR").doesNotContain("\tat ");
        assertThat(output.getOut().split("key of rate limit 'tenant' ", -1))
                .as("in the log once a minute")
                .hasSize(2);
        assertThat(output).contains("key of rate limit 'tenant' \"header('X-Tenant').substring(0, 3)\" failed: ");
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void anExpressionWhoseBeanFailsIsAFailureOfTheServer(Kind kind, CapturedOutput output) {
        RunningServer server = withoutAdvice(kind);
        assertThat(server.get("/owner", "X-Tenant", "abc").statusCode()).isEqualTo(500);
        assertThat(output).contains("NumberFormatException").doesNotContain("once per minute");
    }

    /** A key that fails the call would be a way around the limit of the address beside it. */
    @ParameterizedTest
    @EnumSource(Kind.class)
    void aKeyThatACallerWritesCountsWhateverItIs(Kind kind, CapturedOutput output) {
        RunningServer server = withoutAdvice(kind);
        List<String> keys = List.of("java.lang.Object@1", "[x@1", "Credentials=[PROTECTED]");
        for (String path : List.of("/written", "/routed/written")) {
            for (String key : keys) {
                assertThat(server.get(path, "X-Api-Key", key).statusCode())
                        .as(path + " " + key)
                        .isEqualTo(200);
            }
            requireProblem(server.get(path, "X-Api-Key", keys.get(0)), 429);
        }
        assertThat(output).doesNotContain("ERROR").doesNotContain("\tat ");
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void whatACallerSendsForgesNoLineOfTheLog(Kind kind, CapturedOutput output) {
        RunningServer server = withoutAdvice(kind);
        server.get("/plan?tier=a%0AFORGED%20tier%1B%5B2K%E2%80%A8FORGED");
        server.get("/text?tokens=a%0D%0AFORGED%20permits");
        server.get("/number?tokens=a%0D%0AFORGED%20number");
        assertThat(output).contains("a\\u000aFORGED tier\\u001b[2K\\u2028FORGED");
        assertThat(output.getAll().lines()).noneMatch(line -> line.startsWith("FORGED"));
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void aBrowserBehindDefaultFormLoginSeesThePage(Kind kind, CapturedOutput output) {
        try (RunningServer server = kind.startSecured(
                List.of(App.class), concat(ROUTES, "spring.web.resources.static-locations=classpath:/pages/"))) {
            assertThat(server.get("/early", "Accept", BROWSER).statusCode()).isEqualTo(302);
            HttpResponse<String> refused = server.get("/early", "Accept", BROWSER);
            requirePage(refused);
            assertThat(refused.headers().firstValue("Set-Cookie")).isEmpty();
            assertThat(output).doesNotContain("ERROR");
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void aBrowserThatMaySeeOnePageOnlySeesWhyItIsRefused(Kind kind, CapturedOutput output) {
        boolean reactive = kind == Kind.REACTOR_NETTY;
        Class<?> security = reactive ? OpenReactive.class : Open.class;
        try (RunningServer server = kind.startSecured(List.of(App.class, security), ROUTES)) {
            for (String path : List.of("/one", "/routed")) {
                assertThat(server.get(path, "Accept", BROWSER).statusCode()).isEqualTo(200);
                HttpResponse<String> refused = server.get(path, "Accept", BROWSER);
                assertThat(refused.statusCode()).as(path).isEqualTo(429);
                assertThat(refused.body()).contains("retry after 60 s.");
                assertThat(refused.headers().allValues("Retry-After")).containsExactly("60");
            }
            assertThat(server.get("/friends", "Accept", BROWSER).statusCode()).isEqualTo(302);
            assertThat(output).doesNotContain("ERROR");
        }
    }

    /** The page knows who reads it, as far as the refused request was known to be somebody's. */
    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "JETTY"})
    void thePageKnowsItsReader(Kind kind) {
        try (RunningServer server = kind.startSecured(
                List.of(App.class, Open.class, Page.class),
                concat(
                        ROUTES,
                        "rate-limit.routes[0].order=after-security",
                        "spring.security.user.name=ann",
                        "spring.security.user.password=secret"))) {
            String ann =
                    "Basic " + Base64.getEncoder().encodeToString("ann:secret".getBytes(StandardCharsets.US_ASCII));
            Map<String, String> readers = Map.of("/one", "ann", "/routed", "ann", "/early", "anonymousUser");
            readers.forEach((path, reader) -> {
                server.get(path, "Accept", BROWSER, "Authorization", ann);
                assertThat(server.get(path, "Accept", BROWSER, "Authorization", ann)
                                .body())
                        .isEqualTo(reader + " retries in 60 s");
            });
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "JETTY"})
    void aLimitOfAnErrorControllerReadsTheRequest(Kind kind) {
        try (RunningServer server = kind.start(List.of(App.class, LimitedErrors.class))) {
            for (String words : List.of("X: 1", "X: 2")) {
                String[] header = words.split(": ", -1);
                assertThat(server.get("/missing", header).body()).isEqualTo("error 404");
                assertThat(server.get("/missing", header).statusCode()).isEqualTo(429);
            }
            assertThat(server.get("/broken", "X", "3").body()).isEqualTo("error 500");
            assertThat(server.get("/broken", "X", "3").statusCode()).isEqualTo(429);
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void aScriptOfAnotherOriginReadsARefusal(Kind kind) {
        Class<?> cors = kind == Kind.REACTOR_NETTY ? ReactiveCorsOfTheApplication.class : CorsOfTheApplication.class;
        try (RunningServer server = kind.start(List.of(App.class, cors), ROUTES)) {
            for (String path : List.of("/one", "/routed", "/early", "/friends")) {
                requirePreflight(server, path, 3);
                server.get(path, "Origin", "http://friend.example");
                for (String accept : List.of("*/*", BROWSER)) {
                    HttpResponse<String> refused =
                            server.get(path, "Origin", "http://friend.example", "Accept", accept);
                    assertThat(refused.statusCode()).as(path).isEqualTo(429);
                    requireReadable(refused);
                }
                HttpResponse<String> ofStranger = server.get(path, "Origin", "http://stranger.example");
                assertThat(ofStranger.headers().firstValue("Access-Control-Allow-Origin"))
                        .isEmpty();
                assertThat(server.get(path).headers().map()).doesNotContainKey("access-control-expose-headers");
                requirePreflight(server, path, 3);
            }
            assertThat(server.get("/routed", "Origin", "http://stranger.example")
                            .statusCode())
                    .isEqualTo(429);
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void aScriptReadsARefusalWhereSpringSecurityKnowsItsOrigin(Kind kind) {
        Class<?> security = kind == Kind.REACTOR_NETTY ? OpenReactive.class : Open.class;
        Class<?> cors = kind == Kind.REACTOR_NETTY ? ReactiveSource.class : Source.class;
        try (RunningServer server = kind.startSecured(List.of(App.class, security, cors), ROUTES)) {
            for (String path : List.of("/one", "/routed", "/early")) {
                requirePreflight(server, path, 3);
                server.get(path, "Origin", "http://friend.example");
                HttpResponse<String> refused = server.get(path, "Origin", "http://friend.example");
                requireProblem(refused, 429);
                requireReadable(refused);
            }
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void anOriginThatCannotBeReadLeavesARefusalAsItIs(Kind kind, CapturedOutput output) {
        RunningServer server = withoutAdvice(kind);
        for (String path : List.of("/one", "/routed", "/early")) {
            assertThat(server.get(path).statusCode()).as(path).isEqualTo(200);
            for (String origin : List.of("http://x:y", "http://a b", "http://[")) {
                requireProblem(server.get(path, "Origin", origin), 429);
            }
        }
        assertThat(output).doesNotContain("ERROR");
    }

    /** The application, and controllers that handle exceptions of their own. */
    private static RunningServer withoutAdvice(Kind kind) {
        return SERVERS.get(
                kind,
                List.of(App.class, Greedy.class, Polite.class),
                concat(
                        ROUTES,
                        "rate-limit.limits.greedy-caused.rate=1/m",
                        "rate-limit.limits.plan.tiers.gold.rate=50/m"));
    }

    private static void requirePreflight(RunningServer server, String path, int times) {
        for (int i = 0; i < times; i++) {
            HttpResponse<String> preflight = server.send(
                    "OPTIONS", path, "Origin", "http://friend.example", "Access-Control-Request-Method", "GET");
            assertThat(preflight.statusCode()).as(path).isEqualTo(200);
            assertThat(preflight.headers().firstValue("Access-Control-Allow-Origin"))
                    .contains("http://friend.example");
        }
    }

    private static void requireReadable(HttpResponse<String> refused) {
        assertThat(refused.headers().allValues("Access-Control-Allow-Origin")).containsExactly("http://friend.example");
        assertThat(refused.headers().allValues("Access-Control-Expose-Headers"))
                .containsExactly("RateLimit, RateLimit-Policy, Retry-After");
        assertThat(refused.headers().firstValue("Retry-After")).contains("60");
    }

    private static void requirePage(HttpResponse<String> refused) {
        assertThat(refused.statusCode()).isEqualTo(429);
        assertThat(refused.body()).contains("Slow down, please.");
        assertThat(refused.headers().allValues("Retry-After")).containsExactly("60");
        assertThat(refused.headers().firstValue("Location")).isEmpty();
        assertThat(states(refused)).isNotEmpty();
    }

    private static String[] concat(String[] properties, String... more) {
        return Stream.concat(Stream.of(properties), Stream.of(more)).toArray(String[]::new);
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

        @GetMapping("/written")
        @RateLimited(name = "address", rate = "3/m", key = "clientIp")
        @RateLimited(name = "search", rate = "5/m", key = "header('X-Api-Key')")
        String written() {
            return "written";
        }

        @GetMapping({"/routed", "/early", "/heavy", "/routed/written"})
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

        @GetMapping("/tenant")
        @RateLimited(name = "tenant", rate = "5/m", key = "header('X-Tenant').substring(0, 3)")
        String tenant() {
            return "tenant";
        }

        @GetMapping("/tenant/mono")
        @RateLimited(name = "tenant-mono", rate = "5/m", when = "header('X-Tenant').substring(0, 3) != 'all'")
        Mono<String> tenantMono() {
            return Mono.just("tenant");
        }

        @GetMapping("/tenant/tier")
        @RateLimited(name = "tenant-tier", rate = "5/m", tier = "#tenant.substring(0, 3)")
        String tenantTier(@RequestHeader(name = "X-Tenant", required = false) String tenant) {
            return "tenant";
        }

        @GetMapping("/flagged")
        @RateLimited(name = "flagged", rate = "5/m", when = "#flag")
        String flagged(@RequestParam(required = false) Boolean flag) {
            return "flagged";
        }

        @GetMapping("/owner")
        @RateLimited(name = "owner", rate = "5/m", key = "{header('X-Tenant'), @numbers.of('none')}")
        String owner() {
            return "owner";
        }

        @CrossOrigin("http://friend.example")
        @GetMapping("/friends")
        @RateLimited(name = "friends", rate = "1/m")
        String friends(@RequestHeader(defaultValue = "none") String origin) {
            return origin;
        }
    }

    @RestController
    static class Polite {

        @GetMapping("/polite/plain")
        @RateLimited(name = "polite-plain", rate = "1/m")
        String plain() {
            return "1";
        }

        @GetMapping("/polite/mono")
        @RateLimited(name = "polite-mono", rate = "1/m")
        Mono<String> mono() {
            return Mono.just("1");
        }

        @ExceptionHandler
        ResponseEntity<String> refused(io.ratelimited.core.RateLimitExceededException refusal) {
            return ResponseEntity.status(418).body(refusal.limit());
        }

        @ExceptionHandler
        ResponseEntity<String> failed(Exception failure) {
            return ResponseEntity.internalServerError().body("failed");
        }
    }

    @RestController
    static class Greedy {

        private final RateLimits limits;

        Greedy(RateLimits limits) {
            this.limits = limits;
        }

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

        @GetMapping("/greedy/caused")
        String caused() {
            try {
                return limits.execute("greedy-caused", null, () -> "1");
            } catch (io.ratelimited.core.RateLimitExceededException refusal) {
                throw new IllegalStateException(refusal);
            }
        }

        @GetMapping("/greedy/broken")
        Mono<String> broken() {
            return Mono.error(new IllegalStateException("as the test wants"));
        }

        @GetMapping("/greedy/broken/plain")
        String brokenPlain() {
            throw new IllegalStateException("as the test wants");
        }

        @ExceptionHandler(Exception.class)
        ResponseEntity<String> failed(Exception failure) {
            return ResponseEntity.internalServerError().body("failed");
        }
    }

    @RestControllerAdvice
    static class CatchAll {

        @ExceptionHandler
        void refused(io.ratelimited.core.RateLimitExceededException refusal) {
            throw refusal;
        }

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

    /** As an application with form login has it, which knows nothing of limits. */
    @Configuration(proxyBeanMethods = false)
    static class Open {

        @Bean
        SecurityFilterChain open(HttpSecurity http) throws Exception {
            return http.authorizeHttpRequests(requests -> requests.requestMatchers("/one", "/routed", "/early")
                            .permitAll()
                            .anyRequest()
                            .authenticated())
                    .cors(Customizer.withDefaults())
                    .formLogin(Customizer.withDefaults())
                    .httpBasic(Customizer.withDefaults())
                    .build();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OpenReactive {

        @Bean
        SecurityWebFilterChain open(ServerHttpSecurity http) {
            return http.authorizeExchange(exchanges -> exchanges
                            .pathMatchers("/one", "/routed", "/early")
                            .permitAll()
                            .anyExchange()
                            .authenticated())
                    .authenticationManager(authentication -> Mono.empty())
                    .cors(Customizer.withDefaults())
                    .formLogin(Customizer.withDefaults())
                    .build();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Page {

        @Bean
        ErrorViewResolver page() {
            return (request, status, model) -> new ModelAndView(
                    (View) (values, of, response) -> response.getWriter()
                            .write(SecurityContextHolder.getContext()
                                            .getAuthentication()
                                            .getName() + " retries in " + values.get("retryAfter") + " s"),
                    model);
        }
    }

    @RestController
    static class LimitedErrors implements ErrorController {

        @RequestMapping("/error")
        @RateLimited(name = "errors", rate = "1/m", key = "{header('X'), clientIp, session, principal}")
        String error(HttpServletRequest request) {
            return "error " + request.getAttribute(RequestDispatcher.ERROR_STATUS_CODE);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class CorsOfTheApplication implements WebMvcConfigurer {

        @Override
        public void addCorsMappings(CorsRegistry registry) {
            registry.addMapping("/**").allowedOrigins("http://friend.example");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ReactiveCorsOfTheApplication implements WebFluxConfigurer {

        @Override
        public void addCorsMappings(org.springframework.web.reactive.config.CorsRegistry registry) {
            registry.addMapping("/**").allowedOrigins("http://friend.example");
        }
    }

    private static CorsConfiguration friends() {
        CorsConfiguration friends = new CorsConfiguration().applyPermitDefaultValues();
        friends.setAllowedOrigins(List.of("http://friend.example"));
        return friends;
    }

    @Configuration(proxyBeanMethods = false)
    static class Source {

        @Bean
        CorsConfigurationSource corsConfigurationSource() {
            return request -> friends();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ReactiveSource {

        @Bean
        org.springframework.web.cors.reactive.CorsConfigurationSource corsConfigurationSource() {
            return exchange -> friends();
        }
    }
}
