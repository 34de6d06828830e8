package io.ratelimited.sample.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.yaml.snakeyaml.Yaml;

/** What can be checked of the workflows where they do not run. */
class WorkflowsTest {

    private static final Path DIRECTORY = Pages.ROOT.resolve(".github/workflows");
    private static final Pattern PINNED = Pattern.compile("uses: [\\w./-]+@\\p{XDigit}{40} # v\\d+[.]\\d+[.]\\d+");
    /** A tool whose absence skips a check: {@code if ! command -v <tool> > /dev/null; then}. */
    private static final Pattern SKIPS = Pattern.compile("(?m)^ *if ! command -v (\\S+) > /dev/null; then$");

    private static final Map<String, Object> READS = Map.of("contents", "read");

    /** The jobs that may do more than read, and what. */
    private static final Map<String, Map<String, Object>> MORE = Map.of(
            "codeql.yml analyze", Map.of("contents", "read", "security-events", "write"),
            "release.yml provenance", Map.of("contents", "read", "id-token", "write", "attestations", "write"));

    static Stream<Path> workflows() throws IOException {
        try (Stream<Path> files = Files.list(DIRECTORY)) {
            return files.toList().stream();
        }
    }

    @ParameterizedTest
    @MethodSource("workflows")
    @SuppressWarnings("unchecked")
    void aWorkflowReadsAndRunsPinnedCodeOnly(Path file) throws IOException {
        String text = Files.readString(file);
        assertThat(text.lines().filter(line -> line.contains("uses:")).map(line -> line.replaceFirst("^[ -]*", "")))
                .isNotEmpty()
                .allMatch(line -> PINNED.matcher(line).matches());
        assertThat(text.lines().filter(line -> line.matches("\\s*(container|image): .*")))
                .allMatch(line -> line.matches(".*@sha256:\\p{XDigit}{64}"));
        Map<String, Object> workflow = new Yaml().load(text);
        assertThat(workflow.get("permissions")).isEqualTo(READS);
        ((Map<String, Map<String, Object>>) workflow.get("jobs")).forEach((name, job) -> {
            assertThat(job.getOrDefault("permissions", READS))
                    .isEqualTo(MORE.getOrDefault(file.getFileName() + " " + name, READS));
            assertThat(job).containsKeys("runs-on", "timeout-minutes");
            ((List<Map<String, Object>>) job.get("steps"))
                    .stream()
                            .filter(step ->
                                    step.getOrDefault("uses", "").toString().startsWith("actions/checkout@"))
                            .forEach(step ->
                                    assertThat(step.get("with")).isEqualTo(Map.of("persist-credentials", false)));
        });
    }

    @Test
    void theWorkflowInstallsTheToolsWithoutWhichChecksAreSkipped() throws IOException {
        String scripts = Files.readString(Pages.ROOT.resolve(".ci/run"))
                + Files.readString(Pages.ROOT.resolve(".ci/applications"));
        String packages = Files.readString(DIRECTORY.resolve("ci.yml"))
                .lines()
                .filter(line -> line.contains("apt-get -qq install"))
                .findFirst()
                .orElseThrow();
        assertThat(SKIPS.matcher(scripts).results().map(skip -> skip.group(1)))
                .isNotEmpty()
                .allMatch(tool -> List.of(packages.split("\\s+")).contains(tool));
    }
}
