package io.ratelimited.sample.docs;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.ratelimited.sample.SampleApplication;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.boot.SpringApplication;
import org.springframework.context.ConfigurableApplicationContext;

/** Every command that a page shows is run: here, by another test, or by {@code .ci/run}. */
@Tag("once")
@Tag("slow")
class CommandsTest {

    /** Its lines need an application with the limits of that page: OperationsPageTest of the starter. */
    /** Their lines need an endpoint or traffic of their own: FindYourNumberPageTest and OperationsPageTest have them. */
    private static final Set<String> ELSEWHERE = Set.of("docs/operations.md", "docs/find-your-number.md");

    private static final String VERIFY = "the step release of .ci/run, which takes these commands from the page";

    /** The commands that neither this test runs nor the step of {@code .ci/run} that takes them from the pages, and what does. */
    private static final Map<String, String> BUILD = Map.ofEntries(
            Map.entry("mvn verify", "the first step of .ci/run, without the slow tests"),
            Map.entry("mvn -Pdaily verify", "the first step of .ci/run"),
            Map.entry("mvn -Pproofs verify", "the step proofs of .ci/run"),
            Map.entry("mvn -DskipTests install", "the step newcomer of .ci/run"),
            Map.entry("mvn -pl sample-app -am spring-boot:run", "the step newcomer of .ci/run"),
            Map.entry(
                    "mvn -pl sample-app -am spring-boot:run"
                            + " -Dspring-boot.run.arguments=--rate-limit.limits.demo-token-bucket.burst=2",
                    "the step newcomer of .ci/run"),
            Map.entry("mvn -pl MODULE -am verify", "mvn verify, of some modules"),
            Map.entry("mvn spotless:apply", "changes sources; its check is part of mvn verify"),
            Map.entry(".ci/run", "itself"),
            Map.entry(".ci/run gates", "itself, in the workflow"),
            Map.entry(".ci/run release", "itself, in the workflow"),
            Map.entry(".ci/run proofs", "itself, in the workflow"),
            Map.entry(".ci/run fuzz", "itself, by hand"),
            Map.entry(".ci/release", "the step release of .ci/run"),
            Map.entry("gpg --import KEYS", VERIFY),
            Map.entry("gpg --verify rate-limit-core-0.1.0.jar.asc rate-limit-core-0.1.0.jar", VERIFY),
            Map.entry("git clone --quiet https://github.com/ratelimited/rate-limit.git", VERIFY),
            Map.entry("git -C rate-limit verify-tag v0.1.0", VERIFY),
            Map.entry("git -C rate-limit checkout --quiet v0.1.0", VERIFY),
            Map.entry("rate-limit/.ci/release --unsigned target/rebuilt", VERIFY),
            Map.entry(
                    "cmp rate-limit-core-0.1.0.jar rate-limit/target/rebuilt/io/ratelimited/rate-limit-core/0.1.0/"
                            + "rate-limit-core-0.1.0.jar",
                    VERIFY),
            Map.entry(".ci/run native", "by hand, where there is GraalVM"),
            Map.entry(".ci/run speed", "by hand, on a machine that does nothing else"),
            Map.entry("redis-server", "RedisProcess starts one"),
            Map.entry("mvn -DskipTests package", "the first step of .ci/run packages, too"),
            Map.entry(instance(8080), "TwoInstancesTest"),
            Map.entry(instance(8081), "TwoInstancesTest"),
            Map.entry(
                    "for i in 1 2 3 4; do for port in 8080 8081; do curl -s -o /dev/null -w \"$port %{http_code}  \""
                            + " \"localhost:$port/demo/token-bucket?user=carol\"; done; done",
                    "TwoInstancesTest"));

    private static String instance(int port) {
        return "java -jar sample-app/target/sample-app-0.1.0-SNAPSHOT.jar --spring.profiles.active=redis --server.port="
                + port;
    }

    private static final Pattern BLOCK = Pattern.compile("(?ms)^```(console|shell)\\n(.*?)^```$");
    private static final Pattern CONSOLE_LINE = Pattern.compile("(?m)^\\$ (.*)\\n((?:(?!\\$ ).*\\n)*)");
    private static final Pattern INLINE = Pattern.compile(
            "`((?:mvn|\\.ci/run|rate-limit-benchmarks/run|java -jar|docker run|redis-server)\\b[^`]*)`");

    /** Numbers that depend on how fast somebody types. */
    private static final Pattern TIMES = Pattern.compile("(Retry-After: |;t=|retry after |waitedMillis\":)\\d+");

    static Stream<String> pagesWithConsoleLines() throws IOException {
        List<String> pages = new ArrayList<>();
        for (String page : Pages.all()) {
            if (!ELSEWHERE.contains(page) && !blocks(page, "console").isEmpty()) {
                pages.add(page);
            }
        }
        return pages.stream();
    }

    /** The lines of a page in their order, against a sample application that nobody has called before. */
    @ParameterizedTest
    @MethodSource("pagesWithConsoleLines")
    void aShellPrintsWhatThePageSays(String page) throws Exception {
        assumeTrue(hasShellAndCurl(), "bash or curl 7.67 is not installed: apt-get install bash curl");
        try (ConfigurableApplicationContext sample =
                new SpringApplication(SampleApplication.class).run("--server.port=0", "--server.shutdown=immediate")) {
            String port = sample.getEnvironment().getRequiredProperty("local.server.port");
            for (String block : blocks(page, "console")) {
                Matcher line = CONSOLE_LINE.matcher(block);
                while (line.find()) {
                    assertThat(comparable(run(line.group(1).replace("localhost:8080", "localhost:" + port))))
                            .as(line.group(1))
                            .isEqualTo(comparable(line.group(2)));
                }
            }
        }
    }

    @Test
    void everyBuildCommandIsRunBySomething() throws Exception {
        assumeTrue(hasShellAndCurl(), "bash or curl 7.67 is not installed: apt-get install bash curl");
        Set<String> commands = new TreeSet<>();
        for (String page : Pages.all()) {
            for (String block : blocks(page, "shell")) {
                block.lines().map(line -> line.replaceFirst("\\s+#.*", "")).forEach(commands::add);
            }
            INLINE.matcher(Files.readString(Pages.ROOT.resolve(page)))
                    .results()
                    .forEach(inline -> commands.add(inline.group(1)));
        }
        Set<String> ofTheGuide =
                new TreeSet<>(run("../.ci/run commands").lines().toList());
        assertThat(ofTheGuide).isNotEmpty();
        assertThat(commands)
                .containsAll(ofTheGuide)
                .containsAll(BUILD.keySet())
                .allMatch(command -> BUILD.containsKey(command) || ofTheGuide.contains(command));
    }

    private static List<String> blocks(String page, String kind) throws IOException {
        return BLOCK.matcher(Files.readString(Pages.ROOT.resolve(page)))
                .results()
                .filter(block -> block.group(1).equals(kind))
                .map(block -> block.group(2))
                .toList();
    }

    private static String run(String command) throws IOException {
        Process shell = new ProcessBuilder("bash", "-c", command)
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

    /** {@code --no-progress-meter} came with 7.67. */
    private static boolean hasShellAndCurl() throws InterruptedException {
        try {
            return new ProcessBuilder("bash", "-c", "curl --no-progress-meter --parallel --version")
                            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                            .start()
                            .waitFor()
                    == 0;
        } catch (IOException ex) {
            return false;
        }
    }
}
