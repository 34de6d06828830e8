package io.ratelimited.spring.autoconfigure.web;

import static io.ratelimited.spring.internals.web.RunningServer.states;
import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Policy;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.web.RunningServer;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.webflux.autoconfigure.WebFluxRegistrations;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.security.authentication.AuthenticationProvider;
import org.springframework.security.authentication.BadCredentialsException;
import org.springframework.security.authentication.ReactiveAuthenticationManager;
import org.springframework.security.authentication.UsernamePasswordAuthenticationToken;
import org.springframework.security.core.Authentication;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.HandlerResult;
import org.springframework.web.reactive.result.method.annotation.RequestMappingHandlerAdapter;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.publisher.Mono;

/** A management port of its own has handler adapters of its own, which call its endpoints. */
@Tag("slow")
class ManagementPortTest {

    @Test
    void endpointIsCalledByTheAdaptersOfItsPort() throws Exception {
        try (RunningServer server = Kind.REACTOR_NETTY.start(
                List.of(App.class),
                "management.server.port=0",
                "management.endpoints.web.exposure.include=ratelimits")) {
            AtomicInteger calls = server.context.getBean(App.class).calls;
            assertThat(server.get("/limited").statusCode()).isEqualTo(200);
            assertThat(calls).hasValue(1);

            HttpResponse<String> answer = HttpClient.newHttpClient()
                    .send(
                            HttpRequest.newBuilder(management(server, "/actuator/ratelimits"))
                                    .build(),
                            BodyHandlers.ofString());

            assertThat(answer.statusCode()).isEqualTo(200);
            assertThat(answer.body()).contains("\"limited\"");
            assertThat(calls).hasValue(1);
        }
    }

    /** On WebFlux, the server of that port has the filters of the application. */
    @ParameterizedTest
    @EnumSource(names = {"REACTOR_NETTY", "TOMCAT"})
    void routesCountNothingOnAPortOfItsOwn(Kind kind) throws Exception {
        try (RunningServer server = kind.start(
                List.of(Routed.class),
                "management.server.port=0",
                "rate-limit.limits.all.rate=1/h",
                "rate-limit.routes[0].path=/**",
                "rate-limit.routes[0].limits=all")) {
            URI health = management(server, "/actuator/health");
            for (int i = 0; i < 3; i++) {
                HttpResponse<String> answer = HttpClient.newHttpClient()
                        .send(HttpRequest.newBuilder(health).build(), BodyHandlers.ofString());
                assertThat(answer.statusCode()).isEqualTo(200);
                assertThat(answer.headers().firstValue("RateLimit")).isEmpty();
            }
            assertThat(server.get("/limited").statusCode()).isEqualTo(200);
            assertThat(server.get("/limited").statusCode()).isEqualTo(429);
        }
    }

    /** Credentials are checked on that port too. */
    @ParameterizedTest
    @EnumSource(Kind.class)
    void loginsAreLimitedOnAPortOfItsOwnAsOnThatOfTheApplication(Kind kind) throws Exception {
        try (RunningServer server = kind.startSecured(
                List.of(kind == Kind.REACTOR_NETTY ? ReactiveGuarded.class : Guarded.class),
                "management.server.port=0",
                "management.endpoints.web.exposure.include=ratelimits",
                "rate-limit.limits.all.rate=1/h",
                "rate-limit.routes[0].path=/**",
                "rate-limit.routes[0].limits=all")) {
            assertThat(login(server, "right").statusCode()).isEqualTo(200);
            HttpResponse<String> wrong = login(server, "wrong");
            assertThat(wrong.statusCode()).isEqualTo(401);
            assertThat(states(wrong)).containsOnlyKeys("guesses");

            HttpResponse<String> rejected = login(server, "right");
            assertThat(rejected.statusCode()).as(rejected.body()).isEqualTo(429);
            assertThat(rejected.headers().firstValue("Content-Type")).contains("application/problem+json");
            assertThat(rejected.headers().firstValue("Retry-After")).contains("3600");
            assertThat(states(rejected)).containsOnlyKeys("guesses");
            assertThat(rejected.body()).contains("\"violated-policies\":[\"guesses\"]");

            HttpResponse<String> browser = login(server, "right", "Accept", "text/html,*/*;q=0.8");
            assertThat(browser.statusCode()).isEqualTo(429);
            assertThat(browser.headers().firstValue("Retry-After")).contains("3600");

            for (String accepted : List.of("text/html", "text/html;q=0.5, image/png", "image/png")) {
                HttpResponse<String> other = login(server, "right", "Accept", accepted);
                assertThat(other.statusCode()).as(accepted).isEqualTo(429);
                assertThat(other.headers().firstValue("Retry-After")).contains("3600");
            }
        }
    }

