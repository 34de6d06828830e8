package io.ratelimited.spring.internals.web;

import static io.ratelimited.spring.internals.web.RunningServer.policies;
import static io.ratelimited.spring.internals.web.RunningServer.states;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Threads;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.TestInstance.Lifecycle;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.json.JsonParserFactory;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.stereotype.Service;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;
import reactor.core.publisher.Mono;

/** What clients see, on every server alike. */
@TestInstance(Lifecycle.PER_CLASS)
@ExtendWith(OutputCaptureExtension.class)
abstract class HttpFacts {

    private static final Duration DAY = Duration.ofDays(1);

    private final RunningServer.Kind kind;
    private final Class<?> app;
    RunningServer server;

    HttpFacts(RunningServer.Kind kind, Class<?> app) {
        this.kind = kind;
        this.app = app;
    }

    @BeforeAll
    void start() {
        server = kind.start(
                List.of(app, Stock.class, Shop.class, SuspendStock.class, SuspendShop.class),
                "rate-limit.limits.plan.tiers.gold.rate=50/m",
                "rate-limit.limits.plan.tiers.internal.rate=unlimited",
                "rate-limit.limits.routed.rate=2/m",
                "rate-limit.limits.routed.key=header('Key')",
                "rate-limit.limits.filtered.rate=1/m",
                "rate-limit.limits.slow.rate=1/s",
                "rate-limit.limits.slow.policy=wait",
                "rate-limit.limits.slow.max-wait=5s",
                "rate-limit.limits.users.rate=1/m",
                "rate-limit.limits.places.algorithm=concurrency",
                "rate-limit.limits.places.max-concurrent=1",
                "rate-limit.limits.guesses.rate=2/m",
                "rate-limit.limits.guesses.key=clientIp",
                "rate-limit.routes[0].path=/routed/get",
                "rate-limit.routes[0].methods=get",
                "rate-limit.routes[0].limits=routed",
                "rate-limit.routes[1].path=/routed/slow",
                "rate-limit.routes[1].limits=slow",
                "rate-limit.routes[2].path=/routed/user",
                "rate-limit.routes[2].limits=users",
                "rate-limit.routes[2].key=principal",
                "rate-limit.routes[3].path=/routed/place/**",
                "rate-limit.routes[3].limits=places",
                "rate-limit.routes[4].path=/guesses/**",
                "rate-limit.routes[4].exclude=/guesses/open/**",
                "rate-limit.routes[4].limits=guesses");
    }

    @AfterAll
    void stop() {
        server.close();
    }

    /** A day later every budget is whole again. */
    @AfterEach
    void nextDay() {
        server.ticker().advance(DAY);
        server.ticker().advance(DAY);
    }

    @Test
    void anAdmittedResponseTellsThePolicyAndWhatIsLeft() {
        HttpResponse<String> response = server.get("/search");

        assertThat(response.statusCode()).isEqualTo(200);
        assertThat(response.headers().firstValue("RateLimit-Policy")).contains("\"search\";q=200;w=2");
        assertThat(response.headers().firstValue("RateLimit")).contains("\"search\";r=199;t=1");
        assertThat(response.headers().firstValue("Retry-After")).isEmpty();
    }

    @Test
    void aRefusalIsAProblemThatSaysWhenToRetry(CapturedOutput output) {
        server.get("/one");

        HttpResponse<String> response = server.get("/one");

        assertThat(response.statusCode()).isEqualTo(429);
        assertThat(response.headers().firstValue("Content-Type")).contains("application/problem+json");
        assertThat(response.headers().allValues("Retry-After")).containsExactly("60");
        assertThat(policies(response)).isEqualTo(Map.of("one", Map.of("q", 1L, "w", 60L)));
        assertThat(states(response)).isEqualTo(Map.of("one", Map.of("r", 0L, "t", 60L)));
        assertThat(JsonParserFactory.getJsonParser().parseMap(response.body()))
                .isEqualTo(Map.of(
                        "type",
                        "https://iana.org/assignments/http-problem-types#quota-exceeded",
                        "title",
                        "Request cannot be satisfied as assigned quota has been exceeded",
                        "status",
                        429,
                        "detail",
                        "Rate limit 'one' is exceeded; retry after 60 s.",
                        "instance",
                        "/one",
                        "violated-policies",
                        List.of("one")));
        assertThat(output).doesNotContain("ERROR").doesNotContain("RateLimitExceededException");
    }

