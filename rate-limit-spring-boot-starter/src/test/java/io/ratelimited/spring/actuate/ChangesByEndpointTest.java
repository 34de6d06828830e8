package io.ratelimited.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimitChangedEvent;
import io.ratelimited.spring.RateLimitChangedEvent.Scope;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimitResetEvent;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.internals.text.KeyMask;
import io.ratelimited.spring.internals.web.RunningServer;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.WebApplicationType;
import org.springframework.boot.actuate.audit.AuditEvent;
import org.springframework.boot.actuate.audit.AuditEventRepository;
import org.springframework.boot.actuate.audit.InMemoryAuditEventRepository;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.builder.SpringApplicationBuilder;
import org.springframework.boot.security.autoconfigure.actuate.web.servlet.EndpointRequest;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.event.EventListener;
import org.springframework.core.annotation.Order;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.annotation.web.configurers.AbstractHttpConfigurer;
import org.springframework.security.config.web.server.ServerHttpSecurity;
import org.springframework.security.core.userdetails.MapReactiveUserDetailsService;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.core.userdetails.UserDetails;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.server.SecurityWebFilterChain;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;

/** Who has changed a limit over HTTP, behind Spring Security: the event, and the audit event of Spring Boot. */
@ParameterizedClass
@EnumSource(names = {"SERVLET", "REACTIVE"})
@Tag("spring-boot")
@Tag("slow")
class ChangesByEndpointTest {

    @Parameter
    WebApplicationType type;

    private static ConfigurableApplicationContext context;

    @BeforeParameterizedClassInvocation
    static void start(WebApplicationType type) {
        boolean servlet = type == WebApplicationType.SERVLET;
        context = new SpringApplicationBuilder(
                        Application.class,
                        servlet ? ServletUsers.class : ReactiveUsers.class,
                        RunningServer.PlainPasswords.class)
                .web(type)
                .properties(
                        "server.port=0",
                        "server.shutdown=immediate",
                        "spring.main.banner-mode=off",
                        "spring.reactor.netty.shutdown-quiet-period=0s",
                        "management.endpoints.web.exposure.include=ratelimits",
                        "rate-limit.limits.search.rate=100/s")
                .run();
    }

    @AfterParameterizedClassInvocation
    static void stop() {
        context.close();
    }

    @BeforeEach
    void nothingHasChanged() {
        context.getBean(Changes.class).failing = false;
        TestLimits.of(context).revert("search");
        changes().clear();
        context.getBean(Changes.class).resets.clear();
        // Forgets what it has.
        context.getBean(InMemoryAuditEventRepository.class).setCapacity(100);
    }

    @Test
    void theAuthenticatedCallerOfTheEndpointIsThePrincipal() throws Exception {
        assertThat(post("/actuator/ratelimits/search", "ann", "{\"burst\": 50}"))
                .isEqualTo(200);
        assertThat(post("/actuator/ratelimits/search", null, "{\"burst\": 60}")).isEqualTo(401);
        assertThat(post("/actuator/ratelimits/search", "ann", "{\"burst\": 0}")).isEqualTo(400);

        assertThat(changes())
                .containsExactly(new RateLimitChangedEvent(
                        "search", null, Map.of("burst", 100L), Map.of("burst", 50L), Scope.INSTANCE, "ann"));
    }

    @Test
    void theAuditRepositoryHasTheChange() throws Exception {
        assertThat(post("/actuator/ratelimits/search", "ann", "{\"burst\": 50}"))
                .isEqualTo(200);
        TestLimits.of(context).change("search", LimitChange.of("burst", "70"));

        List<AuditEvent> audited = context.getBean(AuditEventRepository.class).find(null, null, "RATE_LIMIT_CHANGED");
        assertThat(audited).extracting(AuditEvent::getPrincipal).containsExactly("ann", "");
        assertThat(audited.get(0).getData())
                .isEqualTo(Map.of(
                        "limit",
                        "search",
                        "before",
                        Map.of("burst", 100L),
                        "after",
                        Map.of("burst", 50L),
                        "scope",
                        "instance"));
    }

    /** A reset ends the block of somebody who guesses passwords: it must be known who did it. */
    @Test
    void theAuditRepositoryHasTheResetOfAKeyAndItsAuthor() throws Exception {
        assertThat(send("DELETE", "/actuator/ratelimits/search/bob", "ann", "")).isEqualTo(204);
        TestLimits.of(context).reset("search", null);

        String mask = KeyMask.mask(CanonicalKey.text("bob"));
        assertThat(context.getBean(Changes.class).resets)
                .containsExactly(
                        new RateLimitResetEvent("search", mask, Scope.INSTANCE, "ann"),
                        new RateLimitResetEvent("search", null, Scope.INSTANCE, null));
        List<AuditEvent> audited = context.getBean(AuditEventRepository.class).find(null, null, "RATE_LIMIT_RESET");
        assertThat(audited).extracting(AuditEvent::getPrincipal).containsExactly("ann", "");
        assertThat(audited.get(0).getData()).isEqualTo(Map.of("limit", "search", "key", mask, "scope", "instance"));
        assertThat(audited.get(1).getData()).isEqualTo(Map.of("limit", "search", "scope", "instance"));
    }