    @Test
    void waitsLeaveHalfOfItsThreadsToOthers() throws Exception {
        try (RunningServer server = Kind.TOMCAT.start(
                List.of(Waiting.class),
                "management.server.port=0",
                "management.endpoints.web.exposure.include=slow",
                "server.tomcat.threads.max=2")) {
            HttpRequest slow =
                    HttpRequest.newBuilder(management(server, "/actuator/slow")).build();
            HttpClient client = HttpClient.newHttpClient();
            assertThat(client.send(slow, BodyHandlers.ofString()).statusCode()).isEqualTo(200);
            CompletableFuture<HttpResponse<String>> waiting = client.sendAsync(slow, BodyHandlers.ofString());
            server.ticker().awaitSleeping(1);

            HttpResponse<String> rejected = client.sendAsync(slow, BodyHandlers.ofString())
                    .orTimeout(20, TimeUnit.SECONDS)
                    .join();

            assertThat(rejected.statusCode()).as(rejected.body()).isEqualTo(429);
            server.ticker().advance(Duration.ofHours(1));
            assertThat(waiting.join().statusCode()).isEqualTo(200);
        }
    }

    private static URI management(RunningServer server, String path) {
        return URI.create(
                "http://localhost:" + server.context.getEnvironment().getProperty("local.management.port") + path);
    }

    private static HttpResponse<String> login(RunningServer server, String password, String... headers)
            throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(management(server, "/actuator/ratelimits"))
                .header(
                        "Authorization",
                        "Basic " + Base64.getEncoder().encodeToString(("ann:" + password).getBytes(US_ASCII)));
        if (headers.length > 0) {
            request.headers(headers);
        }
        return HttpClient.newHttpClient().send(request.build(), BodyHandlers.ofString());
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Slow.class)
    static class Waiting {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    @Endpoint(id = "slow")
    static class Slow {

        @ReadOperation
        @RateLimited(name = "slow", rate = "1/h", policy = Policy.WAIT, maxWait = "1d")
        public String read() {
            return "read";
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Passwords.class)
    static class Guarded {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    static class Passwords implements AuthenticationProvider {

        @Override
        @RateLimited(name = "guesses", rate = "1/h", key = "clientIp", charge = "#error == null ? 0 : 1")
        public Authentication authenticate(Authentication login) {
            return authenticated(login);
        }

        @Override
        public boolean supports(Class<?> authentication) {
            return UsernamePasswordAuthenticationToken.class.isAssignableFrom(authentication);
        }
    }

    private static Authentication authenticated(Authentication login) {
        if (!"right".equals(login.getCredentials())) {
            throw new BadCredentialsException("wrong");
        }
        return UsernamePasswordAuthenticationToken.authenticated(login.getName(), null, List.of());
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(ReactivePasswords.class)
    static class ReactiveGuarded {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    static class ReactivePasswords implements ReactiveAuthenticationManager {

        @Override
        @RateLimited(name = "guesses", rate = "1/h", key = "clientIp", charge = "#error == null ? 0 : 1")
        public Mono<Authentication> authenticate(Authentication login) {
            return Mono.fromCallable(() -> authenticated(login));
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Api.class)
    static class Routed {}

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Api.class)
    static class App {

        final AtomicInteger calls = new AtomicInteger();

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        WebFluxRegistrations registrations() {
            return new WebFluxRegistrations() {
                @Override
                public RequestMappingHandlerAdapter getRequestMappingHandlerAdapter() {
                    return new RequestMappingHandlerAdapter() {
                        @Override
                        public Mono<HandlerResult> handle(ServerWebExchange exchange, Object handler) {
                            calls.incrementAndGet();
                            return super.handle(exchange, handler);
                        }
                    };
                }
            };
        }
    }

    @RestController
    static class Api {

        @GetMapping("/limited")
        @RateLimited(name = "limited", rate = "10/s")
        String limited() {
            return "called";
        }
    }
}
