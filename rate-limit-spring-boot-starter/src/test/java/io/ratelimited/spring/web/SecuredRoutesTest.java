package io.ratelimited.spring.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.RateLimitAutoConfiguration;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.security.web.authentication.UsernamePasswordAuthenticationFilter;
import org.springframework.security.web.authentication.logout.LogoutFilter;
import org.springframework.security.web.util.matcher.AnyRequestMatcher;
import org.springframework.security.web.util.matcher.RequestMatcher;

/** Which routes are found on paths that filters of Spring Security answer. */
@ExtendWith(OutputCaptureExtension.class)
class SecuredRoutesTest {

    private final ApplicationContextRunner application = new ApplicationContextRunner()
            .withConfiguration(AutoConfigurations.of(RateLimitAutoConfiguration.class))
            .withPropertyValues("rate-limit.limits.any.rate=1/m", "rate-limit.routes[0].limits=any");

    private final UsernamePasswordAuthenticationFilter login = new UsernamePasswordAuthenticationFilter();

    @Test
    void aRouteOnThePathOfALoginStandsBeforeSecurity(CapturedOutput output) {
        assertThat(isMoved("path=/login")).isTrue();
        assertThat(isMoved("path=login", "methods=post")).isTrue();
        assertThat(output).doesNotContain("WARN");
    }

    @Test
    void aRouteThatSaysWhereItStandsStaysThere(CapturedOutput output) {
        assertThat(isMoved("path=/login", "order=after-security")).isFalse();
        assertThat(isMoved("path=/**", "order=after-security")).isFalse();
        assertThat(output).doesNotContain("WARN");
    }

    @Test
    void otherRoutesStayBehindSecurity(CapturedOutput output) {
        assertThat(isMoved("path=/api/**")).isFalse();
        assertThat(isMoved("path=/login", "methods=get")).isFalse();
        login.setRequiresAuthenticationRequestMatcher(AnyRequestMatcher.INSTANCE);
        assertThat(isMoved("path=/api/**")).isFalse();
        assertThat(output).doesNotContain("WARN");
    }

    @Test
    void aRouteThatReadsThePrincipalIsWarnedOfInstead(CapturedOutput output) {
        assertThat(isMoved("path=/login", "key=principal")).isFalse();
        assertThat(output).contains("WARN", "rate-limit.routes[0] (/login) does not count requests of [/login]");
    }

    @Test
    void aFilterWhosePathNobodyKnowsIsWarnedOf(CapturedOutput output) {
        RequestMatcher own = request -> request.getRequestURI().endsWith("/token");
        login.setRequiresAuthenticationRequestMatcher(own);

        assertThat(isMoved("path=/token")).isFalse();

        assertThat(output)
                .contains("It cannot be known", login.getClass().getName(), "rate-limit.routes[0]", "before-security");
    }

    /** Whether a route stands before security; its properties as in {@code name=value}. */
    private boolean isMoved(String... route) {
        boolean[] moved = new boolean[1];
        application
                .withPropertyValues(
                        Stream.of(route).map("rate-limit.routes[0]."::concat).toArray(String[]::new))
                .run(context -> {
                    RouteLimits routes = context.getBean(RouteLimits.class);
                    LogoutFilter logout = new LogoutFilter("/", (request, response, user) -> {});
                    new SecuredRoutes(routes, () -> Stream.of(login, logout)).afterSingletonsInstantiated();
                    moved[0] = routes.routes().get(0).isBeforeSecurity();
                });
        return moved[0];
    }
}
