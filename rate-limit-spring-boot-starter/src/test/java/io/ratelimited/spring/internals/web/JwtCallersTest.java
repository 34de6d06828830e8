package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import com.nimbusds.jose.jwk.source.ImmutableSecret;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.nio.charset.StandardCharsets;
import java.security.Principal;
import java.time.Instant;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import javax.crypto.SecretKey;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.http.HttpStatus;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.web.server.ServerHttpSecurity;
import org.springframework.security.oauth2.jose.jws.MacAlgorithm;
import org.springframework.security.oauth2.jwt.JwsHeader;
import org.springframework.security.oauth2.jwt.JwtClaimsSet;
import org.springframework.security.oauth2.jwt.JwtDecoder;
import org.springframework.security.oauth2.jwt.JwtEncoderParameters;
import org.springframework.security.oauth2.jwt.NimbusJwtDecoder;
import org.springframework.security.oauth2.jwt.NimbusJwtEncoder;
import org.springframework.security.oauth2.jwt.NimbusReactiveJwtDecoder;
import org.springframework.security.oauth2.jwt.ReactiveJwtDecoder;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.server.SecurityWebFilterChain;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebFilter;
import org.springframework.web.server.WebFilterChain;
import reactor.core.publisher.Mono;

/** Callers with signed tokens: each login has another token, issued at another time. */
@Tag("spring-boot")
@Tag("slow")
class JwtCallersTest {

    private static final SecretKey SECRET = new SecretKeySpec(
            "a secret of at least 32 bytes for a test".getBytes(StandardCharsets.US_ASCII), "HmacSHA256");

    private final AtomicInteger logins = new AtomicInteger();

    /** A token with a number of its own, as of a login a minute after the last one. */
    private String login(String subject) {
        int login = logins.incrementAndGet();
        Instant issued = Instant.now().minusSeconds(3_600).plusSeconds(60L * login);
        JwtClaimsSet claims = JwtClaimsSet.builder()
                .subject(subject)
                .id("login-" + login)
                .issuedAt(issued)
                .expiresAt(issued.plusSeconds(36_000))
                .build();
        return "Bearer "
                + new NimbusJwtEncoder(new ImmutableSecret<>(SECRET))
                        .encode(JwtEncoderParameters.from(
                                JwsHeader.with(MacAlgorithm.HS256).build(), claims))
                        .getTokenValue();
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void haveOneBudgetWithAllTheirTokens(Kind kind) {
        try (RunningServer server = kind.startSecured(
                List.of(App.class),
                "rate-limit.limits.routed.rate=1/m",
                "rate-limit.limits.routed.key=principal",
                "rate-limit.limits.by-hand.rate=1/m",
                "rate-limit.limits.by-hand.key=#key",
                "rate-limit.routes[0].path=/routed",
                "rate-limit.routes[0].limits=routed")) {
            for (String path : List.of("/plain", "/listed", "/joined", "/subject", "/routed", "/by-hand")) {
                assertThat(status(server, path, "ann")).as(path).isEqualTo(200);
                assertThat(status(server, path, "ann")).as(path).isEqualTo(429);
                assertThat(status(server, path, "bob")).as(path).isEqualTo(200);
            }
        }
    }

    @Test
    void areKnownToAFilterBehindSpringSecurityThatCallsALimitedMethod() {
        try (RunningServer server = Kind.REACTOR_NETTY.startSecured(List.of(App.class, Filter.class, Service.class))) {
            assertThat(status(server, "/filtered", "ann")).isEqualTo(200);
            assertThat(status(server, "/filtered", "ann")).isEqualTo(429);
            assertThat(status(server, "/filtered", "bob")).isEqualTo(200);
        }
    }

    private int status(RunningServer server, String path, String subject) {
        return server.get(path, "Authorization", login(subject)).statusCode();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Api.class, OnServlets.class, OnWebFlux.class})
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    static class OnServlets {

        @Bean
        SecurityFilterChain chain(HttpSecurity http) throws Exception {
            return http.authorizeHttpRequests(all -> all.anyRequest().authenticated())
                    .oauth2ResourceServer(server -> server.jwt(Customizer.withDefaults()))
                    .build();
        }

        @Bean
        JwtDecoder decoder() {
            return NimbusJwtDecoder.withSecretKey(SECRET).build();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.REACTIVE)
    static class OnWebFlux {

        @Bean
        SecurityWebFilterChain chain(ServerHttpSecurity http) {
            return http.authorizeExchange(all -> all.anyExchange().authenticated())
                    .oauth2ResourceServer(server -> server.jwt(Customizer.withDefaults()))
                    .build();
        }

        @Bean
        ReactiveJwtDecoder decoder() {
            return NimbusReactiveJwtDecoder.withSecretKey(SECRET).build();
        }
    }

    @RestController
    static class Api {

        private final RateLimits limits;

        Api(RateLimits limits) {
            this.limits = limits;
        }

        @GetMapping("/plain")
        @RateLimited(rate = "1/m", key = "principal")
        public String plain() {
            return "sold";
        }

        @GetMapping("/listed")
        @RateLimited(rate = "1/m", key = "{principal, 'eu'}")
        public String listed() {
            return "sold";
        }

        @GetMapping("/joined")
        @RateLimited(rate = "1/m", key = "principal + ':eu'")
        public String joined() {
            return "sold";
        }

        @GetMapping("/subject")
        @RateLimited(rate = "1/m", key = "principal?.principal?.subject")
        public String subject() {
            return "sold";
        }

        @GetMapping("/filtered")
        public String filtered() {
            return "sold";
        }

        @GetMapping("/routed")
        public String routed() {
            return "sold";
        }

        @GetMapping("/by-hand")
        public String byHand(Principal caller) {
            if (!limits.tryAcquire("by-hand", caller)) {
                throw new SoldOut();
            }
            return "sold";
        }
    }

    static class Service {

        @RateLimited(name = "filtered", rate = "1/m", key = "principal")
        public Mono<String> call() {
            return Mono.just("called");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Filter implements WebFilter {

        private final Service service;

        Filter(Service service) {
            this.service = service;
        }

        @Override
        public Mono<Void> filter(ServerWebExchange exchange, WebFilterChain chain) {
            return exchange.getRequest().getPath().value().equals("/filtered")
                    ? service.call().then(Mono.defer(() -> chain.filter(exchange)))
                    : chain.filter(exchange);
        }
    }

    @ResponseStatus(HttpStatus.TOO_MANY_REQUESTS)
    static class SoldOut extends RuntimeException {

        private static final long serialVersionUID = 1L;
    }
}
