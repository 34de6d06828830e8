package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.internals.web.RoutePatterns.Matching;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.http.server.PathContainer;
import org.springframework.web.accept.ApiVersionParser;
import org.springframework.web.accept.SemanticApiVersionParser;

/** Which requests a route counts, without a server. */
class RoutePatternsTest {

    private static final SemanticApiVersionParser SEMANTIC = new SemanticApiVersionParser();

    /** Spring skips everything before the first digit, so it reads version 2 in {@code oauth2} and version 3 in {@code md-3}. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "/oauth2/**     | /v2/login      | false",
                "/oauth2/**     | /2/login       | false",
                "/oauth2/**     | /saml2/login   | false",
                "/oauth2/**     | /oauth2/login  | true",
                "/api-2/**      | /v2/login      | false",
                "/v2/oauth2/**  | /v2/saml2/x    | false",
                "/v2/oauth2/**  | /2/oauth2/x    | true",
                "/v2/**         | /v2/login      | true",
                "/v2/**         | /oauth2/login  | true",
                "/v2/**         | /x02.0/login   | true",
                "/2/**          | /v2/login      | true",
                "/2.0.0/**      | /saml2/login   | true",
                "/version2/**   | /2/login       | true",
                "/Ver2/**       | /2/login       | true",
                "/V2/login      | /2/login       | true",
                "/V2/login      | /2/logout      | false"
            })
    void aSegmentOfARouteIsAVersionOnlyIfItIsWrittenLikeOne(String route, String path, boolean counted) {
        assertThat(isCounted(route, path, SEMANTIC)).isEqualTo(counted);
    }

    @ParameterizedTest
    @CsvSource({"/june/**, /2/login", "/june/**, /june/login"})
    void aParserOfTheApplicationReadsWhatItWants(String route, String path) {
        ApiVersionParser<Integer> months = text -> text.equals("june") ? 2 : Integer.valueOf(text.substring(0, 1));
        assertThat(isCounted(route, path, months)).isTrue();
    }

    /** Nor does one at the end of the route's path. */
    @ParameterizedTest
    @CsvSource({
        "/status,     /status,      false",
        "/status/,    /status,      false",
        "status/,     /status,      false",
        "/status/**/, /status/x,    false",
        "/status/,    /status/x,    true",
        "/status/,    /open,        true",
        "/status,     /STATUS,      true",
        "/,           /,            false",
        "/,           /open,        true"
    })
    void aSlashAtTheEndOfWhatIsExcludedDoesNotMatter(String exclude, String path, boolean counted) {
        RouteProperties route = new RouteProperties("/**", List.of(exclude), null, List.of("any"), null, null);
        assertThat(isCounted(route, path, text -> null)).isEqualTo(counted);
    }

    @ParameterizedTest
    @CsvSource({"GET, true", "HEAD, true", "POST, false"})
    void whoCountsGetCountsHead(String method, boolean counted) {
        RouteProperties route = new RouteProperties("/**", null, List.of("get"), List.of("any"), null, null);
        assertThat(isCounted(List.of(route), method, "/open", text -> null, header -> null))
                .isEqualTo(counted);
    }

    @ParameterizedTest
    @CsvSource({"Authorization, true", "Proxy-Authorization, true", "Cookie, true", "Accept, false"})
    void credentialsAreCountedWhereARouteLeavesRequestsOut(String header, boolean counted) {
        RouteProperties route = new RouteProperties("/**", List.of("/open"), null, List.of("any"), null, null);
        assertThat(isCounted(List.of(route), "GET", "/open", text -> null, name -> name.equals(header) ? "x" : null))
                .isEqualTo(counted);
    }

    /** Only behind a route that counts the same requests before their credentials are checked. */
    @ParameterizedTest
    @CsvSource({
        ",    ,                false",
        "get, BEFORE_SECURITY, false",
        ",    AFTER_SECURITY,  true",
        "post,,                true"
    })
    void guessesAtTheActuatorAreNotCountedBehindARouteThatNamesIt(
            @Nullable String methods, RouteProperties.@Nullable Order order, boolean counted) {
        RouteProperties every = new RouteProperties("/**", null, null, List.of("any"), null, null);
        RouteProperties operators = new RouteProperties(
                "/actuator/**", null, methods == null ? null : List.of(methods), List.of("operators"), null, order);
        Matching matching = matching(
                List.of(every, operators),
                "GET",
                "/actuator/info",
                text -> null,
                name -> name.equals("Authorization") ? "x" : null);
        assertThat(isFirst(matching.counting())).isEqualTo(counted);
        assertThat(matching.exempting()).as("charged afterwards").isEmpty();
    }

    private static boolean isCounted(String route, String path, ApiVersionParser<?> parser) {
        return isCounted(
                new RouteProperties(route, null, null, List.of("any"), null, null), path, text -> parsed(text, parser));
    }

    private static boolean isCounted(RouteProperties route, String path, ApiVersions versions) {
        return isCounted(List.of(route), "GET", path, versions, header -> null);
    }

    private static boolean isCounted(
            List<RouteProperties> routes,
            String method,
            String path,
            ApiVersions versions,
            Function<String, @Nullable String> headers) {
        return isFirst(matching(routes, method, path, versions, headers).counting());
    }

    private static boolean isFirst(List<Route> routes) {
        return routes.stream().anyMatch(route -> route.place().endsWith("[0]"));
    }

    /** Of a request for version 2, if there are versions. */
    private static Matching matching(
            List<RouteProperties> routes,
            String method,
            String path,
            ApiVersions versions,
            Function<String, @Nullable String> headers) {
        Matching[] matching = new Matching[1];
        RouteFilters.limited(
                        new ManualTicker(), "rate-limit.limits.any.rate=1/m", "rate-limit.limits.operators.rate=1/m")
                .run(context -> {
                    RouteLimits limits = RouteFilters.routes(context, routes.toArray(RouteProperties[]::new));
                    matching[0] = new RoutePatterns(limits, () -> List.of("/actuator/**"), versions)
                            .matching(
                                    method,
                                    RequestPaths.of(PathContainer.parsePath(path)),
                                    versions.parse("2"),
                                    headers,
                                    true);
                });
        return matching[0];
    }

    /** As the stacks read it. */
    private static @Nullable Comparable<?> parsed(String text, ApiVersionParser<?> parser) {
        try {
            return parser.parseVersion(text);
        } catch (RuntimeException ex) {
            return null;
        }
    }
}