    @Test
    void aRetryAtTheTimeToldIsAdmitted() {
        server.get("/one");
        server.ticker().advance(Duration.ofMillis(500));
        HttpResponse<String> refusal = server.get("/one");
        assertThat(refusal.headers().allValues("Retry-After")).containsExactly("60");

        server.ticker().advance(Duration.ofSeconds(60));

        assertThat(server.get("/one").statusCode()).isEqualTo(200);
    }

    @Test
    void severalLimitsAreMembersOfOneField() {
        HttpResponse<String> admitted = server.get("/two");
        HttpResponse<String> refused = server.get("/two");

        Map<String, Map<String, Object>> both =
                Map.of("second", Map.of("q", 1L, "w", 1L), "day", Map.of("q", 100L, "w", 86_400L));
        assertThat(policies(admitted)).isEqualTo(both);
        assertThat(states(admitted))
                .isEqualTo(Map.of("second", Map.of("r", 0L, "t", 1L), "day", Map.of("r", 99L, "t", 86_400L)));
        assertThat(refused.statusCode()).isEqualTo(429);
        assertThat(policies(refused)).isEqualTo(both);
        assertThat(states(refused)).isEqualTo(Map.of("second", Map.of("r", 0L, "t", 1L)));
        assertThat(refused.headers().allValues("Retry-After")).containsExactly("1");
    }

    @Test
    void anyNameCanBeTold() {
        assertThat(policies(server.get("/named"))).containsOnlyKeys("gr%C3%B6%C3%9Fe \"x\"");
    }

    @Test
    void nobodyKnowsWhenACallInFlightEnds() {
        HttpResponse<String> response = server.get("/flight");

        assertThat(response.statusCode()).isEqualTo(429);
        assertThat(response.headers().firstValue("Retry-After")).isEmpty();
        assertThat(policies(response)).isEqualTo(Map.of("flight", Map.of("q", 0L, "qu", "concurrent-requests")));
        assertThat(states(response)).isEqualTo(Map.of("flight", Map.of("r", 0L)));
    }

    @Test
    void aTierIsToldOfWithItsOwnNumbers() {
        assertThat(policies(server.get("/plan"))).isEqualTo(Map.of("plan", Map.of("q", 5L, "w", 60L)));
        assertThat(policies(server.get("/plan", "Plan", "gold"))).isEqualTo(Map.of("plan", Map.of("q", 50L, "w", 60L)));
    }

    @ParameterizedTest
    @CsvSource({"/plan, internal", "/shadow, x", "/session/start, x"})
    void whatLimitsNobodyIsNotToldOf(String path, String plan) {
        server.get(path, "Plan", plan);
        HttpResponse<String> response = server.get(path, "Plan", plan);

        assertThat(response.statusCode()).isEqualTo(200);
        assertThat(response.headers().map()).doesNotContainKeys("ratelimit", "ratelimit-policy", "retry-after");
    }

    @ParameterizedTest
    @CsvSource({"/wait, wait", "/routed/slow, slow"})
    void aWaitingCallIsAdmittedAndTold(String path, String limit) {
        server.get(path);
        CompletableFuture<HttpResponse<String>> waiting = server.getAsync(path);
        while (server.ticker().sleeping() == 0) {
            Thread.onSpinWait();
        }
        assertThat(waiting).isNotDone();
        server.ticker().advance(Duration.ofSeconds(1));

        HttpResponse<String> response = waiting.join();
        assertThat(response.statusCode()).isEqualTo(200);
        assertThat(states(response)).containsOnlyKeys(limit);
    }

