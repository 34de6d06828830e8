package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import java.util.List;
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
        "/,           /,            false",
        "/,           /open,        true"
    })
    void aSlashAtTheEndOfWhatIsExcludedDoesNotMatter(String exclude, String path, boolean counted) {
        RouteProperties route = new RouteProperties("/**", List.of(exclude), null, List.of("any"), null, null);
        assertThat(isCounted(route, path, text -> null)).isEqualTo(counted);
    }

    private static boolean isCounted(String route, String path, ApiVersionParser<?> parser) {
        return isCounted(
                new RouteProperties(route, null, null, List.of("any"), null, null), path, text -> parsed(text, parser));
    }

    /** Of a request for version 2, if there are versions. */
    private static boolean isCounted(RouteProperties route, String path, ApiVersions versions) {
        boolean[] counted = new boolean[1];
        RouteFilters.limited(new ManualTicker(), "rate-limit.limits.any.rate=1/m")
                .run(context -> counted[0] = !new RoutePatterns(RouteFilters.routes(context, route), List::of, versions)
                        .matching(
                                "GET",
                                RequestPaths.of(PathContainer.parsePath(path)),
                                versions.parse("2"),
                                header -> null,
                                true)
                        .counting()
                        .isEmpty());
        return counted[0];
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
