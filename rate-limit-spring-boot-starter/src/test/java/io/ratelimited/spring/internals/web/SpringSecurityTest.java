package io.ratelimited.spring.internals.web;

import static io.ratelimited.spring.internals.web.RunningServer.states;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
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
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.core.userdetails.MapReactiveUserDetailsService;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetails;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Mono;

/** Limits behind Spring Security, as Spring Boot places it: it knows the caller, and stops whom it does not know. */
@ParameterizedClass
@EnumSource(Kind.class)
@Tag("spring-boot")
@Tag("slow")
class SpringSecurityTest {

    private static RunningServer server;

    @BeforeParameterizedClassInvocation
    static void start(Kind kind) {
        server = kind.startSecured(
                List.of(kind == Kind.REACTOR_NETTY ? ReactiveUsers.class : ServletUsers.class),
                "rate-limit.limits.users.rate=1/m",
                "rate-limit.limits.all.rate=2/m",
                "rate-limit.routes[0].path=/routed/user",
                "rate-limit.routes[0].limits=users",
                "rate-limit.routes[0].key=principal",
                "rate-limit.routes[1].path=/routed/all",
                "rate-limit.routes[1].limits=all",
                "rate-limit.routes[1].order=after-security");
    }

    @AfterParameterizedClassInvocation
    static void stop() {
        server.close();
    }

    @Parameter
    Kind kind;

    @ParameterizedTest
    @ValueSource(strings = {"/routed/user", "/annotated"})
    void callersHaveBudgetsOfTheirOwnOnRoutesAndMethods(String path) {
        assertThat(get(path, "ann").statusCode()).isEqualTo(200);
        HttpResponse<String> refused = get(path, "ann");
        assertThat(refused.statusCode()).isEqualTo(429);
        assertThat(refused.headers().firstValue("Retry-After")).contains("60");
        assertThat(states(refused)).hasSize(1);
        HttpResponse<String> other = get(path, "bob");
        assertThat(other.statusCode()).isEqualTo(200);
        assertThat(other.body()).isEqualTo("for bob");
    }

    @Test
    void whoIsNotAuthenticatedIsNeitherCountedNorToldAfterSecurity() {
        for (int i = 0; i < 3; i++) {
            for (HttpResponse<String> response : List.of(server.get("/routed/all"), get("/routed/all", "eve"))) {
                assertThat(response.statusCode()).isEqualTo(401);
                assertThat(response.headers().map()).doesNotContainKeys("ratelimit", "ratelimit-policy");
            }
        }
        assertThat(get("/routed/all", "ann").statusCode()).isEqualTo(200);
        assertThat(get("/routed/all", "bob").statusCode()).isEqualTo(200);
        assertThat(get("/routed/all", "ann").statusCode()).isEqualTo(429);
    }

    /** Everybody's password is the name, except that of eve, who does not exist. */
    private static HttpResponse<String> get(String path, String user) {
        byte[] credentials = (user + ":" + user).getBytes(StandardCharsets.UTF_8);
        return server.get(path, "Authorization", "Basic " + Base64.getEncoder().encodeToString(credentials));
    }

    private static UserDetails[] users() {
        return new UserDetails[] {user("ann"), user("bob")};
    }

    private static UserDetails user(String name) {
        return User.withUsername(name).password("{noop}" + name).roles("USER").build();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class ServletUsers {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        InMemoryUserDetailsManager known() {
            return new InMemoryUserDetailsManager(users());
        }

        @Bean
        Api api() {
            return new Api();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class ReactiveUsers {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        MapReactiveUserDetailsService known() {
            return new MapReactiveUserDetailsService(users());
        }

        @Bean
        Api api() {
            return new Api();
        }
    }

    @RestController
    static class Api {

        @GetMapping("/routed/user")
        Mono<String> user(java.security.Principal caller) {
            return Mono.just("for " + caller.getName());
        }

        @GetMapping("/routed/all")
        Mono<String> all() {
            return Mono.just("for all");
        }

        @GetMapping("/annotated")
        @RateLimited(name = "annotated", rate = "1/m", key = "principal")
        Mono<String> annotated(java.security.Principal caller) {
            return Mono.just("for " + caller.getName());
        }
    }
}