    @Test
    void aFallbackIsNoRefusal() {
        server.get("/fallback");
        HttpResponse<String> response = server.get("/fallback");

        assertThat(response.statusCode()).isEqualTo(200);
        assertThat(response.body()).isEqualTo("instead");
        assertThat(response.headers().firstValue("Retry-After")).isEmpty();
        assertThat(states(response).get("fallback")).containsEntry("r", 0L);
    }

    @ParameterizedTest
    @ValueSource(strings = {"blocking", "future", "reactive", "suspend"})
    void aRejectionThatAFallbackAnswersIsNotThatOfTheRequest(String call) {
        String path = "/shop/missing/" + call;
        assertThat(server.get(path).statusCode()).isEqualTo(404);
        HttpResponse<String> response = server.get(path);

        assertThat(response.statusCode()).isEqualTo(404);
        assertThat(states(response).get("stock")).containsEntry("r", 0L);
        assertThat(response.headers().allValues("Retry-After")).isEmpty();
        assertThat(response.headers().allValues("Cache-Control")).doesNotContain("no-store");
    }

    @ParameterizedTest
    @ValueSource(strings = {"blocking", "future", "reactive"})
    void aFallbackThatFailsBecauseOfTheRejectionIsARejection(String call) {
        String path = "/shop/closed/" + call;
        assertThat(server.get(path).statusCode()).isEqualTo(200);
        HttpResponse<String> response = server.get(path);

        assertThat(response.statusCode()).isEqualTo(503);
        assertThat(response.body()).isEqualTo("closed");
        assertThat(response.headers().allValues("Retry-After")).containsExactly("60");
        assertThat(response.headers().allValues("Cache-Control")).containsExactly("no-store");
    }

    @Test
    void aRejectionBesideOneThatAFallbackAnswersIsThatOfTheRequest() {
        server.get("/shop/both");
        HttpResponse<String> response = server.get("/shop/both");

        assertThat(response.statusCode()).isEqualTo(503);
        assertThat(response.headers().allValues("Retry-After")).containsExactly("60");
    }

    /** Calls limited methods that have fallbacks. */
    @RestController
    static class Shop {

        private final Stock stock;

        Shop(Stock stock) {
            this.stock = stock;
        }

        @GetMapping("/shop/missing/blocking")
        String blocking() {
            return missing(stock.blocking());
        }

        @GetMapping("/shop/missing/future")
        CompletableFuture<String> future() {
            return stock.future().thenApply(Shop::missing);
        }

        @GetMapping("/shop/missing/reactive")
        Mono<String> reactive() {
            return stock.reactive().map(Shop::missing);
        }

        private static String missing(String found) {
            throw new ResponseStatusException(HttpStatus.NOT_FOUND, found);
        }

        @GetMapping("/shop/closed/blocking")
        String closed() {
            return stock.closedBlocking();
        }

        @GetMapping("/shop/closed/future")
        CompletableFuture<String> closedFuture() {
            return stock.closedFuture();
        }

        @GetMapping("/shop/closed/reactive")
        Mono<String> closedReactive() {
            return stock.closedReactive();
        }

        @GetMapping("/shop/both")
        String both() {
            return stock.blocking() + stock.withoutFallback();
        }

        @ExceptionHandler({Closed.class, RateLimitExceededException.class})
        ResponseEntity<String> closed(Exception failure) {
            return ResponseEntity.status(503).body("closed");
        }
    }

    static class Closed extends RuntimeException {

        private static final long serialVersionUID = 1L;

        Closed(RateLimitExceededException cause) {
            super(cause);
        }
    }

    @Service
    static class Stock {

        @RateLimited(name = "stock", rate = "1/d", fallback = "unknown")
        String blocking() {
            return "item";
        }

        String unknown() {
            return "unknown";
        }

        @RateLimited(name = "stock", rate = "1/d", fallback = "unknownFuture")
        CompletableFuture<String> future() {
            return CompletableFuture.completedFuture("item");
        }

        CompletableFuture<String> unknownFuture() {
            return CompletableFuture.completedFuture("unknown");
        }

        @RateLimited(name = "stock", rate = "1/d", fallback = "unknownReactive")
        Mono<String> reactive() {
            return Mono.just("item");
        }

