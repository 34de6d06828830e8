package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assumptions.assumeThat;

import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.json.JsonParserFactory;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.annotation.Order;
import org.springframework.security.authentication.AuthenticationProvider;
import org.springframework.security.authentication.BadCredentialsException;
import org.springframework.security.authentication.ReactiveAuthenticationManager;
import org.springframework.security.authentication.TestingAuthenticationProvider;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.authentication.builders.AuthenticationManagerBuilder;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.core.Authentication;
import org.springframework.security.provisioning.InMemoryUserDetailsManager;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.filter.HiddenHttpMethodFilter;
import reactor.core.publisher.Mono;

/** What the start and the endpoint say of routes. */
@ParameterizedClass
@EnumSource(
        value = Kind.class,
        names = {"TOMCAT", "REACTOR_NETTY"})
@ExtendWith(OutputCaptureExtension.class)
@Tag("spring-boot")
@Tag("slow")
class RouteCheckTest {

    private static final String[] LOGIN = {
        "rate-limit.limits.all.rate=5/h",
        "rate-limit.routes[0].path=/login",
        "rate-limit.routes[0].methods=POST",
        "rate-limit.routes[0].limits=all"
    };

    @TempDir
    static Path files;

    @Parameter
    Kind kind;

    @Test
    void aRouteThatNoHandlerBelongsToIsReported(CapturedOutput output) throws IOException {
        Files.createDirectories(files.resolve("css"));
        start("/apo/x", "/none/**", "/login", "/open/x/y", "/nofile.css").close();
        assertThat(output)
                .contains("WARN")
                .contains(
                        "rate-limit.routes[0] (/apo/x) matches no handler of the application (did you mean '/api/x'?)")
                .contains("rate-limit.routes[1] (/none/**) matches no handler")
                .contains("rate-limit.routes[2] (/login) matches no handler")
                .contains("rate-limit.routes[3] (/open/x/y) matches no handler")
                .contains("rate-limit.routes[4] (/nofile.css) matches no handler");
    }

