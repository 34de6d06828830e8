package io.ratelimited.spring.internals.web;

import static io.ratelimited.spring.internals.web.RunningServer.states;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.reactive.ReactiveRateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.servlet.ServletRateLimitAutoConfiguration;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import io.ratelimited.spring.internals.web.servlet.RateLimitFilter;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.http.ResponseEntity;
import org.springframework.mock.web.MockHttpServletResponse;
import org.springframework.test.web.servlet.request.MockMvcRequestBuilders;
import org.springframework.test.web.servlet.setup.MockMvcBuilders;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.context.WebApplicationContext;

@Tag("once")
@Tag("slow")
class HttpSettingsTest {

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void theOldFieldsReplaceTheNewOnes(Kind kind) {
        try (RunningServer server = start(kind, "rate-limit.http.headers=legacy", "rate-limit.http.status=503")) {
            server.get("/one");
            HttpResponse<String> response = server.get("/one");

            assertThat(response.statusCode()).isEqualTo(503);
            assertThat(response.body()).contains("\"status\":503");
            assertThat(response.headers().firstValue("X-RateLimit-Limit")).contains("1");
            assertThat(response.headers().firstValue("X-RateLimit-Remaining")).contains("0");
            assertThat(response.headers().firstValue("X-RateLimit-Reset")).contains("60");
            assertThat(response.headers().firstValue("Retry-After")).contains("60");
            assertThat(response.headers().map()).doesNotContainKeys("ratelimit", "ratelimit-policy");
        }
    }

    /** The time is left out if the whole quota is there, and if nobody knows when calls end. */
    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void theOldFieldsAreThoseOfOneDecision(Kind kind) {
        try (RunningServer server = kind.start(
                List.of(app(kind), SeveralDecisions.class),
                "rate-limit.http.headers=legacy",
                "rate-limit.limits.routed.rate=10/m",
                "rate-limit.routes[0].path=/tightest",
                "rate-limit.routes[0].limits=routed")) {
            assertThat(oldFields(server.get("/free"))).containsExactly("5", "5");
            assertThat(oldFields(server.get("/tightest"))).containsExactly("2", "1");
        }
    }

    /** As servers do since Servlet 6.1. */
    @Test
    void theMockOfAResponseLosesAnOldValue() throws Exception {
        try (RunningServer server = Kind.TOMCAT.start(
                List.of(app(Kind.TOMCAT), SeveralDecisions.class), "rate-limit.http.headers=legacy")) {
            MockHttpServletResponse response = MockMvcBuilders.webAppContextSetup(
                            (WebApplicationContext) server.context)
                    .build()
                    .perform(MockMvcRequestBuilders.get("/free"))
                    .andReturn()
                    .getResponse();
            assertThat(response.getHeader("X-RateLimit-Remaining")).isEqualTo("5");
            assertThat(response.getHeader("X-RateLimit-Reset")).isNull();
        }
    }

    private static List<String> oldFields(HttpResponse<String> response) {
        return Stream.of("Limit", "Remaining", "Reset")
                .flatMap(name -> response.headers().allValues("X-RateLimit-" + name).stream())
                .toList();
    }

    /** Requests with two decisions each. */
    @RestController
    static class SeveralDecisions {

        @GetMapping("/free")
        @RateLimited(name = "free", rate = "5/h", charge = "0")
        CompletableFuture<String> free() {
            return CompletableFuture.completedFuture("free");
        }

        @GetMapping("/tightest")
        @RateLimited(name = "tightest", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 2)
        CompletableFuture<String> tightest() {
            return CompletableFuture.completedFuture("done");
        }
    }

    @Test
    void whatAServerBehindAGatewayTellsIsKept() {
        try (RunningServer server = Kind.REACTOR_NETTY.start(
                List.of(app(Kind.REACTOR_NETTY), Gateway.class),
                "rate-limit.limits.routed.rate=1/m",
                "rate-limit.routes[0].path=/gateway",
                "rate-limit.routes[0].limits=routed")) {
            HttpResponse<String> response = server.get("/gateway");

            assertThat(String.join(", ", response.headers().allValues("RateLimit")))
                    .contains("\"behind\";r=7", "\"routed\";r=0");
            assertThat(String.join(", ", response.headers().allValues("RateLimit-Policy")))
                    .contains("\"behind\";q=9", "\"routed\";q=1");
        }
    }

    @RestController
    static class Gateway {