        Mono<String> unknownReactive() {
            return Mono.just("unknown");
        }

        @RateLimited(name = "closed", rate = "1/m", fallback = "failed")
        String closedBlocking() {
            return "open";
        }

        String failed(RateLimitExceededException refusal) {
            throw new Closed(refusal);
        }

        @RateLimited(name = "closed", rate = "1/m", fallback = "failedFuture")
        CompletableFuture<String> closedFuture() {
            return CompletableFuture.completedFuture("open");
        }

        CompletableFuture<String> failedFuture(RateLimitExceededException refusal) {
            return CompletableFuture.failedFuture(new Closed(refusal));
        }

        @RateLimited(name = "closed", rate = "1/m", fallback = "failedReactive")
        Mono<String> closedReactive() {
            return Mono.just("open");
        }

        Mono<String> failedReactive(RateLimitExceededException refusal) {
            return Mono.error(new Closed(refusal));
        }

        @RateLimited(name = "closed", rate = "1/m")
        String withoutFallback() {
            return "open";
        }
    }

    @ParameterizedTest
    @CsvSource({
        "/service, orders",
        "/wrapped, orders",
        "/callable, orders",
        "/functional, orders",
        "/future, later",
        "/deferred, later"
    })
    void aRefusalBelowAControllerIsAnsweredAlike(String path, String limit, CapturedOutput output) {
        assertThat(server.get(path).statusCode()).isEqualTo(200);

        HttpResponse<String> response = server.get(path);

        assertThat(response.statusCode()).isEqualTo(429);
        assertThat(response.headers().firstValue("Content-Type")).contains("application/problem+json");
        assertThat(response.headers().allValues("Retry-After")).containsExactly("60");
        assertThat(states(response)).isEqualTo(Map.of(limit, Map.of("r", 0L, "t", 60L)));
        assertThat(response.body()).contains("\"violated-policies\":[\"" + limit + "\"]");
        assertThat(output).doesNotContain("ERROR");
    }

    @ParameterizedTest
    @ValueSource(strings = {"stream", "events"})
    void aStreamTellsBeforeItBegins(String name) {
        HttpResponse<String> response = server.get("/" + name);

        assertThat(response.statusCode()).isEqualTo(200);
        assertThat(response.body()).isNotEmpty();
        assertThat(states(response)).isEqualTo(Map.of(name, Map.of("r", 0L, "t", 60L)));
        assertThat(server.get("/" + name).statusCode()).isEqualTo(429);
    }

    @Test
    void anExceptionHandlerOfTheApplicationWins() {
        server.get("/own");
        HttpResponse<String> response = server.get("/own");

        assertThat(response.statusCode()).isEqualTo(503);
        assertThat(response.body()).isEqualTo("own answer to own");
        assertThat(states(response)).containsOnlyKeys("own");
        assertThat(response.headers().allValues("Retry-After")).containsExactly("86400");
    }

    @Test
    void anExceptionHandlerOfTheApplicationMaySayWhenToRetry() {
        server.get("/own/later");
        assertThat(server.get("/own/later").headers().allValues("Retry-After")).containsExactly("7");
    }

    @ParameterizedTest
    @CsvSource({"/filter/early, filtered", "/filter/late, filtered", "/filter/wrapped, filtered", "/filter/bean, orders"
    })
    void aRefusalInAFilterIsAnsweredAlike(String path, String limit, CapturedOutput output) {
        assertThat(server.get(path).statusCode()).isEqualTo(200);

        HttpResponse<String> response = server.get(path);

        assertThat(response.statusCode()).isEqualTo(429);
        assertThat(response.headers().firstValue("Content-Type")).contains("application/problem+json");
        assertThat(response.headers().allValues("Retry-After")).containsExactly("60");
        assertThat(states(response)).isEqualTo(Map.of(limit, Map.of("r", 0L, "t", 60L)));
        assertThat(response.body()).contains("\"violated-policies\":[\"" + limit + "\"]");
        assertThat(output).doesNotContain("ERROR");
    }

