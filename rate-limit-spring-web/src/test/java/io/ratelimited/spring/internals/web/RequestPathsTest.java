package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.http.server.PathContainer;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;

/** The readings of a path that no server has decoded. */
class RequestPathsTest {

    private static final PathPattern LIMITED = PathPatternParser.defaultInstance.parse("/api/**");
    private static final PathPattern OPEN = PathPatternParser.defaultInstance.parse("/open/**");

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/open/../api/x",
                "/open/..//api/x",
                "/open/..;a=b/api/x",
                "/open/a/b/../.././../api/x",
                "/open/%2e%2e/api/x",
                "/open/.%2E/api/x",
                "/open/../api/.%2E",
                "/open/..//api/%2e%2e",
                "/open/../api/.%252E",
                "/open/..%2fapi/x",
                "/open/..%5Capi/x",
                "/open/../%61pi/x",
                "/open/../../../api/x",
                "/open//../../api/x",
                "/open/x//../../../api/x",
                "/open/;/../../api/x",
                "/open/a%2Fb/../../api/x",
                "/open/a\\b/../../api/x",
                "/open/a%5Cb/../../api/x",
                "/open/a%252Fb/../../api/x",
                "/open/%252e%252e/api/x",
                "/open/%252e%252e%252fapi/x",
                "/open/..%255Capi/x",
                "/open/..%3Ba/api/x",
                "/open/%2e%2E;a/api/x"
            })
    void whatAServerBehindAGatewayResolvesIsCounted(String sent) {
        RequestPaths paths = of(sent);
        assertThat(paths.mayMatch(LIMITED)).isTrue();
        assertThat(paths.mayMatch(OPEN)).as("the handler of the gateway").isTrue();
        assertThat(paths.mustMatch(OPEN)).as("excluded").isFalse();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "/open/x.json",
                "/open/...",
                "/open/a%2Fb",
                "/open/..a",
                "/open/J%C3%BCrgen",
                "/open/x/./y",
                "/open/x/../y"
            })
    void whatStaysInItsPlaceIsExcludedStill(String sent) {
        RequestPaths paths = of(sent);
        assertThat(paths.mustMatch(OPEN)).isTrue();
        assertThat(paths.mayMatch(LIMITED)).isFalse();
    }

    /** A server behind a gateway drops empty segments before it resolves dots, or after it. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "/gw/api//../login",
                "/gw//../api/login",
                "/gw/api/;/../login",
                "/gw/api/;a=b/../login",
                "/gw/x//../../api/login",
                "/gw/api/%2F../login",
                "/gw/api%2F%2F../login",
                "/gw/api//%2e%2e/login",
                "/gw/api//%252e%252e/login",
                "/gw/api\\\\..\\login",
                "/gw/api/%5C..%5Clogin",
                "/gw/api%252F%252F..%252Flogin",
                "/gw/api/.//../login",
                "/gw/api%2Flogin",
                "/gw/api%252flogin",
                "/gw/api;a/login;b",
                "/gw/api%3Ba/login",
                "/gw//api//login//",
                "/gw/../gw/api/login"
            })
    void everyReadingOfABackendIsCounted(String sent) {
        PathPattern login = PathPatternParser.defaultInstance.parse("/gw/api/login");
        assertThat(of(sent).mayMatch(login)).isTrue();
        assertThat(new RequestPaths(RequestPaths.readings(PathContainer.parsePath(sent), "/gw/login"), List.of(), null)
                        .mayMatch(login))
                .as("behind a server that has decoded it")
                .isTrue();
    }

    /** Every reading of it would cost its length again. */
    @ParameterizedTest
    @ValueSource(strings = {"/a;", "/a/..", "\\a", "%2Fa", "%2fa", "%5Ca", "%252Fa", "/a;b=c", "/;", ";a=b", "%3ba"})
    void aPathOfMoreSegmentsThanAnyHandlerHasIsNotReadButCountedByEveryRoute(String part) {
        String sent = "/open/;" + part.repeat(300);
        PathContainer path = PathContainer.parsePath(sent);
        for (RequestPaths paths : List.of(
                of(sent),
                new RequestPaths(RequestPaths.readings(path, "/open/a"), List.of(), null),
                new RequestPaths(RequestPaths.readings(null, sent), List.of(), null))) {
            assertThat(paths.inApplication()).isEmpty();
            assertThat(paths.mayMatch(LIMITED)).isTrue();
            assertThat(paths.mayMatch(OPEN)).isTrue();
            assertThat(paths.mustMatch(OPEN)).as("excluded").isFalse();
        }
    }

    @Test
    void aLongPathThatEveryServerReadsAlikeIsReadOnce() {
        RequestPaths paths = of("/open" + "/a".repeat(3000));
        assertThat(paths.inApplication()).hasSize(1);
        assertThat(paths.mustMatch(OPEN)).isTrue();
        assertThat(paths.mayMatch(LIMITED)).isFalse();
        assertThat(of("/open" + "/;a".repeat(100)).mustMatch(OPEN)).isTrue();
    }

    private static RequestPaths of(String sent) {
        return RequestPaths.of(PathContainer.parsePath(sent));
    }

    @Test
    void whoJoinsSlashesNeedNotReadAnEscapedDot() {
        assertThat(of("//api/.%2E").mayMatch(LIMITED)).isTrue();
    }

    @Test
    void halfAnEscapeInAParameterWithoutANameIsReadBehindABackslashToo() {
        assertThat(of("/api;=\\2%/x").mayMatch(LIMITED)).isTrue();
    }
}