    @Test
    void otherRoutesAreNot(CapturedOutput output) throws IOException {
        Files.createDirectories(files.resolve("css"));
        startWith(
                        "rate-limit.routes[10].order=before-security",
                        "/**",
                        "/{*path}",
                        "/API/x/",
                        "api/*",
                        "/api/**",
                        "/{any}/x",
                        "/open/{id:\\d+}",
                        "/open/x",
                        "/css/**",
                        "/actuator/health",
                        "/token")
                .close();
        assertThat(output).doesNotContain("matches no handler");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aPathOfSpringSecurityIsNot(boolean actuator, CapturedOutput output) {
        kind.startSecured(
                        actuator,
                        List.of(RouteAttacksTest.App.class),
                        "rate-limit.limits.all.rate=5/h",
                        "rate-limit.routes[0].path=/login",
                        "rate-limit.routes[0].limits=all")
                .close();
        assertThat(output).doesNotContain("matches no handler");
    }

    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void aLoginBesideWhichSpringSecurityChecksPasswordsElsewhereIsReported(boolean actuator, CapturedOutput output) {
        kind.startSecured(actuator, List.of(RouteAttacksTest.App.class), LOGIN).close();
        assertThat(output)
                .contains("WARN")
                .contains("rate-limit.routes[0] (/login) limits a login, but Spring Security also checks credentials on"
                        + " every other path");
    }

    @Test
    void aLoginIsNotWhereEveryPathOrTheCheckItselfIsLimited(CapturedOutput output) {
        String[] all = Stream.concat(
                        Stream.of(LOGIN), Stream.of("rate-limit.routes[1].path=/**", "rate-limit.routes[1].limits=all"))
                .toArray(String[]::new);
        kind.startSecured(List.of(RouteAttacksTest.App.class), all).close();
        Class<?> guarded = kind == Kind.TOMCAT ? Guarded.class : ReactiveGuarded.class;
        kind.startSecured(List.of(RouteAttacksTest.App.class, guarded), LOGIN).close();
        kind.start(List.of(RouteAttacksTest.App.class), LOGIN).close();
        assertThat(output).doesNotContain("limits a login, but");
    }

    @Test
    void aLimitedProviderCountsIfSpringSecurityChecksPasswordsByIt(CapturedOutput output) {
        assumeThat(kind).isEqualTo(Kind.TOMCAT);
        List<Class<?>> ofChain = List.of(RouteAttacksTest.App.class, Guarded.class, OfChain.class);
        kind.startSecured(ofChain, LOGIN).close();
        assertThat(output).doesNotContain("limits a login, but");

        List<Class<?>> unused = List.of(RouteAttacksTest.App.class, Guarded.class, OfBuilder.class);
        kind.startSecured(unused, LOGIN).close();
        assertThat(output).contains("limits a login, but");
    }

    @Test
    void aRouteThatDoesNotCountAHiddenMethodIsReported(CapturedOutput output) {
        String[] delete = {
            "rate-limit.limits.all.rate=5/h",
            "rate-limit.routes[0].path=/api/x",
            "rate-limit.routes[0].methods=DELETE",
            "rate-limit.routes[0].limits=all",
            "rate-limit.routes[1].path=/api/y",
            "rate-limit.routes[1].methods=DELETE,POST",
            "rate-limit.routes[1].limits=all"
        };
        kind.start(List.of(RouteAttacksTest.App.class), delete).close();
        kind.start(List.of(RouteAttacksTest.App.class, Ordered.class), delete).close();
        assertThat(output).doesNotContain("HiddenHttpMethodFilter");

        if (kind == Kind.TOMCAT) {
            kind.start(List.of(RouteAttacksTest.App.class, Registered.class), delete)
                    .close();
            assertThat(output).doesNotContain("HiddenHttpMethodFilter");
        }
        Class<?> hidden = kind == Kind.TOMCAT ? Hidden.class : ReactiveHidden.class;
        kind.start(List.of(RouteAttacksTest.App.class, hidden), delete).close();
        assertThat(output)
                .contains("rate-limit.routes[0] (/api/x) does not count requests with a parameter _method, because the"
                        + " HiddenHttpMethodFilter runs after the route. Give the filter an order below -101. [RL-214]")
                .doesNotContain("rate-limit.routes[1] (/api/y) does not count requests with");
    }

    @Configuration(proxyBeanMethods = false)
    static class Hidden {

        @Bean
        HiddenHttpMethodFilter hidden() {
            return new HiddenHttpMethodFilter();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ReactiveHidden {

        @Bean
        org.springframework.web.filter.reactive.HiddenHttpMethodFilter hidden() {
            return new org.springframework.web.filter.reactive.HiddenHttpMethodFilter();
        }
    }

    /** Before the routes. */
    @Configuration(proxyBeanMethods = false)
    static class Registered {

        @Bean
        HiddenHttpMethodFilter hidden() {
            return new HiddenHttpMethodFilter();
        }

        @Bean
        FilterRegistrationBean<HiddenHttpMethodFilter> registered(HiddenHttpMethodFilter hidden) {
            FilterRegistrationBean<HiddenHttpMethodFilter> registered = new FilterRegistrationBean<>(hidden);
            registered.setOrder(-102);
            return registered;
        }
    }

    /** Before the routes. */
    @Configuration(proxyBeanMethods = false)
    static class Ordered {

        @Bean
        @Order(-102)
        @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
        HiddenHttpMethodFilter hidden() {
            return new HiddenHttpMethodFilter();
        }

        @Bean
        @Order(-102)
        @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.REACTIVE)
        org.springframework.web.filter.reactive.HiddenHttpMethodFilter reactiveHidden() {
            return new org.springframework.web.filter.reactive.HiddenHttpMethodFilter();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Guarded {

        @Bean
        AuthenticationProvider passwords() {
            return new GuardedPasswords();
        }
    }

    /** Of several providers, Spring Security takes none by itself. */
    @Configuration(proxyBeanMethods = false)
    static class OfChain {

        @Bean
        AuthenticationProvider tests() {
            return new TestingAuthenticationProvider();
        }

        @Bean
        SecurityFilterChain chain(HttpSecurity http, @Qualifier("passwords") AuthenticationProvider passwords) {
            return http.authenticationProvider(passwords)
                    .httpBasic(Customizer.withDefaults())
                    .build();
        }
    }

    /** Of whose users it takes the passwords, and not of the bean. */
    @Configuration(proxyBeanMethods = false)
    static class OfBuilder {

        @Autowired
        void users(AuthenticationManagerBuilder users) throws Exception {
            users.userDetailsService(new InMemoryUserDetailsManager());
        }
    }

    static class GuardedPasswords implements AuthenticationProvider {

        @Override
        @RateLimited(name = "guesses", rate = "5/h")
        public Authentication authenticate(Authentication login) {
            throw new BadCredentialsException("wrong");
        }

        @Override
        public boolean supports(Class<?> authentication) {
            return true;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ReactiveGuarded {

        @Bean
        ReactiveAuthenticationManager passwords() {
            return new GuardedReactivePasswords();
        }
    }

    static class GuardedReactivePasswords implements ReactiveAuthenticationManager {

        @Override
        @RateLimited(name = "guesses", rate = "5/h")
        public Mono<Authentication> authenticate(Authentication login) {
            return Mono.error(new BadCredentialsException("wrong"));
        }
    }

    @Test
    void logAndEndpointShowPathMethodsAndKey(CapturedOutput output) {
        try (RunningServer server = kind.start(
                List.of(RouteAttacksTest.App.class),
                "management.endpoints.web.exposure.include=ratelimits",
                "rate-limit.limits.all.rate=5/h",
                "rate-limit.limits.writes.rate=5/h",
                "rate-limit.limits.writes.key=principal",
                "rate-limit.routes[0].path=/api/**",
                "rate-limit.routes[0].methods=post,get",
                "rate-limit.routes[0].exclude=/api/open",
                "rate-limit.routes[0].limits=all",
                "rate-limit.routes[0].key=clientIp",
                "rate-limit.routes[1].path=/api/x",
                "rate-limit.routes[1].limits=all,writes")) {
            assertThat(output)
                    .contains("Rate limits of GET, HEAD, POST /api/** except /api/open: all with key clientIp,"
                            + " before-security (rate-limit.routes[0])")
                    .contains("Rate limits of all methods /api/x: all without a key and writes with key principal,"
                            + " after-security (rate-limit.routes[1])");
            assertThat(JsonParserFactory.getJsonParser()
                            .parseMap(server.get("/actuator/ratelimits/all").body()))
                    .containsKey("remaining")
                    .extracting("routes")
                    .asString()
                    .contains("{path=/api/**, exclude=[/api/open], methods=[GET, HEAD, POST], key=clientIp,"
                            + " order=before-security, declaredBy=rate-limit.routes[0]}")
                    .contains("{path=/api/x, methods=all, order=after-security");
            assertThat(JsonParserFactory.getJsonParser()
                            .parseMap(server.get("/actuator/ratelimits/writes").body()))
                    .as("every call has a key")
                    .containsEntry("source", "memory")
                    .doesNotContainKeys("remaining", "reset");
        }
    }

    private RunningServer start(String... paths) {
        return startWith("spring.main.lazy-initialization=false", paths);
    }

    private RunningServer startWith(String setting, String... paths) {
        String[] settings = new String[4 + 2 * paths.length];
        settings[0] = "rate-limit.limits.all.rate=5/h";
        settings[1] = "spring.web.resources.static-locations=" + files.toUri();
        settings[2] = setting;
        settings[3] = "management.endpoints.web.exposure.include=health";
        for (int i = 0; i < paths.length; i++) {
            settings[4 + 2 * i] = "rate-limit.routes[" + i + "].path=" + paths[i];
            settings[5 + 2 * i] = "rate-limit.routes[" + i + "].limits=all";
        }
        return kind.start(List.of(RouteAttacksTest.App.class), settings);
    }
}
