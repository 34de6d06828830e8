package io.ratelimited.sample.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledIf;
import org.springframework.boot.test.context.SpringBootTest;
import org.springframework.boot.test.context.SpringBootTest.WebEnvironment;
import org.springframework.boot.test.web.server.LocalServerPort;
import org.springframework.test.annotation.DirtiesContext;

/** The console lines of the README, run in a shell against the sample as it starts. */
@SpringBootTest(webEnvironment = WebEnvironment.RANDOM_PORT)
@DirtiesContext(classMode = DirtiesContext.ClassMode.BEFORE_CLASS)
class ReadmeCommandsTests {

    private static final Pattern BLOCK = Pattern.compile("(?ms)^```console\\n(.*?)^```$");
    private static final Pattern COMMAND = Pattern.compile("(?m)^\\$ (.*)\\n((?:(?!\\$ ).*\\n)*)");

    /** Numbers that depend on how fast somebody types. */
    private static final Pattern TIMES = Pattern.compile("(Retry-After: |;t=|retry after |waitedMillis\":)\\d+");

    @LocalServerPort
    int port;

    @Test
    @EnabledIf(value = "hasShellAndCurl", disabledReason = "bash or curl is not installed")
    void curlPrintsWhatTheReadmeSays() throws Exception {
        int commands = 0;
        Matcher blocks = BLOCK.matcher(Files.readString(Path.of("..", "README.md")));
        while (blocks.find()) {
            Matcher command = COMMAND.matcher(blocks.group(1));
            while (command.find()) {
                assertThat(comparable(run(command.group(1))))
                        .as(command.group(1))
                        .isEqualTo(comparable(command.group(2)));
                commands++;
            }
        }
        assertThat(commands).isGreaterThan(5);
    }

    private String run(String command) throws Exception {
        Process shell = new ProcessBuilder("bash", "-c", command.replace("localhost:8080", "localhost:" + port))
                .redirectErrorStream(true)
                .start();
        return new String(shell.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    }

    private static String comparable(String output) {
        return TIMES.matcher(output)
                .replaceAll("$1…")
                .replace("\r", "")
                .lines()
                .map(String::strip)
                .reduce("", (all, line) -> all + line + "\n");
    }

    static boolean hasShellAndCurl() throws InterruptedException {
        try {
            return new ProcessBuilder("bash", "-c", "curl --version").start().waitFor() == 0;
        } catch (IOException ex) {
            return false;
        }
    }
}
