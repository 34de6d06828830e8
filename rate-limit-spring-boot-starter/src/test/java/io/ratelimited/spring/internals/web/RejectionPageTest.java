package io.ratelimited.spring.internals.web;

import static io.ratelimited.spring.internals.web.RunningServer.states;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import io.ratelimited.spring.internals.web.servlet.RateLimitFilter;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.PrintWriter;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.error.ErrorPage;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.boot.web.servlet.support.ErrorPageFilter;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.security.config.Customizer;
import org.springframework.security.config.annotation.web.builders.HttpSecurity;
import org.springframework.security.config.web.server.SecurityWebFiltersOrder;
import org.springframework.security.config.web.server.ServerHttpSecurity;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.security.web.authentication.UsernamePasswordAuthenticationFilter;
import org.springframework.security.web.server.SecurityWebFilterChain;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.support.AnnotationConfigWebApplicationContext;
import org.springframework.web.filter.OncePerRequestFilter;
import org.springframework.web.servlet.DispatcherServlet;
import reactor.core.publisher.Mono;

/** Refusals outside the dispatcher servlet, and the page that an application has for the status. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("spring-boot")
@Tag("slow")
class RejectionPageTest {

    private static final String BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

    @ParameterizedTest
    @EnumSource(Kind.class)
    void aBrowserGetsThePageOfTheStatusAndThePageIsNotCounted(Kind kind) {
        try (RunningServer server = kind.start(
                List.of(App.class),
                "spring.web.resources.static-locations=classpath:/pages/",
                "rate-limit.limits.all.rate=3/m",
                "rate-limit.routes[0].path=/**",
                "rate-limit.routes[0].limits=all")) {
            assertThat(server.get("/one").statusCode()).isEqualTo(200);
            requireOwnPage(server.get("/one", "Accept", BROWSER), "one");
            assertThat(server.get("/missing", "Accept", BROWSER).statusCode()).isEqualTo(404);
            requireOwnPage(server.get("/missing", "Accept", BROWSER), "all");
            assertThat(server.context
                            .getBean(RateLimits.class)
                            .peek("all", null)
                            .remaining())
                    .isZero();
        }
    }

    @ParameterizedTest
    @CsvSource({"-200, -201, -90", "10, -101, 11"})
    void routesStandBeforeAndAfterSpringSecurityWhereverThatIs(int security, int before, int after) {
        try (RunningServer server = Kind.TOMCAT.start(List.of(App.class), "spring.security.filter.order=" + security)) {
            assertThat(order(server, "io.ratelimited.rateLimitBeforeSecurityFilter"))
                    .isEqualTo(before);
            assertThat(order(server, "io.ratelimited.rateLimitFilter")).isEqualTo(after);
        }
    }

    private static int order(RunningServer server, String bean) {
        return server.context.getBean(bean, RateLimitFilter.class).getOrder();
    }

    /** As templates do. */
    @Test
    void aRefusalAfterTheWriterWasTakenIsAnsweredAlike() {
        try (RunningServer server =
                Kind.TOMCAT.start(List.of(App.class, Written.class), "rate-limit.limits.written.rate=1/m")) {
            assertThat(server.get("/written").body()).isEqualTo("done");
            HttpResponse<String> refused = server.get("/written");
            assertThat(refused.statusCode()).isEqualTo(429);
            assertThat(refused.body()).contains("\"violated-policies\":[\"written\"]");
            assertThat(refused.headers().firstValue("Retry-After")).hasValue("60");
        }
    }

    /** As in a server that is not embedded, and next to a second dispatcher servlet: a page is shown in place of the login. */
    @ParameterizedTest
    @ValueSource(classes = {ForwardedPages.class, SecondDispatcher.class})
    void aReaderWhomSpringSecurityDoesNotKnowSeesThePage(Class<?> more) {
        try (RunningServer server = Kind.TOMCAT.startSecured(
                false,
                List.of(App.class, more),
                "rate-limit.limits.all.rate=1/h",
                "rate-limit.routes[0].path=/**",
                "rate-limit.routes[0].limits=all")) {
            assertThat(server.get("/one", "Accept", BROWSER).statusCode()).isEqualTo(302);
            HttpResponse<String> page = server.get("/one", "Accept", BROWSER);
            assertThat(page.statusCode()).isEqualTo(429);
            assertThat(page.body()).contains("Whitelabel");
            assertThat(page.headers().allValues("Retry-After")).containsExactly("3600");
            assertThat(page.headers().firstValue("Set-Cookie")).isEmpty();
        }
    }

    private static void requireOwnPage(HttpResponse<String> response, String limit) {
        assertThat(response.statusCode()).isEqualTo(429);
        assertThat(response.body()).contains("Slow down, please.");
        assertThat(response.headers().firstValue("Retry-After")).isPresent();
        assertThat(states(response)).containsKey(limit);
    }

    @Test
    void aRefusalInAFilterOfSpringSecurityIsAnsweredAlike(CapturedOutput output) {
        try (RunningServer server =
                Kind.TOMCAT.startSecured(List.of(App.class, Secured.class), "rate-limit.limits.logins.rate=1/m")) {
            assertThat(server.get("/one").statusCode()).isEqualTo(302);

            HttpResponse<String> refused = server.get("/one");
            assertThat(refused.statusCode()).isEqualTo(429);
            assertThat(refused.body()).contains("\"violated-policies\":[\"logins\"]");
            assertThat(refused.headers().firstValue("X-Content-Type-Options")).contains("nosniff");
            assertThat(states(refused)).isEqualTo(Map.of("logins", Map.of("r", 0L, "t", 60L)));
            HttpResponse<String> page = server.get("/one", "Accept", BROWSER);
            assertThat(page.statusCode()).isEqualTo(429);
            assertThat(page.body()).contains("Whitelabel");
            assertThat(page.headers().allValues("Retry-After")).containsExactly("60");
            assertThat(output).doesNotContain("ERROR");
        }
    }

    @Test
    void aRefusalInAWebFilterOfSpringSecurityIsAnsweredAlike(CapturedOutput output) {
        try (RunningServer server = Kind.REACTOR_NETTY.startSecured(
                List.of(App.class, SecuredReactive.class), "rate-limit.limits.logins.rate=1/m")) {
            assertThat(server.get("/one").statusCode()).isEqualTo(401);

            HttpResponse<String> refused = server.get("/one");
            assertThat(refused.statusCode()).isEqualTo(429);
            assertThat(refused.body()).contains("\"violated-policies\":[\"logins\"]");
            assertThat(refused.headers().allValues("Retry-After")).containsExactly("60");
            assertThat(states(refused)).isEqualTo(Map.of("logins", Map.of("r", 0L, "t", 60L)));
            HttpResponse<String> page = server.get("/one", "Accept", BROWSER);
            assertThat(page.statusCode()).isEqualTo(429);
            assertThat(page.body()).contains("Whitelabel");
            assertThat(output).doesNotContain("ERROR");
        }
    }

    @Test
    void aResponseThatIsUnderWayIsLeftAlone() throws Exception {
        try (RunningServer server =
                        Kind.TOMCAT.start(List.of(App.class, Late.class), "rate-limit.limits.all.rate=0/s");
                Socket client = server.connect()) {
            client.getOutputStream()
                    .write("GET /one HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
                            .getBytes(StandardCharsets.US_ASCII));
            String response = new String(client.getInputStream().readAllBytes(), StandardCharsets.US_ASCII);
            assertThat(response).startsWith("HTTP/1.1 200").contains("begun").doesNotContain("quota", "Retry-After");
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
    }

    @RestController
    static class Api {

        @GetMapping("/one")
        @RateLimited(name = "one", rate = "1/m")
        String one() {
            return "1";
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Secured {

        @Bean
        SecurityFilterChain everybody(HttpSecurity http, RateLimits limits) throws Exception {
            return http.authorizeHttpRequests(requests -> requests.dispatcherTypeMatchers(DispatcherType.ERROR)
                            .permitAll()
                            .anyRequest()
                            .authenticated())
                    .formLogin(Customizer.withDefaults())
                    .addFilterBefore(new Logins(limits), UsernamePasswordAuthenticationFilter.class)
                    .build();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class SecuredReactive {

        @Bean
        SecurityWebFilterChain everybody(ServerHttpSecurity http, RateLimits limits) {
            return http.authorizeExchange(exchanges -> exchanges.anyExchange().authenticated())
                    .authenticationManager(authentication -> Mono.empty())
                    .httpBasic(Customizer.withDefaults())
                    .addFilterBefore(
                            (exchange, chain) -> {
                                limits.execute("logins", null, () -> "admitted");
                                return chain.filter(exchange);
                            },
                            SecurityWebFiltersOrder.AUTHENTICATION)
                    .build();
        }
    }

    /** Is not on the way to an error page, as the filters of Spring Security are not. */
    private static final class Logins extends OncePerRequestFilter {

        private final RateLimits limits;

        private Logins(RateLimits limits) {
            this.limits = limits;
        }

        @Override
        protected void doFilterInternal(HttpServletRequest request, HttpServletResponse response, FilterChain chain)
                throws ServletException, IOException {
            limits.execute("logins", null, () -> "admitted");
            chain.doFilter(request, response);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ForwardedPages {

        @Bean
        FilterRegistrationBean<ErrorPageFilter> errorPages() {
            ErrorPageFilter pages = new ErrorPageFilter();
            pages.addErrorPages(new ErrorPage("/error"));
            FilterRegistrationBean<ErrorPageFilter> registered = new FilterRegistrationBean<>(pages);
            registered.setOrder(pages.getOrder());
            registered.setDispatcherTypes(DispatcherType.REQUEST, DispatcherType.ASYNC);
            return registered;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class SecondDispatcher {

        @Bean
        ServletRegistrationBean<DispatcherServlet> second() {
            ServletRegistrationBean<DispatcherServlet> second = new ServletRegistrationBean<>(
                    new DispatcherServlet(new AnnotationConfigWebApplicationContext()), "/second/*");
            second.setName("second");
            return second;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Late {

        /** Refuses when the answer has begun. */
        @Bean
        FilterRegistrationBean<Filter> late(RateLimits limits) {
            return new FilterRegistrationBean<>((request, response, chain) -> {
                response.getWriter().write("begun");
                response.flushBuffer();
                limits.execute("all", null, () -> "admitted");
            });
        }
    }

    @RestController
    static class Written {

        private final RateLimits limits;

        Written(RateLimits limits) {
            this.limits = limits;
        }

        @GetMapping("/written")
        public void written(HttpServletResponse response) throws IOException {
            PrintWriter writer = response.getWriter();
            writer.write(limits.execute("written", null, () -> "done"));
        }
    }
}