    /** A key of this text may be a string or a number: both are reset, and reported once. */
    @Test
    void theResetOfANumberIsReportedOnce() throws Exception {
        TestLimits limits = TestLimits.of(context);
        for (Object key : List.of("42", 42, 42L)) {
            assertThat(limits.tryAcquire("search", key, 100)).isTrue();
        }

        assertThat(send("DELETE", "/actuator/ratelimits/search/42", "ann", "")).isEqualTo(204);

        String mask = KeyMask.mask(CanonicalKey.text("42"));
        assertThat(context.getBean(Changes.class).resets)
                .containsExactly(new RateLimitResetEvent("search", mask, Scope.INSTANCE, "ann"));
        assertThat(context.getBean(AuditEventRepository.class).find("ann", null, "RATE_LIMIT_RESET"))
                .hasSize(1);
        for (Object key : List.of("42", 42, 42L)) {
            assertThat(limits.tryAcquire("search", key, 100)).isTrue();
        }
    }

    @Test
    void aListenerThatThrowsNeitherFailsTheRequestNorKeepsTheChangeFromTheAudit() throws Exception {
        context.getBean(Changes.class).failing = true;

        assertThat(post("/actuator/ratelimits/search", "ann", "{\"burst\": 50}"))
                .isEqualTo(200);

        assertThat(TestLimits.of(context).limit("search").limit().burst()).isEqualTo(50);
        assertThat(context.getBean(AuditEventRepository.class).find("ann", null, "RATE_LIMIT_CHANGED"))
                .hasSize(1);
    }

    /** On WebFlux a method finds the principal only where a limit reads it; the endpoint is told. */
    @Test
    void aControllerThatChangesALimitDoesSoForItsCallerOnServlets() throws Exception {
        assertThat(post("/raise", "ann", "")).isEqualTo(200);

        assertThat(changes())
                .extracting(RateLimitChangedEvent::principal)
                .containsExactly(type == WebApplicationType.SERVLET ? "ann" : null);
    }

    private static List<RateLimitChangedEvent> changes() {
        return context.getBean(Changes.class).seen;
    }

    private int post(String path, @Nullable String user, String body) throws Exception {
        return send("POST", path, user, body);
    }

    private int send(String method, String path, @Nullable String user, String body) throws Exception {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(
                        "http://localhost:" + context.getEnvironment().getProperty("local.server.port") + path))
                .header("Content-Type", "application/json")
                .method(method, BodyPublishers.ofString(body));
        if (user != null) {
            byte[] credentials = (user + ":" + user).getBytes(StandardCharsets.UTF_8);
            request.header("Authorization", "Basic " + Base64.getEncoder().encodeToString(credentials));
        }
        return HttpClient.newHttpClient()
                .send(request.build(), BodyHandlers.discarding())
                .statusCode();
    }

    private static UserDetails ann() {
        return User.withUsername("ann").password("{noop}ann").roles("OPERATOR").build();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class Application {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        InMemoryAuditEventRepository audit() {
            return new InMemoryAuditEventRepository();
        }

        @Bean
        Changes changes() {
            return new Changes();
        }

        @Bean
        Operators operators(RateLimitOperations operations) {
            return new Operators(operations);
        }
    }

    static class Changes {

        private final List<RateLimitChangedEvent> seen = new CopyOnWriteArrayList<>();
        private final List<RateLimitResetEvent> resets = new CopyOnWriteArrayList<>();
        private volatile boolean failing;

        @EventListener
        void onReset(RateLimitResetEvent reset) {
            resets.add(reset);
        }

        @EventListener
        @Order(0)
        void onChange(RateLimitChangedEvent change) {
            seen.add(change);
            if (failing) {
                throw new IllegalStateException("broken");
            }
        }
    }

    @RestController
    static class Operators {

        private final RateLimitOperations operations;

        Operators(RateLimitOperations operations) {
            this.operations = operations;
        }

        @PostMapping("/raise")
        String raise() {
            return operations.change("search", LimitChange.of("burst", "150")).toString();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ServletUsers {

        @Bean
        InMemoryUserDetailsManager known() {
            return new InMemoryUserDetailsManager(ann());
        }

        /** As docs/operations.md has it. */
        @Bean
        @Order(1)
        SecurityFilterChain endpoint(HttpSecurity http) throws Exception {
            return http.securityMatcher(EndpointRequest.to("ratelimits"))
                    .authorizeHttpRequests(requests -> requests.anyRequest().hasRole("OPERATOR"))
                    .httpBasic(Customizer.withDefaults())
                    .csrf(csrf -> csrf.disable())
                    .build();
        }

        @Bean
        SecurityFilterChain security(HttpSecurity http) throws Exception {
            return http.authorizeHttpRequests(requests -> requests.anyRequest().authenticated())
                    .httpBasic(Customizer.withDefaults())
                    .csrf(AbstractHttpConfigurer::disable)
                    .build();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ReactiveUsers {

        @Bean
        MapReactiveUserDetailsService known() {
            return new MapReactiveUserDetailsService(ann());
        }

        @Bean
        SecurityWebFilterChain security(ServerHttpSecurity http) {
            return http.authorizeExchange(exchanges -> exchanges.anyExchange().authenticated())
                    .httpBasic(Customizer.withDefaults())
                    .csrf(ServerHttpSecurity.CsrfSpec::disable)
                    .build();
        }
    }
}
