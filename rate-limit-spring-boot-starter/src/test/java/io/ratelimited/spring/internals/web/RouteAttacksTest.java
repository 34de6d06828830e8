package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.tomcat.TomcatConnectorCustomizer;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.filter.UrlHandlerFilter;
import org.springframework.web.reactive.config.WebFluxConfigurer;
import org.springframework.web.servlet.config.annotation.ApiVersionConfigurer;
import org.springframework.web.servlet.config.annotation.PathMatchConfigurer;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;
import org.springframework.web.util.pattern.PathPatternParser;

/** Callers who spell a path so that its handler is reached and its route is not. */
@ParameterizedClass
@MethodSource("kinds")
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class RouteAttacksTest {

    @RegisterExtension
    static final SharedServers SERVERS = new SharedServers();

    private static final AtomicInteger CALLS = new AtomicInteger();

    private static final String[] ROUTE = {
        "rate-limit.limits.all.rate=1/h",
        "rate-limit.routes[0].path=/api/x",
        "rate-limit.routes[0].limits=all",
        // Some spellings lead through a path of the actuator.
        "management.endpoints.web.exposure.include=health"
    };

    private static final List<String> SPELLINGS = List.of(
            "/api/x",
            "/API/x",
            "/api/X",
            "/api/x/",
            "/api/x//",
            "//api/x",
            "/api//x",
            "///api///x///",
            "/;a/api/x",
            "/api;a=b/x",
            "/api/x;a",
            "/;/api/x",
            "/api/;a/x",
            "/api/x/;a",
            "/%61pi/x",
            "/%2561pi/x",
            "/api%2Fx",
            "/api%2fx",
            "/%2Fapi/x",
            "/api/x%2F",
            "/api/x%20",
            "/api/x%00",
            "/./api/x",
            "/api/./x",
            "/a/../api/x",
            "/api/a/../x",
            "/%2e/api/x",
            "/a/%2e%2e/api/x",
            "/a/..;/api/x",
            "/open/../api/x",
            "/open/..;/api/x",
            "/open/%2e%2e/api/x",
            "/open/%2e%2e%2fapi/x",
            "/open/..%2fapi/x",
            "/actuator/health/../../api/x",
            "/actuator/health/..;/..;/api/x",
            "/actuator/health/%2e%2e/%2e%2e/api/x",
            "/api/x?a",
            "/api/x#a",
            "/api\\x",
            "/api/x.json",
            "http://localhost/api/x",
            "http://localhost//api/x");

    @Parameter
    Kind kind;

    /** The others are in the proofs. */
    static Stream<Kind> kinds() {
        return Stream.of(Kind.TOMCAT);
    }

    @BeforeEach
    void nobodyHasCalled() {
        CALLS.set(0);
    }

    @Test
    void noSpellingReachesAHandlerWhoseRouteIsExhausted() throws IOException {
        for (Class<?> options : List.of(Plain.class, anyCase(), slashes())) {
            requireNoWayAround(shared(options), options.getSimpleName());
            if (kind != Kind.REACTOR_NETTY) {
                try (RunningServer server =
                        start(List.of(options), "spring.mvc.pathmatch.matching-strategy=ant-path-matcher")) {
                    requireNoWayAround(server, options.getSimpleName() + " with an AntPathMatcher");
                }
            }
        }
    }

    /** Tomcat can be told to leave slashes encoded, and a mapping of Ant patterns decodes them then. */
    @Test
    void whatTheServerLeavesEncodedIsNoWayAround() throws IOException {
        if (kind == Kind.TOMCAT) {
            try (RunningServer server =
                    start(List.of(EncodedSlashes.class), "spring.mvc.pathmatch.matching-strategy=ant-path-matcher")) {
                requireNoWayAround(server, "encoded slashes");
            }
        }
    }

    private static void requireNoWayAround(RunningServer server, String options) throws IOException {
        CALLS.set(0);
        assertThat(raw(server, "/api/x")).startsWith("HTTP/1.1 200");
        for (String spelling : SPELLINGS) {
            assertThat(raw(server, spelling)).as(spelling).doesNotStartWith("HTTP/1.1 500");
            assertThat(CALLS).as("%s %s", options, spelling).hasValue(1);
        }
    }

    @Test
    void whatTheApplicationAcceptsIsTheSameHandler() throws IOException {
        RunningServer anyCase = shared(anyCase());
        assertThat(raw(anyCase, "/API/x")).startsWith("HTTP/1.1 200");
        assertThat(raw(anyCase, "/api/x")).startsWith("HTTP/1.1 429");
        RunningServer slashes = shared(slashes());
        assertThat(raw(slashes, "/api/x/")).startsWith("HTTP/1.1 200");
        assertThat(raw(slashes, "/api/x")).startsWith("HTTP/1.1 429");
    }

    @Test
    void aPathBeforeTheHandlersIsNoWayAround(CapturedOutput output) throws IOException {
        String setting = kind == Kind.REACTOR_NETTY ? "spring.webflux.base-path=/srv" : "spring.mvc.servlet.path=/srv";
        try (RunningServer server = start(List.of(Plain.class), setting)) {
            assertThat(raw(server, "/srv/api/x")).startsWith("HTTP/1.1 200");
            for (String spelling : SPELLINGS) {
                if (spelling.startsWith("/")) {
                    raw(server, "/srv" + spelling);
                    assertThat(CALLS).as(spelling).hasValue(1);
                }
            }
            assertThat(raw(server, "/srv/api/x")).startsWith("HTTP/1.1 429");
        }
        assertThat(output).doesNotContain("no handler");
        if (kind != Kind.REACTOR_NETTY) {
            CALLS.set(0);
            try (RunningServer server = start(List.of(Plain.class), setting, "rate-limit.routes[0].path=/srv/api/**")) {
                assertThat(raw(server, "/srv/api/x")).startsWith("HTTP/1.1 200");
                assertThat(raw(server, "/srv//api/x")).startsWith("HTTP/1.1 4");
                assertThat(raw(server, "/srv/api/x")).startsWith("HTTP/1.1 429");
            }
        }
    }

    @Test
    void anOddContextPathIsNoFailureOfTheFilter(CapturedOutput output) throws IOException {
        if (kind == Kind.REACTOR_NETTY) {
            return;
        }
        for (String strategy : List.of("path-pattern-parser", "ant-path-matcher")) {
            CALLS.set(0);
            try (RunningServer server = start(
                    List.of(Plain.class),
                    "server.servlet.context-path=/ctx",
                    "spring.mvc.pathmatch.matching-strategy=" + strategy)) {
                assertThat(raw(server, "/ctx/api/x")).startsWith("HTTP/1.1 200");
                for (String context : List.of("//ctx", "/;a/ctx", "/ctx;a", "/./ctx", "/a/../ctx", "/%63tx", "/ctx/")) {
                    raw(server, context + "/api/x");
                    assertThat(CALLS).as(context).hasValue(1);
                }
                assertThat(raw(server, "/ctx/api/x")).startsWith("HTTP/1.1 429");
            }
        }
        assertThat(output).doesNotContain("at io.ratelimited.spring.internals.web.servlet");
    }

    @Test
    void whatIsExcludedIsNotCounted() throws IOException {
        try (RunningServer server =
                start(List.of(Plain.class), "rate-limit.routes[0].path=/**", "rate-limit.routes[0].exclude=/open/**")) {
            for (int i = 0; i < 3; i++) {
                assertThat(raw(server, "/open/x")).startsWith("HTTP/1.1 200");
            }
            assertThat(raw(server, "/api/x")).startsWith("HTTP/1.1 200");
            for (String spelling : SPELLINGS) {
                raw(server, spelling);
                assertThat(CALLS).as(spelling).hasValue(1);
            }
            if (kind == Kind.TOMCAT) {
                assertThat(raw(server, "/open/..;/api/x"))
                        .as("Tomcat reads /api/x")
                        .startsWith("HTTP/1.1 429");
            }
        }
    }

    /** It may serve any path below its own, whatever the handlers of Spring MVC are. */
    @Test
    void whatIsExcludedIsCountedBelowAnotherServlet() throws IOException {
        if (kind == Kind.REACTOR_NETTY) {
            return;
        }
        try (RunningServer server = start(
                List.of(OtherServlet.class),
                "rate-limit.routes[0].path=/**",
                "rate-limit.routes[0].exclude=/css/**",
                "management.endpoint.health.probes.add-additional-paths=true")) {
            assertThat(raw(server, "/css/a.css")).startsWith("HTTP/1.1 404");
            assertThat(raw(server, "/livez")).startsWith("HTTP/1.1 200");
            assertThat(raw(server, "/other/x")).startsWith("HTTP/1.1 200");
            for (String path : List.of("/css/x", "/livez", "/actuator/health", "/actuator/health/x")) {
                assertThat(raw(server, "/other" + path)).as(path).startsWith("HTTP/1.1 429");
            }
            assertThat(raw(server, "/other/..;/css/x")).startsWith("HTTP/1.1 4");
        }
        try (RunningServer server = start(
                List.of(Plain.class),
                "spring.mvc.servlet.path=/srv",
                "rate-limit.routes[0].path=/**",
                "rate-limit.routes[0].exclude=/open/**")) {
            assertThat(raw(server, "/srv/api/x")).startsWith("HTTP/1.1 200");
            assertThat(raw(server, "/srv/open/x")).startsWith("HTTP/1.1 200");
            assertThat(raw(server, "/srv/actuator/health")).startsWith("HTTP/1.1 200");
            assertThat(raw(server, "/srv/api/x")).startsWith("HTTP/1.1 429");
        }
    }

    @Test
    void aRouteNamesTheActuatorWithOrWithoutThePathOfTheDispatcherServlet() throws IOException {
        if (kind == Kind.REACTOR_NETTY) {
            return;
        }
        for (String path : List.of("/actuator/**", "/srv/actuator/**")) {
            try (RunningServer server = start(
                    List.of(Plain.class),
                    "spring.mvc.servlet.path=/srv",
                    "rate-limit.routes[0].path=/**",
                    "rate-limit.limits.operators.rate=2/h",
                    "rate-limit.routes[1].path=" + path,
                    "rate-limit.routes[1].limits=operators")) {
                for (int i = 0; i < 2; i++) {
                    assertThat(raw(server, "/srv/actuator/health", "Authorization: Basic YTpi"))
                            .as(path)
                            .startsWith("HTTP/1.1 200");
                }
                assertThat(raw(server, "/srv/actuator/health")).as(path).startsWith("HTTP/1.1 429");
                assertThat(raw(server, "/srv/api/x")).as(path).startsWith("HTTP/1.1 200");
            }
        }
    }

    @Test
    void theActuatorIsCountedOnlyByARouteThatNamesIt() throws IOException {
        try (RunningServer server = start(
                List.of(Plain.class),
                "rate-limit.routes[0].path=/**",
                "management.health.defaults.enabled=false",
                "management.endpoints.web.exposure.include=health,ratelimits",
                "management.endpoint.health.probes.add-additional-paths=true",
                "rate-limit.limits.health.rate=2/h",
                "rate-limit.routes[1].path=/actuator/health/**",
                "rate-limit.routes[1].limits=health")) {
            assertThat(raw(server, "/api/x")).startsWith("HTTP/1.1 200");
            assertThat(raw(server, "/api/x")).startsWith("HTTP/1.1 429");
            assertThat(raw(server, "/livez")).startsWith("HTTP/1.1 200");
            assertThat(raw(server, "/actuator")).startsWith("HTTP/1.1 200");
            assertThat(raw(server, "/actuator/ratelimits")).startsWith("HTTP/1.1 200");
            assertThat(raw(server, "/actuator/health")).startsWith("HTTP/1.1 200");
            assertThat(raw(server, "/actuator/health/")).startsWith("HTTP/1.1 200");
            assertThat(raw(server, "/actuator/health")).startsWith("HTTP/1.1 429");
        }
    }

    /** Spring Boot serves the additional paths of health groups there, so that a probe asks the port that has the load. */
    @Test
    void probesOfTheApplicationsPortAreNotCountedNextToAManagementPort() throws IOException {
        try (RunningServer server = start(
                List.of(Plain.class),
                "rate-limit.routes[0].path=/**",
                "management.server.port=0",
                "management.endpoint.health.probes.add-additional-paths=true")) {
            assertThat(raw(server, "/livez")).startsWith("HTTP/1.1 200");
            assertThat(raw(server, "/api/x")).startsWith("HTTP/1.1 200");
            assertThat(raw(server, "/livez")).startsWith("HTTP/1.1 200");
            assertThat(raw(server, "/readyz")).startsWith("HTTP/1.1 200");
            assertThat(raw(server, "/actuator/health"))
                    .as("not served on this port")
                    .startsWith("HTTP/1.1 429");
        }
    }

    /** A handler of a gateway hands the path on as it was sent. */
    @Test
    void noSpellingReachesABackendPastItsRoute() throws IOException {
        try (RunningServer server = start(List.of(Plain.class), "rate-limit.routes[0].path=/gw/api/login")) {
            assertThat(raw(server, "/gw/api/login")).startsWith("HTTP/1.1 200");
            for (String spelling : List.of(
                    "/gw/api//../login",
                    "/gw//../api/login",
                    "/gw/api/;/../login",
                    "/gw/x//../../api/login",
                    "/gw/api//%2e%2e/login",
                    "/gw/x%2Fy/../api/login",
                    "/gw/api%2Flogin",
                    "/gw/api/%252e/login",
                    "/gw/api/a/%252e%252e/login",
                    "/gw/api%3Ba/login")) {
                raw(server, spelling);
                assertThat(CALLS).as(spelling).hasValue(1);
            }
        }
    }

    /** Spring reads a version's text up to what is the same version, in any letter before it and any zeros. */
    @Test
    void noSpellingOfAnApiVersionReachesAHandlerWhoseRouteIsExhausted() throws IOException {
        for (Class<?> of : List.of(Versioned.class, versionsOfHeaderToo())) {
            CALLS.set(0);
            try (RunningServer server = startVersioned(of, "/v1/login")) {
                assertThat(raw(server, "/v1/login")).startsWith("HTTP/1.1 200");
                for (String spelling : List.of("1", "1.0", "v1.0", "v1.0.0", "v01", "x1", "V1", "%761", "v%31")) {
                    raw(server, "/" + spelling + "/login");
                    assertThat(CALLS).as("%s %s", of, spelling).hasValue(1);
                }
                raw(server, "/anything/login", "API-Version: 1.0");
                assertThat(CALLS).as("the version in a header").hasValue(1);
                assertThat(raw(server, "/v2/login")).as("another version").startsWith("HTTP/1.1 200");
                assertThat(raw(server, "/2/login")).startsWith("HTTP/1.1 200");
                assertThat(raw(server, "/1/logout")).as("another path").startsWith("HTTP/1.1 200");
                assertThat(raw(server, "/x1/login")).startsWith("HTTP/1.1 429");
            }
        }
    }

    /** Mappings may change, and filters may answer: who reads the segment is not known. */
    @Test
    void aVersionThatIsNotInThePathMayHaveAnySegmentInItsPlace() throws IOException {
        String prefix = kind == Kind.REACTOR_NETTY ? "spring.webflux.apiversion" : "spring.mvc.apiversion";
        try (RunningServer server = start(
                List.of(UnversionedApi.class),
                "rate-limit.routes[0].path=/v1/login",
                prefix + ".use.header=API-Version",
                prefix + ".supported=2",
                prefix + ".default=1")) {
            assertThat(raw(server, "/v1/login")).startsWith("HTTP/1.1 200");
            assertThat(raw(server, "/admin/login")).startsWith("HTTP/1.1 429");
            assertThat(raw(server, "/admin/login", "API-Version: 2")).startsWith("HTTP/1.1 200");
            assertThat(raw(server, "/admin/logout")).startsWith("HTTP/1.1 200");
        }
    }

    @Test
    void aRouteOfAnyVersionCountsAll() throws IOException {
        try (RunningServer server = startVersioned(Versioned.class, "/{version}/login")) {
            assertThat(raw(server, "/v1/login")).startsWith("HTTP/1.1 200");
            assertThat(raw(server, "/v2/login")).startsWith("HTTP/1.1 429");
            assertThat(raw(server, "/01/login")).startsWith("HTTP/1.1 429");
        }
    }

    private RunningServer startVersioned(Class<?> options, String route) {
        String prefix = kind == Kind.REACTOR_NETTY ? "spring.webflux.apiversion" : "spring.mvc.apiversion";
        return start(
                List.of(VersionedApi.class, options),
                "rate-limit.routes[0].path=" + route,
                prefix + ".use.path-segment=0");
    }

    private Class<?> versionsOfHeaderToo() {
        return kind == Kind.REACTOR_NETTY ? ReactiveHeaderVersions.class : HeaderVersions.class;
    }

    private RunningServer start(List<Class<?>> options, String... settings) {
        List<Class<?>> sources = new ArrayList<>(List.of(App.class));
        sources.addAll(options);
        List<String> all = new ArrayList<>(List.of(ROUTE));
        all.addAll(List.of(settings));
        return kind.start(sources, all.toArray(String[]::new));
    }

    private RunningServer shared(Class<?> options) {
        return SERVERS.get(kind, List.of(App.class, options), ROUTE);
    }

    private Class<?> anyCase() {
        return kind == Kind.REACTOR_NETTY ? ReactiveAnyCase.class : AnyCase.class;
    }

    private Class<?> slashes() {
        return kind == Kind.REACTOR_NETTY ? ReactiveSlashes.class : Slashes.class;
    }

    /** The head of the response to a path that no client has cleaned up. */
    private static String raw(RunningServer server, String path, String... headers) throws IOException {
        try (Socket socket = server.connect()) {
            socket.setSoTimeout(20_000);
            socket.getOutputStream()
                    .write(("GET " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                    + String.join("\r\n", headers) + (headers.length == 0 ? "" : "\r\n") + "\r\n")
                            .getBytes(StandardCharsets.US_ASCII));
            return new String(socket.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Api.class)
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    @RestController
    static class Api {

        @GetMapping("/api/x")
        String limited() {
            CALLS.incrementAndGet();
            return "x";
        }

        @GetMapping("/gw/**")
        String gateway() {
            CALLS.incrementAndGet();
            return "gateway";
        }

        @GetMapping("/open/{name}")
        String open() {
            return "open";
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Plain {}

    /** Answers every path below its own. */
    @Configuration(proxyBeanMethods = false)
    static class OtherServlet {

        @Bean
        ServletRegistrationBean<HttpServlet> other() {
            return new ServletRegistrationBean<>(
                    new HttpServlet() {
                        private static final long serialVersionUID = 1;

                        @Override
                        protected void doGet(HttpServletRequest request, HttpServletResponse response) {
                            response.setStatus(200);
                        }
                    },
                    "/other/*");
        }
    }

    @RestController
    static class UnversionedApi {

        @GetMapping({"/v1/login", "/admin/login", "/admin/logout"})
        String any() {
            return "any";
        }
    }

    @RestController
    static class VersionedApi {

        @GetMapping(path = "/{version}/login", version = "1")
        String login() {
            CALLS.incrementAndGet();
            return "first";
        }

        @GetMapping(path = "/{version}/login", version = "2")
        String newLogin() {
            return "second";
        }

        @GetMapping(path = "/{version}/logout", version = "1")
        String logout() {
            return "bye";
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Versioned {}

    @Configuration(proxyBeanMethods = false)
    static class HeaderVersions implements WebMvcConfigurer {

        @Override
        public void configureApiVersioning(ApiVersionConfigurer versions) {
            versions.useRequestHeader("API-Version");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ReactiveHeaderVersions implements WebFluxConfigurer {

        @Override
        public void configureApiVersioning(org.springframework.web.reactive.config.ApiVersionConfigurer versions) {
            versions.useRequestHeader("API-Version");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class AnyCase implements WebMvcConfigurer {

        @Override
        public void configurePathMatch(PathMatchConfigurer paths) {
            PathPatternParser parser = new PathPatternParser();
            parser.setCaseSensitive(false);
            paths.setPatternParser(parser);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ReactiveAnyCase implements WebFluxConfigurer {

        @Override
        public void configurePathMatching(org.springframework.web.reactive.config.PathMatchConfigurer paths) {
            paths.setUseCaseSensitiveMatch(false);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Slashes {

        @Bean
        UrlHandlerFilter slashes() {
            return UrlHandlerFilter.trailingSlashHandler("/**").wrapRequest().build();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class EncodedSlashes {

        @Bean
        TomcatConnectorCustomizer encodedSlashes() {
            return connector -> connector.setEncodedSolidusHandling("passthrough");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ReactiveSlashes {

        @Bean
        org.springframework.web.filter.reactive.UrlHandlerFilter slashes() {
            return org.springframework.web.filter.reactive.UrlHandlerFilter.trailingSlashHandler("/**")
                    .mutateRequest()
                    .build();
        }
    }
}
