package io.ratelimited.spring.guide;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.internals.web.RunningServer;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Configuration;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;

/** The page's procedure that finds the number of proxies: the answer of its command, and what the number then means. */
@Tag("once")
@Tag("slow")
class HowManyProxiesTest {

    private static final Pattern COMMAND =
            Pattern.compile("\\$ curl -H 'X-Forwarded-For: (?<spoofed>[^']+)' \\S+/hops\\n(?<answer>.+)\\n");
    private static final Pattern NUMBER = Pattern.compile("so set `trusted-proxies: (\\d)`");

    @TempDir
    static Path directory;

    @ParameterizedTest
    @EnumSource
    void theEntriesAfterTheSpoofedOneAreTheProxies(Kind kind) throws Exception {
        DocPage section = DocPage.section("keys.md", "Client IP behind a proxy");
        MatchResult command =
                COMMAND.matcher(section.text()).results().findFirst().orElseThrow();
        MatchResult number =
                NUMBER.matcher(section.text()).results().findFirst().orElseThrow();
        String spoofed = command.group(1);
        String answer = command.group(2);
        // What the proxies make of it: each appends the address of its peer.
        assertThat(answer).startsWith(spoofed + ", ");
        String appended = answer.substring(spoofed.length());
        List<Class<?>> sources = new ArrayList<>(section.classes(directory).values());
        sources.add(App.class);
        try (RunningServer server = kind.start(
                sources,
                "server.forward-headers-strategy=none",
                "rate-limit.http.trusted-proxies=" + number.group(1))) {
            assertThat(server.get("/hops", "X-Forwarded-For", answer).body()).isEqualTo(answer);

            assertThat(Stream.of(spoofed, "192.0.2.2", "192.0.2.3, 192.0.2.4")
                            .map(claimed -> server.get("/limited", "X-Forwarded-For", claimed + appended)
                                    .statusCode()))
                    .as("one client, whatever it claims")
                    .containsExactly(200, 429, 429);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @RestController
    static class App {

        @GetMapping("/limited")
        @RateLimited(name = "limited", rate = "1/h", key = "clientIp")
        public String limited() {
            return "";
        }
    }
}