        @GetMapping("/gateway")
        ResponseEntity<String> hands() {
            return ResponseEntity.ok()
                    .header("RateLimit", "\"behind\";r=7")
                    .header("RateLimit-Policy", "\"behind\";q=9")
                    .body("on");
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void fieldsCanBeHidden(Kind kind) {
        try (RunningServer server = start(kind, "rate-limit.http.headers=none")) {
            server.get("/one");
            HttpResponse<String> response = server.get("/one");

            assertThat(response.statusCode()).isEqualTo(429);
            assertThat(response.headers().map().keySet()).noneMatch(name -> name.contains("ratelimit"));
            assertThat(response.headers().firstValue("Retry-After")).contains("60");
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void fieldsOfOneLimitCanBeHidden(Kind kind) {
        for (String style : new String[] {"standard", "legacy"}) {
            try (RunningServer server = start(
                    kind,
                    "rate-limit.http.headers=" + style,
                    "rate-limit.limits.secret.rate=2/m",
                    "rate-limit.limits.secret.http-headers=none",
                    "rate-limit.limits.open.rate=9/m",
                    "rate-limit.routes[0].path=/nothing",
                    "rate-limit.routes[0].limits=secret, open")) {
                HttpResponse<String> admitted = server.get("/nothing");
                server.get("/nothing");
                HttpResponse<String> refused = server.get("/nothing");

                assertThat(refused.statusCode()).isEqualTo(429);
                assertThat(refused.headers().firstValue("Retry-After")).contains("30");
                for (HttpResponse<String> answer : List.of(admitted, refused)) {
                    assertThat(answer.headers().map().toString()).doesNotContain("secret");
                }
                boolean standard = style.equals("standard");
                assertThat(admitted.headers().firstValue(standard ? "RateLimit" : "X-RateLimit-Remaining"))
                        .contains(standard ? "\"open\";r=8;t=7" : "8");
                assertThat(refused.headers().firstValue(standard ? "RateLimit-Policy" : "X-RateLimit-Limit"))
                        .isEqualTo(standard ? Optional.of("\"open\";q=9;w=60") : Optional.empty());

                LimitChange shown = LimitChange.of("http-headers", "shown");
                TestLimits.of(server.context).change("secret", shown);
                assertThat(server.get("/nothing").headers().map().toString())
                        .contains(standard ? "\"secret\";r=0;t=30" : "x-ratelimit-remaining=[0]");
            }
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void anAdviceOfTheApplicationWinsOnRoutesToo(Kind kind) {
        try (RunningServer server = kind.start(
                List.of(app(kind), AdviceOfTheApplication.class),
                "rate-limit.limits.routed.rate=1/m",
                "rate-limit.limits.filtered.rate=1/m",
                "rate-limit.routes[0].path=/routed/**",
                "rate-limit.routes[0].limits=routed")) {
            server.get("/routed/get");
            HttpResponse<String> response = server.get("/routed/get");

            assertThat(response.statusCode()).isEqualTo(418);
            assertThat(response.body()).isEqualTo("advice on routed");
            assertThat(states(response)).containsOnlyKeys("routed");
            assertThat(response.headers().allValues("Retry-After")).containsExactly("60");
            server.get("/functional");
            assertThat(server.get("/one").statusCode()).isEqualTo(200);
            assertThat(server.get("/one").statusCode()).isEqualTo(418);
            for (String path : new String[] {"/filter/early", "/filter/late", "/filter/wrapped"}) {
                assertThat(server.get(path).statusCode()).isEqualTo(200);
                assertThat(server.get(path).statusCode()).isEqualTo(418);
                server.ticker().advance(Duration.ofMinutes(1));
            }
        }
    }

    @Tag("proof")
    @Test
    void jettyDoesWhatTomcatDoes() {
        theOldFieldsReplaceTheNewOnes(Kind.JETTY);
        theOldFieldsAreThoseOfOneDecision(Kind.JETTY);
        fieldsCanBeHidden(Kind.JETTY);
        anAdviceOfTheApplicationWinsOnRoutesToo(Kind.JETTY);
        codeThatAsksALimitTellsItsRequest(Kind.JETTY);
        aRouteThatIsNoPatternStopsTheApplication(Kind.JETTY);
    }

    @Test
    void tomcatDoesNotBelieveWhomItDoesNotTrust() {
        try (RunningServer server = start(
                Kind.TOMCAT,
                "server.forward-headers-strategy=native",
                "server.tomcat.remoteip.internal-proxies=10\\.0\\.0\\.\\d+")) {
            assertThat(server.get("/ip", "X-Forwarded-For", "192.0.2.1").statusCode())
                    .isEqualTo(200);
            assertThat(server.get("/ip", "X-Forwarded-For", "192.0.2.2").statusCode())
                    .isEqualTo(429);
        }
    }

    @Test
    void tomcatBelievesATrustedProxy() {
        try (RunningServer server = start(Kind.TOMCAT, "server.forward-headers-strategy=native")) {
            assertThat(server.get("/ip", "X-Forwarded-For", "192.0.2.1").statusCode())
                    .isEqualTo(200);
            assertThat(server.get("/ip", "X-Forwarded-For", "192.0.2.2").statusCode())
                    .isEqualTo(200);
            assertThat(server.get("/ip", "X-Forwarded-For", "192.0.2.1").statusCode())
                    .isEqualTo(429);
            assertThat(server.get("/ip", "X-Forwarded-For", "192.0.2.9, 192.0.2.2")
                            .statusCode())
                    .as("what the client sent itself stands before what the proxy added")
                    .isEqualTo(429);
            assertThat(server.get("/ip", "X-Forwarded-For", "2001:db8::1").statusCode())
                    .isEqualTo(200);
            assertThat(server.get("/ip", "X-Forwarded-For", "2001:db8::2").statusCode())
                    .as("the same network")
                    .isEqualTo(429);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"JETTY", "REACTOR_NETTY"})
    void otherServersBelieveAnyPeerOnceToldTo(Kind kind) {
        try (RunningServer server = start(kind, "server.forward-headers-strategy=native")) {
            assertThat(server.get("/ip", "X-Forwarded-For", "192.0.2.1").statusCode())
                    .isEqualTo(200);
            assertThat(server.get("/ip", "X-Forwarded-For", "192.0.2.2").statusCode())
                    .isEqualTo(200);
            assertThat(server.get("/ip", "X-Forwarded-For", "192.0.2.1").statusCode())
                    .isEqualTo(429);
        }
    }

    @Test
    void aPlainValueOnWebFluxKnowsItsRequestWhereContextIsPropagated() {
        try (RunningServer server = start(Kind.REACTOR_NETTY, "spring.reactor.context-propagation=auto")) {
            for (String path : List.of("plain", "elastic")) {
                assertThat(server.get("/" + path, "User", "ann").statusCode()).isEqualTo(200);
                HttpResponse<String> refused = server.get("/" + path, "User", "ann");
                assertThat(refused.statusCode()).isEqualTo(429);
                assertThat(states(refused)).containsOnlyKeys(path);
                assertThat(server.get("/" + path, "User", "bob").statusCode()).isEqualTo(200);
            }
        }
    }

    @Test
    void aPlainValueInAStreamThatAnotherRequestFeedsKnowsItsRequestWhereContextIsPropagated() {
        try (RunningServer server = Kind.REACTOR_NETTY.start(
                List.of(PlainReactiveCallsTest.App.class),
                "rate-limit.limits.by-hand.rate=1/m",
                "rate-limit.limits.by-hand-waiting.rate=1/m",
                "spring.reactor.context-propagation=auto")) {
            PlainReactiveCallsTest.annReadsWhatBobSends(server, "plain");
            assertThat(server.get("/function", "User", "ann").statusCode()).isEqualTo(429);
            assertThat(server.get("/function", "User", "bob").statusCode()).isEqualTo(200);
        }
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void codeThatAsksALimitTellsItsRequest(Kind kind) {
        try (RunningServer server =
                start(kind, "rate-limit.limits.code.rate=1/m", "spring.reactor.context-propagation=auto")) {
            for (String path : new String[] {"/code/blocking", "/code/async"}) {
                HttpResponse<String> admitted = server.get(path);
                assertThat(admitted.body()).isEqualTo("done");
                HttpResponse<String> refused = server.get(path);
                assertThat(refused.statusCode()).isEqualTo(429);
                assertThat(refused.headers().firstValue("Retry-After")).contains("60");
                for (HttpResponse<String> response : List.of(admitted, refused)) {
                    assertThat(states(response)).isEqualTo(Map.of("code", Map.of("r", 0L, "t", 60L)));
                }
                server.ticker().advance(Duration.ofMinutes(1));
            }
        }
    }

    @Test
    void nothingOfHttpIsThereWhenLimitsAreOff() {
        try (RunningServer server = start(Kind.TOMCAT, "rate-limit.enabled=false")) {
            server.get("/one");
            assertThat(server.get("/one").statusCode()).isEqualTo(200);
            assertThat(server.context.getBeanNamesForType(RateLimitFilter.class))
                    .isEmpty();
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "jakarta.servlet|org.springframework.web.servlet",
                "org.springframework.web.server|org.springframework.web.reactive",
                "org.springframework.web|org.springframework.http",
                "reactor|io.micrometer.context"
            })
    void limitsWorkWithoutWebClasses(String first, String second) {
        runner().withClassLoader(new FilteredClassLoader(first, second))
                .withPropertyValues("rate-limit.limits.x.rate=1/d")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.tryAcquire("x", null)).isTrue();
                    assertThat(limits.tryAcquire("x", null)).isFalse();
                });
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "limits=other | routes[0].limits[0] | there is no rate limit named 'other' | Set rate-limit.limits.other.rate",
                "limits= | routes[0].limits | is empty | List names",
                "key=#user | routes[0].key | unknown parameter #user | Use clientIp, principal",
                "key=clientIp( | routes[0].key | not a SpEL expression | Use clientIp, principal",
                "key=clientIP | routes[0].key | unknown word clientIP | clientIp, principal",
                "key=method.name | routes[0].key | unknown word method | clientIp, principal",
                "limits=heavy | rate-limit.limits.heavy | permits is 6, but this limit admits at most 5 per call | Reduce permits",
                "limits=none | rate-limit.limits.none | but must be a whole number | Correct the annotation",
                "path= | routes[0].path | path is missing | Set it",
                "methods=get,GTE | routes[0].methods[1] | \"GTE\" is not an HTTP method | GET, HEAD, POST"
            })
    void aRouteThatCannotBeMeantStopsTheApplication(String property, String place, String problem, String remedy) {
        runner().withPropertyValues(
                        "rate-limit.limits.x.rate=1/d",
                        "rate-limit.limits.heavy.rate=5/d",
                        "rate-limit.limits.heavy.permits=6",
                        "rate-limit.limits.none.rate=5/d",
                        "rate-limit.limits.none.permits=0",
                        "rate-limit.routes[0].path=/api/**",
                        "rate-limit.routes[0].limits=x",
                        "rate-limit.routes[0]." + property)
                .run(context -> assertThat(context)
                        .getFailure()
                        .rootCause()
                        .satisfies(failure -> assertThat(invalid(context.getStartupFailure()))
                                .hasMessageContainingAll(place, problem)
                                .extracting(InvalidRateLimitException::remedy)
                                .asString()
                                .contains(remedy)));
    }

    @Test
    void aKeyOfARouteHasNoMeaningForALimitThatFindsItself() {
        runner().withPropertyValues(
                        "rate-limit.limits.busy.algorithm=adaptive",
                        "rate-limit.routes[0].path=/api/**",
                        "rate-limit.routes[0].limits=busy",
                        "rate-limit.routes[0].key=clientIp")
                .run(context -> assertThat(invalid(context.getStartupFailure()))
                        .hasMessageContainingAll(
                                "Origin: rate-limit.routes[0].key.", "but ADAPTIVE has one limit", "\"clientIp\"")
                        .extracting(InvalidRateLimitException::remedy)
                        .asString()
                        .contains("set the key of the other limits", "[RL-112]"));
    }

    /** Each request would take two permits. */
    @Test
    void aRouteThatNamesALimitTwiceStopsTheStart() {
        runner().withPropertyValues(
                        "rate-limit.limits.api.rate=1/d",
                        "rate-limit.routes[0].path=/api/**",
                        "rate-limit.routes[0].limits=api,api")
                .run(context -> assertThat(invalid(context.getStartupFailure()))
                        .hasMessage("Property rate-limit.routes[0].limits has api twice."));
    }

    @Test
    void anImpossiblePrefixOfAddressesIsExplained() {
        new WebApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        RateLimitAutoConfiguration.class, ServletRateLimitAutoConfiguration.class))
                .withPropertyValues("rate-limit.http.ipv6-prefix-length=0")
                .run(context -> assertThat(
                                Contexts.analyse(context.getStartupFailure()).getDescription())
                        .isEqualTo("Property rate-limit.http.ipv6-prefix-length is 0, but must be from 1 to 128."));
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void aRouteThatIsNoPatternStopsTheApplication(Kind kind) {
        assertThatThrownBy(() -> start(
                        kind,
                        "rate-limit.limits.x.rate=1/d",
                        "rate-limit.routes[0].path=/a/{b",
                        "rate-limit.routes[0].limits=x"))
                .satisfies(failure -> assertThat(invalid(failure))
                        .hasMessageContainingAll("rate-limit.routes[0].path", "\"/a/{b\" is not a path pattern"));
    }

    private static InvalidRateLimitException invalid(Throwable failure) {
        Throwable cause = failure;
        while (!(cause instanceof InvalidRateLimitException)) {
            cause = cause.getCause();
        }
        return (InvalidRateLimitException) cause;
    }

    private static ApplicationContextRunner runner() {
        return new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(
                        io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration.class,
                        ServletRateLimitAutoConfiguration.class,
                        ReactiveRateLimitAutoConfiguration.class));
    }

    private static RunningServer start(Kind kind, String... properties) {
        return kind.start(List.of(app(kind)), properties);
    }

    private static Class<?> app(Kind kind) {
        return kind == Kind.REACTOR_NETTY ? ReactiveApp.class : ServletApp.class;
    }

    @Configuration(proxyBeanMethods = false)
    @Import(AdviceOfTheApplication.Advice.class)
    static class AdviceOfTheApplication {

        @RestControllerAdvice
        static class Advice {

            @ExceptionHandler
            ResponseEntity<String> refused(RateLimitExceededException refusal) {
                return ResponseEntity.status(418).body("advice on " + refusal.limit());
            }
        }
    }
}
