package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import com.code_intelligence.jazzer.junit.FuzzTest;
import java.net.URLDecoder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Timeout;
import org.springframework.http.server.PathContainer;
import org.springframework.web.util.pattern.PathPattern;
import org.springframework.web.util.pattern.PathPatternParser;

/** Paths of requests, read by servers that share no code with routes. */
@Tag("fuzz")
class RequestPathsFuzzTest {

    private static final PathPattern LIMITED = PathPatternParser.defaultInstance.parse("/api/**");

    @Timeout(10)
    @FuzzTest
    void aPathThatAServerReadsAsLimitedIsCountedAndItsReadingsAreNormal(byte[] input) {
        String text = "/" + new String(input, StandardCharsets.UTF_8);
        PathContainer sent;
        try {
            sent = PathContainer.parsePath(text);
        } catch (IllegalArgumentException ex) {
            return; // so does the server
        }
        RequestPaths paths = RequestPaths.of(sent);
        List<PathContainer> readings = paths.inApplication();
        if (readings.isEmpty()) {
            assertThat(text).hasSizeGreaterThan(256);
            assertThat(paths.mayMatch(LIMITED)).isTrue();
            assertThat(paths.mustMatch(LIMITED)).isFalse();
            return;
        }
        assertThat(readings).hasSizeBetween(1, 45);
        for (PathContainer reading : readings.subList(1, readings.size())) {
            assertThat(reading.value()).startsWith("/").doesNotContain("//");
            if (!reading.value().equals(text.replaceAll("/+", "/"))) {
                assertThat(reading.value()).doesNotMatch("(?s).*/[.]{1,2}(/.*)?");
            }
        }
        if (paths.mustMatch(LIMITED)) {
            assertThat(paths.mayMatch(LIMITED)).isTrue();
        }
        String served = text;
        for (int decoded = 0; decoded <= 2; decoded++) {
            if (served.indexOf('\0') >= 0) {
                return;
            }
            String path = Path.of(served).normalize().toString();
            if (path.equals("/api") || path.startsWith("/api/")) {
                assertThat(paths.mayMatch(LIMITED)).as(path).isTrue();
            }
            if (!served.matches("(?s)([^%]|%[0-9a-fA-F]{2})*+")) {
                return;
            }
            served = URLDecoder.decode(served.replace("+", "%2B"), StandardCharsets.UTF_8);
        }
    }
}