    @ParameterizedTest
    @CsvSource({
        "/one, one",
        "/service, orders",
        "/callable, orders",
        "/future, later",
        "/routed/user, users",
        "/filter/early, filtered",
        "/filter/late, filtered"
    })
    void aBrowserGetsTheErrorPageOfTheApplication(String path, String limit, CapturedOutput output) {
        String browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8";
        assertThat(server.get(path, "Accept", browser).statusCode()).isEqualTo(200);

        HttpResponse<String> response = server.get(path, "Accept", browser);

        assertThat(response.statusCode()).isEqualTo(429);
        assertThat(response.headers().firstValue("Content-Type").orElseThrow()).startsWith("text/html");
        assertThat(response.body()).contains("Whitelabel Error Page", "429");
        assertThat(response.headers().allValues("Retry-After")).containsExactly("60");
        assertThat(states(response)).isEqualTo(Map.of(limit, Map.of("r", 0L, "t", 60L)));
        assertThat(output).doesNotContain("ERROR");
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "text/html | text/html",
                "text/* | text/html",
                "image/png, text/html | text/html",
                "application/json;q=0.5, text/html | text/html",
                "text/html, application/json | text/html",
                "application/json, text/html | application/problem+json",
                "text/html;q=0.9, application/json | application/problem+json",
                "text/html;q=0.9, application/problem+json | application/problem+json",
                "application/*, text/html;q=0.9 | application/problem+json",
                "*/* | application/problem+json",
                "text/plain | application/problem+json",
                "image/avif, */*;q=0.8 | application/problem+json"
            })
    void whoAcceptsNoPageFirstGetsAProblem(String accept, String type) {
        server.get("/one");

        HttpResponse<String> response = server.get("/one", "Accept", accept);

        assertThat(response.statusCode()).isEqualTo(429);
        assertThat(response.headers().firstValue("Content-Type").orElseThrow()).startsWith(type);
        assertThat(response.headers().allValues("Retry-After")).containsExactly("60");
    }

    @Test
    void usersHaveBudgetsOfTheirOwn() {
        assertThat(server.get("/user", "User", "ann").statusCode()).isEqualTo(200);
        assertThat(server.get("/user", "User", "ann").statusCode()).isEqualTo(429);
        assertThat(server.get("/user", "User", "bob").statusCode()).isEqualTo(200);
    }

    @Test
    void aForwardingHeaderAloneNamesNobody() {
        assertThat(server.get("/ip", "X-Forwarded-For", "192.0.2.1").statusCode())
                .isEqualTo(200);
        assertThat(server.get("/ip", "X-Forwarded-For", "192.0.2.2").statusCode())
                .isEqualTo(429);
        assertThat(server.get("/ip", "Forwarded", "for=192.0.2.3").statusCode()).isEqualTo(429);
    }

    @Test
    void aSessionIsAKeyOnlyIfItExists() {
        HttpResponse<String> first = server.get("/session");
        assertThat(first.statusCode()).isEqualTo(200);
        assertThat(first.headers().firstValue("Set-Cookie")).isEmpty();
        assertThat(server.get("/session", "Cookie", "SESSION=made-up; JSESSIONID=made-up")
                        .statusCode())
                .isEqualTo(429);
        String cookie = server.get("/session/start")
                .headers()
                .firstValue("Set-Cookie")
                .orElseThrow()
                .replaceAll(";.*", "");

        assertThat(server.get("/session", "Cookie", cookie).statusCode()).isEqualTo(200);
        assertThat(server.get("/session", "Cookie", cookie).statusCode()).isEqualTo(429);
    }

    @Test
    void aRouteIsLimitedWithoutAnnotations(CapturedOutput output) {
        assertThat(states(server.get("/routed/get"))).isEqualTo(Map.of("routed", Map.of("r", 1L, "t", 30L)));
        assertThat(server.send("HEAD", "/routed/get").statusCode()).isEqualTo(200);

        HttpResponse<String> response = server.get("/routed/get");

        assertThat(response.statusCode()).isEqualTo(429);
        assertThat(response.headers().firstValue("Content-Type")).contains("application/problem+json");
        assertThat(response.headers().allValues("Retry-After")).containsExactly("30");
        assertThat(states(response)).isEqualTo(Map.of("routed", Map.of("r", 0L, "t", 30L)));
        assertThat(server.get("/routed/get", "Key", "other").statusCode()).isEqualTo(200);
        assertThat(output).doesNotContain("ERROR");
    }

    @ParameterizedTest
    @ValueSource(strings = {"/routed/get;a=b", "/routed/%67et"})
    void noSpellingOfAPathEscapesItsRoute(String path) {
        assertThat(states(server.get(path))).containsOnlyKeys("routed");
    }

    @Test
    void otherPathsAndMethodsAreNotLimitedByARoute() {
        assertThat(server.get("/routed/other").headers().map()).doesNotContainKey("ratelimit");
        assertThat(server.send("POST", "/routed/get").headers().map()).doesNotContainKey("ratelimit");
    }

    @Test
    void aPreflightThatNoCorsConfigurationAllowsIsCounted() {
        String[] preflight = {"Origin", "https://example.org", "Access-Control-Request-Method", "GET"};
        for (int i = 0; i < 3; i++) {
            server.send("OPTIONS", "/routed/user", preflight);
        }

        assertThat(server.get("/routed/user").statusCode()).isEqualTo(429);
    }

    /** Its response would tell the right ones from others for nothing. */
    @Test
    void aPreflightWithCredentialsIsCountedThoughACorsConfigurationAllowsIt() {
        String[] preflight = {"Origin", "https://friend.example", "Access-Control-Request-Method", "GET"};
        String[] withCredentials = Stream.concat(Stream.of(preflight), Stream.of("Authorization", "guess"))
                .toArray(String[]::new);
        for (int i = 0; i < 3; i++) {
            assertThat(server.send("OPTIONS", "/guesses/counted", preflight).statusCode())
                    .isEqualTo(200);
        }
        for (int i = 0; i < 2; i++) {
            assertThat(server.send("OPTIONS", "/guesses/counted", withCredentials)
                            .statusCode())
                    .isEqualTo(200);
        }

        assertThat(server.get("/guesses/counted").statusCode()).isEqualTo(429);
    }

    @ParameterizedTest
    @ValueSource(ints = {302, 303, 307, 401, 403})
    void aResponseThatMayRejectCredentialsIsChargedWhereARouteLeavesRequestsOut(int status) {
        for (int i = 0; i < 2; i++) {
            assertThat(server.get("/guesses/open/" + status).statusCode()).isEqualTo(status);
        }

        assertThat(server.get("/guesses/open/" + status).statusCode()).isEqualTo(429);
    }

    @Test
    void aRouteIsLimitedByPrincipal() {
        assertThat(server.get("/routed/user", "User", "ann").statusCode()).isEqualTo(200);
        assertThat(server.get("/routed/user", "User", "ann").statusCode()).isEqualTo(429);
        assertThat(server.get("/routed/user", "User", "bob").statusCode()).isEqualTo(200);
    }

    @Test
    void aPlaceOnARouteIsFreeWhenItsRequestHasEnded() {
        RateLimits limits = server.context.getBean(RateLimits.class);
        for (int i = 0; i < 5; i++) {
            assertThat(server.get("/routed/place/" + i).statusCode()).isIn(200, 404);
            // A client may have read the whole answer before the server has closed the exchange.
            Threads.until(() -> limits.peek("places", null).remaining() == 1);
        }
    }

    /** Of a servlet that starts again to process it asynchronously. WebFlux has none. */
    @Test
    void aPlaceOnARouteIsFreeWhenARequestHasEndedThatWasStartedTwice() {
        assertThat(server.get("/routed/place/twice").statusCode()).isIn(200, 404);
        RateLimits limits = server.context.getBean(RateLimits.class);
        Threads.until(() -> limits.peek("places", null).remaining() == 1);
        assertThat(server.get("/routed/place/other").statusCode()).isIn(200, 404);
    }
}
