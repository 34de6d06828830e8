package io.ratelimited.spring.guide;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.web.Logins;
import io.ratelimited.spring.internals.web.RunningServer;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Where routes stand among the filters of Spring Security, which answers a form login itself. */
@ParameterizedClass
@EnumSource(
        value = Kind.class,
        names = {"TOMCAT", "REACTOR_NETTY"})
@Tag("spring-boot")
@Tag("slow")
class RouteOrderTest {

    private static RunningServer server;

    @BeforeParameterizedClassInvocation
    static void start(Kind kind) throws Exception {
        String[] page = DocPage.section("stop-guessing-passwords.md", "Limit login requests by path")
                .properties();
        String[] more = {
            "spring.security.filter.order=-200",
            "rate-limit.limits.silent.rate=3/m",
            "rate-limit.limits.open.rate=3/m",
            "rate-limit.limits.all.rate=1000/m",
            "rate-limit.routes[1].path=/login",
            "rate-limit.routes[1].limits=silent",
            "rate-limit.routes[2].path=/**",
            "rate-limit.routes[2].limits=all",
            "rate-limit.routes[3].path=/open/**",
            "rate-limit.routes[3].limits=open",
            "rate-limit.routes[3].order=before-security",
            "rate-limit.limits.late.rate=1/m",
            "rate-limit.routes[4].path=/login",
            "rate-limit.routes[4].limits=late",
            "rate-limit.routes[4].order=after-security"
        };
        server = kind.startSecured(
                List.of(Logins.application(kind)),
                Stream.of(page, more).flatMap(Stream::of).toArray(String[]::new));
    }

    @AfterParameterizedClassInvocation
    static void stop() {
        server.close();
    }

    @Parameter
    Kind kind;

    @Test
    void everyRequestOfAFormLoginIsCountedByAnyRouteThatDoesNotReadThePrincipal() {
        for (int i = 0; i < 3; i++) {
            assertThat(Logins.login(server, "ann", i == 0 ? "right" : "wrong"))
                    .startsWith("HTTP/1.1 302")
                    .contains("\"logins\";r=" + (9 - i), "\"silent\";r=" + (2 - i), "\"all\";r=" + (999 - i))
                    .doesNotContain("\"late\"");
        }
        assertThat(Logins.login(server, "ann", "right"))
                .startsWith("HTTP/1.1 429")
                .contains("Retry-After: 20");
        server.ticker().advance(Duration.ofHours(1));
    }

    @Test
    void aRouteBeforeSecurityCountsWhoIsNotKnown() {
        for (int i = 0; i < 3; i++) {
            assertThat(server.get("/open/x").statusCode()).isNotEqualTo(429);
        }
        assertThat(server.get("/open/x").statusCode()).isEqualTo(429);
        server.ticker().advance(Duration.ofHours(1));
    }

    @Test
    void aKeyThatNeedsThePrincipalStopsTheStart() {
        assertThatThrownBy(() -> kind.startSecured(
                        List.of(Logins.application(kind)),
                        "rate-limit.limits.users.rate=1/m",
                        "rate-limit.limits.users.key=principal",
                        "rate-limit.routes[0].path=/login",
                        "rate-limit.routes[0].limits=users",
                        "rate-limit.routes[0].order=before-security"))
                .rootCause()
                .isInstanceOf(InvalidRateLimitException.class)
                .hasMessageContaining("users")
                .hasMessageContaining("rate-limit.routes[0].order")
                .hasMessageContaining("principal");
    }
}
