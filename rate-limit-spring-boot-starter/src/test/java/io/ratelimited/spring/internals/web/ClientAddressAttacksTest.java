package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import jakarta.servlet.Filter;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.web.servlet.ServletContextInitializer;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;
import org.springframework.web.filter.CompositeFilter;
import org.springframework.web.filter.ForwardedHeaderFilter;
import org.springframework.web.server.adapter.ForwardedHeaderTransformer;

/** Callers who forge their address. Each test has a budget of one call. */
@ParameterizedClass
@MethodSource("kinds")
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class ClientAddressAttacksTest {

    @RegisterExtension
    static final SharedServers SERVERS = new SharedServers();

    private static final String XFF = "X-Forwarded-For";

    @Parameter
    Kind kind;

    /** The others are in the proofs. */
    static Stream<Kind> kinds() {
        return Stream.of(Kind.TOMCAT);
    }

    @ParameterizedTest
    @ValueSource(strings = {"none", "framework"})
    void whatIsForgedBeforeTheEntryOfTheProxyBuysNothing(String strategy) {
        RunningServer server = behindAProxy(strategy);
        assertThat(get(server, XFF, "192.0.2.1, 203.0.113.5")).isEqualTo(200);
        assertThat(get(server, XFF, "192.0.2.2, 203.0.113.5")).isEqualTo(429);
        assertThat(get(server, XFF, "192.0.2.3", XFF, "203.0.113.5")).isEqualTo(429);
        assertThat(get(server, "Forwarded", "for=192.0.2.4, for=\"203.0.113.5:1234\";proto=http"))
                .isEqualTo(429);
        assertThat(get(server, XFF, "203.0.113.5, 198.51.100.9")).isEqualTo(200);
    }

    @ParameterizedTest
    @ValueSource(strings = {"none", "framework"})
    void aSecondHeaderThatTheProxyPassesOnIsNotBelieved(String strategy) {
        RunningServer server = behindAProxy(strategy);
        assertThat(get(server, XFF, "203.0.113.5", "Forwarded", "for=203.0.113.5"))
                .isEqualTo(200);
        assertThat(get(server, XFF, "203.0.113.5")).isEqualTo(429);
        assertThat(get(server, XFF, "203.0.113.5", "Forwarded", "for=192.0.2.1"))
                .as("the budget of all whose headers disagree")
                .isEqualTo(200);
        for (int i = 2; i < 5; i++) {
            assertThat(get(server, XFF, "203.0.113.5", "Forwarded", "for=192.0.2." + i))
                    .isEqualTo(429);
            assertThat(get(server, XFF, "192.0.2." + i, "Forwarded", "for=203.0.113.5"))
                    .isEqualTo(429);
        }
        assertThat(get(server)).as("the proxy itself, which checks health").isEqualTo(200);
    }

    /** A key that has used up its limit is exempt nowhere. */
    @Test
    void noHeaderOfACallerFailsTheHealthChecksOfTheProxy() {
        try (RunningServer server = start(
                "trusted-proxies=1",
                "rate-limit.limits.all.rate=1/h",
                "rate-limit.limits.all.key=clientIp",
                "rate-limit.routes[0].path=/**",
                "rate-limit.routes[0].exclude=/health",
                "rate-limit.routes[0].limits=all")) {
            for (String forged : new String[] {"for=192.0.2.1", "for=127.0.0.1", "x", "for=_hidden"}) {
                get(server, XFF, "203.0.113.5", "Forwarded", forged);
            }
            assertThat(get(server, XFF, "203.0.113.5", "Forwarded", "x")).isEqualTo(429);
            assertThat(server.get("/health").statusCode()).isEqualTo(404);
        }
    }

    @Test
    void allHeadersThatAreTooShortOrNoAddressAreOneClient() {
        try (RunningServer server = start("trusted-proxies=2")) {
            assertThat(get(server, XFF, "192.0.2.9")).isEqualTo(200);
            for (String forged :
                    new String[] {"192.0.2.1", "x, 192.0.2.1", "_a, 192.0.2.1", ", 192.0.2.1", "", "1.2.3, 4"}) {
                assertThat(get(server, XFF, forged)).as(forged).isEqualTo(429);
            }
            for (String forged : new String[] {
                "for=192.0.2.1",
                "for=unknown, for=192.0.2.1",
                "by=192.0.2.1, for=1.1.1.1",
                "for=\"192.0.2.1, for=192.0.2.2, for=192.0.2.3"
            }) {
                assertThat(get(server, "Forwarded", forged)).as(forged).isEqualTo(429);
            }
            assertThat(get(server)).as("the proxy itself").isEqualTo(200);
            assertThat(get(server, XFF, "192.0.2.1, 203.0.113.5, 198.51.100.1")).isEqualTo(200);
            assertThat(get(server, XFF, "192.0.2.2, 203.0.113.5, 198.51.100.2")).isEqualTo(429);
        }
    }

    @Test
    void onlyProxiesOfTheNetworksAreBelieved() {
        try (RunningServer server = start("trusted-proxies=127.0.0.0/8, ::1, 10.0.0.0/8")) {
            assertThat(get(server, XFF, "192.0.2.1, 203.0.113.5, 10.1.2.3, 10.3.2.1"))
                    .isEqualTo(200);
            assertThat(get(server, XFF, "192.0.2.2, 203.0.113.5, 10.9.9.9")).isEqualTo(429);
            assertThat(get(server, XFF, "192.0.2.2, 203.0.113.5")).isEqualTo(429);
            assertThat(get(server, XFF, "10.5.5.5")).isEqualTo(200);
            assertThat(get(server, XFF, "forged, 10.5.5.5"))
                    .as("not the proxy that wrote it")
                    .isEqualTo(200);
            assertThat(get(server, XFF, "forged, 10.6.6.6")).isEqualTo(429);
        }
        try (RunningServer server = start("trusted-proxies=10.0.0.0/8")) {
            assertThat(get(server, XFF, "192.0.2.1")).isEqualTo(200);
            assertThat(get(server, XFF, "192.0.2.2")).as("the peer is no proxy").isEqualTo(429);
        }
    }

    @Test
    void mappedAddressesAreTheirIpv4Address() {
        requireMappedAddresses(behindAProxy("none"));
        requireMappedAddresses(believing());
    }

    private static void requireMappedAddresses(RunningServer server) {
        assertThat(get(server, XFF, "::ffff:203.0.113.5")).isEqualTo(200);
        assertThat(get(server, XFF, "203.0.113.5")).isEqualTo(429);
        assertThat(get(server, XFF, "[::ffff:cb00:7105]")).isEqualTo(429);
        assertThat(get(server, XFF, "::ffff:198.51.100.9")).isEqualTo(200);
        assertThat(get(server, XFF, "::1")).isEqualTo(200);
        assertThat(get(server, XFF, "2001:db8::1")).isEqualTo(200);
        assertThat(get(server, XFF, "2001:db8::ffff:2")).isEqualTo(429);
    }

    @Test
    void anAddressThatCarriesAnIpv4AddressIsThatClient() {
        requireTranslatedAddresses(behindAProxy("none"), "203.0.113.50", "203.0.113.51");
        requireTranslatedAddresses(believing(), "203.0.113.50", "203.0.113.51");
        try (RunningServer server =
                start("trusted-proxies=1", "rate-limit.http.translation-prefixes=2001:db8:64::/96, 2001:db8:65::/96")) {
            assertThat(get(server, XFF, "2001:db8:65::203.0.113.50")).isEqualTo(200);
            assertThat(get(server, XFF, "2001:db8:64::203.0.113.51")).isEqualTo(200);
            assertThat(get(server, XFF, "203.0.113.50")).isEqualTo(429);
        }
    }

    /** Each address has a budget, whatever carries it, and no budget is of two addresses. */
    private static void requireTranslatedAddresses(RunningServer server, String one, String other) {
        assertThat(get(server, XFF, "64:ff9b::" + one)).isEqualTo(200);
        assertThat(get(server, XFF, "64:ff9b::" + other)).isEqualTo(200);
        for (String carrier : new String[] {"", "64:ff9b::", "64:ff9b:1::", "::", "::ffff:", "::ffff:0:"}) {
            assertThat(get(server, XFF, carrier + one)).as(carrier).isEqualTo(429);
        }
        for (String sixToFour : new String[] {"2002:cb00:7132::1", "2002:cb00:7132:ffff::1"}) {
            assertThat(get(server, XFF, sixToFour)).as(sixToFour).isEqualTo(429);
        }
        assertThat(get(server, XFF, "::203.0.113.52")).isEqualTo(200);
        assertThat(get(server, XFF, "::203.0.113.53")).isEqualTo(200);
    }

    @Test
    void aServerThatReadsTheHeadersItselfStopsTheStart() {
        for (String setting : new String[] {
            "server.forward-headers-strategy=native",
            "spring.main.cloud-platform=kubernetes",
            "server.tomcat.remoteip.remote-ip-header=X-Real-IP"
        }) {
            assertThatThrownBy(() -> start("trusted-proxies=1", setting).close())
                    .satisfies(failure -> assertThat(root(failure))
                            .isInstanceOf(InvalidRateLimitException.class)
                            .hasMessageContaining("rate-limit.http.trusted-proxies")
                            .hasMessageContaining(setting.replaceAll("(-ip-header)=.*|.*=kubernetes", "$1"))
                            .extracting(ex -> ((InvalidRateLimitException) ex).remedy())
                            .asString()
                            .contains("server.forward-headers-strategy", "framework"));
        }
    }

    /** A network of all addresses trusts the clients, too. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "0",
                "1, 2",
                "10.0.0.0/33",
                "proxy.example",
                "::1/129",
                "0.0.0.0/0",
                "10.0.0.0/8, ::/0",
                "::ffff:0.0.0.0/96"
            })
    void whatIsNeitherHopsNorNetworksOfProxiesIsInvalid(String written) {
        assertThatThrownBy(() -> TrustedProxies.of(List.of(written.split(", ", -1))))
                .isInstanceOf(InvalidRateLimitException.class)
                .hasMessageContaining("Property rate-limit.http.trusted-proxies is ");
    }

    @Test
    void whatIsInvalidStopsTheStart() {
        assertThatThrownBy(() -> start("trusted-proxies=1, 2").close())
                .satisfies(failure -> assertThat(root(failure))
                        .isInstanceOf(InvalidRateLimitException.class)
                        .hasMessageContaining(
                                "Property rate-limit.http.trusted-proxies is \"1, 2\", but must be one number"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"none", "native", "framework"})
    void whereTheServerTakesTheLeftmostEntryTheStartWarns(String strategy, CapturedOutput output) {
        boolean leftmost = strategy.equals("framework") || (strategy.equals("native") && kind != Kind.TOMCAT);
        try (RunningServer server = start("server.forward-headers-strategy=" + strategy)) {
            assertThat(output.toString().contains("clientIp is the leftmost address of X-Forwarded-For"))
                    .isEqualTo(leftmost);
            if (leftmost) {
                assertThat(output).contains("rate-limit.http.trusted-proxies", "WARN");
            }
            assertThat(get(server, XFF, "192.0.2.1, 203.0.113.5")).isEqualTo(200);
            assertThat(get(server, XFF, "192.0.2.2, 203.0.113.5")).isEqualTo(leftmost ? 200 : 429);
        }
    }

    @Test
    void aBeanThatTakesTheLeftmostEntryIsReportedAtTheStart(CapturedOutput output) {
        List<Class<?>> beans = kind == Kind.REACTOR_NETTY
                ? List.of(TransformerBean.class)
                : List.of(FilterBean.class, FilterSubclass.class, RegisteredFilter.class, ContextFilter.class);
        for (Class<?> bean : beans) {
            int before = output.length();
            try (RunningServer server = kind.start(List.of(application().get(0), bean))) {
                assertThat(output.toString().substring(before))
                        .as(bean.getSimpleName())
                        .containsOnlyOnce("clientIp is the leftmost address of X-Forwarded-For")
                        .contains("[RL-212]", kind == Kind.REACTOR_NETTY ? "Transformer" : "ForwardedHeaderFilter");
                for (int i = 0; i < 3; i++) {
                    assertThat(get(server, XFF, "192.0.2." + i)).isEqualTo(200);
                }
            }
            before = output.length();
            try (RunningServer server =
                    kind.start(List.of(application().get(0), bean), "rate-limit.http.trusted-proxies=1")) {
                assertThat(output.toString().substring(before)).doesNotContain("RL-212");
                assertThat(get(server, XFF, "192.0.2.1, 203.0.113.5")).isEqualTo(200);
                assertThat(get(server, XFF, "192.0.2.2, 203.0.113.5")).isEqualTo(429);
            }
        }
    }

    @Test
    void aFilterThatNoServerKnowsIsReportedAtItsFirstRequest(CapturedOutput output) {
        if (kind != Kind.REACTOR_NETTY) {
            try (RunningServer server = kind.start(List.of(application().get(0), FilterWithinAnother.class))) {
                assertThat(get(server)).isEqualTo(200);
                assertThat(output).doesNotContain("RL-212");
                assertThat(get(server, XFF, "192.0.2.1")).isEqualTo(200);
                assertThat(get(server, XFF, "192.0.2.2")).isEqualTo(200);
            }
            assertThat(output)
                    .containsOnlyOnce("because a ForwardedHeaderFilter has read them")
                    .contains("[RL-212]");
        }
    }

    @Test
    void aTransformerThatOnlyRemovesHeadersIsNotReported(CapturedOutput output) {
        if (kind == Kind.REACTOR_NETTY) {
            try (RunningServer server = kind.start(List.of(application().get(0), RemovingTransformer.class))) {
                assertThat(get(server, XFF, "192.0.2.1")).isEqualTo(200);
                assertThat(get(server, XFF, "192.0.2.2")).isEqualTo(429);
            }
            assertThat(output).doesNotContain("RL-212");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class FilterBean {

        @Bean
        ForwardedHeaderFilter forwarded() {
            return new ForwardedHeaderFilter();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class FilterSubclass {

        @Bean
        Filter forwarded() {
            return new ForwardedHeaderFilter() {};
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class RegisteredFilter {

        @Bean
        FilterRegistrationBean<ForwardedHeaderFilter> forwarded() {
            FilterRegistrationBean<ForwardedHeaderFilter> filter =
                    new FilterRegistrationBean<>(new ForwardedHeaderFilter());
            filter.setOrder(Ordered.HIGHEST_PRECEDENCE);
            return filter;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ContextFilter {

        @Bean
        ServletContextInitializer forwarded() {
            return servlets -> servlets.addFilter("forwarded", new ForwardedHeaderFilter())
                    .addMappingForUrlPatterns(null, false, "/*");
        }
    }

    /** As in a chain of Spring Security. */
    @Configuration(proxyBeanMethods = false)
    static class FilterWithinAnother {

        @Bean
        CompositeFilter forwarded() {
            CompositeFilter filters = new CompositeFilter();
            filters.setFilters(List.of(new ForwardedHeaderFilter()));
            return filters;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class TransformerBean {

        @Bean
        ForwardedHeaderTransformer forwardedHeaderTransformer() {
            return new ForwardedHeaderTransformer();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class RemovingTransformer {

        @Bean
        ForwardedHeaderTransformer forwardedHeaderTransformer() {
            ForwardedHeaderTransformer removing = new ForwardedHeaderTransformer();
            removing.setRemoveOnly(true);
            return removing;
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {XFF, "Forwarded"})
    void aProxyThatIsNotTrustedIsReportedOnce(String header, CapturedOutput output) {
        try (RunningServer server = start()) {
            get(server);
            assertThat(output).doesNotContain("is not set: clientIp");
            get(server, header, "for=203.0.113.5");
            get(server, header, "for=203.0.113.6");
        }
        assertThat(output)
                .containsOnlyOnce(
                        "A request has " + header + ", and rate-limit.http.trusted-proxies is not set: clientIp is")
                .contains("If no proxy is in front", "set rate-limit.http.trusted-proxies to the number");
    }

    @Test
    void aProxyThatIsTrustedIsNotReported(CapturedOutput output) {
        get(behindAProxy("none"), XFF, "203.0.113.7");
        assertThat(output).doesNotContain("is not set: clientIp");
    }

    private static Throwable root(Throwable failure) {
        return failure.getCause() == null ? failure : root(failure.getCause());
    }

    private RunningServer behindAProxy(String strategy) {
        return SERVERS.get(
                kind,
                application(),
                "server.forward-headers-strategy=" + strategy,
                "rate-limit.http.trusted-proxies=1");
    }

    /** The server itself takes the address from the fields. */
    private RunningServer believing() {
        return SERVERS.get(kind, application(), "server.forward-headers-strategy=native");
    }

    private RunningServer start(String... settings) {
        return kind.start(
                application(),
                Stream.of(settings)
                        .map(setting -> setting.startsWith("trusted") ? "rate-limit.http." + setting : setting)
                        .toArray(String[]::new));
    }

    private List<Class<?>> application() {
        return List.of(kind == Kind.REACTOR_NETTY ? ReactiveApp.class : ServletApp.class);
    }

    private static int get(RunningServer server, String... headers) {
        return server.get("/ip", headers).statusCode();
    }
}
