package io.ratelimited.spring.actuate;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.internals.candidates.CandidatesCommand;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.TestLimits;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import tools.jackson.databind.JsonNode;
import tools.jackson.databind.json.JsonMapper;

/** What the page on candidates shows is what comes. */
@ExtendWith(OutputCaptureExtension.class)
class FindYourNumberPageTest {

    private static final Path PAGE = Path.of("..", "docs", "find-your-number.md");
    private static final Pattern BODY = Pattern.compile("-d '([^']*)'");
    private static final Pattern ANSWER =
            Pattern.compile("(?s)\\$ curl localhost:8080/actuator/ratelimits/downloads\\n(.*?)```");
    private static final Pattern LINE = Pattern.compile("(?m)^Rate limit 'downloads': .*$");
    private static final Pattern COMMAND =
            Pattern.compile("(?s)\\$ java -jar rate-limit-core.jar (candidates [^\\n]*) access.log\\n(.*?)```");

    @TempDir
    private Path folder;

    private static String find(Pattern pattern) throws Exception {
        Matcher matcher = pattern.matcher(Files.readString(PAGE));
        assertThat(matcher.find()).isTrue();
        return matcher.group(matcher.groupCount() == 0 ? 0 : 1);
    }

    @Test
    @SuppressWarnings("unchecked")
    void theEndpointAnswersAndTheLogSaysWhatThePageShows(CapturedOutput output) throws Exception {
        ManualTicker ticker = new ManualTicker(0, Instant.parse("2026-10-10T00:00:00Z"));
        JsonMapper json = JsonMapper.shared();
        JsonNode body = json.readTree(find(BODY));
        JsonNode shown = json.readTree(find(ANSWER)).get("candidates");
        String line = find(LINE);
        Contexts.runner(ticker)
                .withConfiguration(AutoConfigurations.of(RateLimitsEndpointAutoConfiguration.class))
                .withPropertyValues(
                        "management.endpoints.web.exposure.include=ratelimits",
                        "rate-limit.actuator.mask-keys=false",
                        "rate-limit.limits.downloads.rate=100/m")
                .run(context -> {
                    RateLimitsEndpoint endpoint = context.getBean(RateLimitsEndpoint.class);
                    endpoint.update("downloads", null, json.convertValue(body, Map.class), null);
                    for (int i = 0; i < 40; i++) {
                        TestLimits.of(context).tryAcquire("downloads", i < 31 ? "203.0.113.7" : "203.0.113.9");
                    }
                    String answer = json.writeValueAsString(
                            endpoint.limit("downloads", null).get("candidates"));
                    assertThat(json.readTree(answer)).isEqualTo(shown);
                    ticker.advance(Duration.ofHours(24));
                });
        assertThat(output).containsOnlyOnce(line);
    }

    @Test
    void theCommandPrintsWhatThePageShows() throws Exception {
        List<String> lines = new ArrayList<>();
        for (int i = 0; i < 9; i++) {
            lines.add("203.0.113.%d - - [10/Oct/2026:13:5%s +0000] \"GET /api/search HTTP/1.1\" 200 1"
                    .formatted(
                            i < 2 ? 9 : 7,
                            List.of("5:00", "6:10", "5:10", "5:11", "5:12", "5:13", "5:14", "5:15", "5:59")
                                    .get(i)));
        }
        Path log = Files.write(folder.resolve("access.log"), lines);
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        PrintStream stream = new PrintStream(out, true, StandardCharsets.UTF_8);
        CandidatesCommand.run((find(COMMAND) + " " + log).split(" "), stream, stream);
        Matcher shown = COMMAND.matcher(Files.readString(PAGE));
        assertThat(shown.find()).isTrue();
        assertThat(out.toString(StandardCharsets.UTF_8)).isEqualToNormalizingNewlines(shown.group(2));
    }
}
