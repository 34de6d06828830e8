package io.ratelimited.spring.web;

import static org.assertj.core.api.Assertions.assertThat;

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
                "/open/..%2fapi/x",
                "/open/..%5Capi/x",
                "/open/../%61pi/x",
                "/open/../../../api/x"
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

    private static RequestPaths of(String sent) {
        return RequestPaths.of(PathContainer.parsePath(sent));
    }
}
