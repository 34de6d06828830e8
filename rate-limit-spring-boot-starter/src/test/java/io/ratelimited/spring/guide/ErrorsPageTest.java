package io.ratelimited.spring.guide;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;

/** The page of errors has a section for every code: what it shows as wrong is reported with the code, and what is right is not. */
@Tag("proof")
@ExtendWith(OutputCaptureExtension.class)
class ErrorsPageTest {

    private static final Pattern ROW = Pattern.compile("(?m)^\\| (RL-\\d{3}) \\|");
    private static final Pattern SECTION = Pattern.compile("(?ms)^### (RL-\\d{3})\\n(.*?)(?=^##|\\z)");
    private static final Pattern PARTS = Pattern.compile("(?s)(.*)\nWrong:\n(.*)\nRight:\n(.*)");

    @TempDir
    private Path directory;

    @Test
    void everyCodeHasASection() throws IOException {
        List<String> codes =
                ROW.matcher(page()).results().map(row -> row.group(1)).toList();
        assertThat(sections().keySet()).containsExactlyElementsOf(codes);
        assertThat(sections().values())
                .allSatisfy(section -> assertThat(section).isNotBlank());
    }

    static Stream<String> codesWithAnExample() throws IOException {
        Map<String, String> sections = sections();
        List<String> codes = sections.keySet().stream()
                .filter(code -> sections.get(code).contains("```"))
                .toList();
        assertThat(codes).hasSizeGreaterThan(35);
        return codes.stream();
    }

    @ParameterizedTest
    @MethodSource("codesWithAnExample")
    void whatIsWrongIsReportedWithTheCodeAndWhatIsRightIsNot(String code, CapturedOutput output) throws Exception {
        var parts = PARTS.matcher(sections().get(code));
        assertThat(parts.matches())
                .as("the page shows what is wrong and what is right")
                .isTrue();

        boolean wrongStarts = ErrorsPageApplication.starts(parts.group(1) + parts.group(2), directory.resolve("wrong"));
        assertThat(output).contains("[" + code + "]");
        assertThat(wrongStarts).as("starts").isEqualTo(!code.startsWith("RL-1"));

        int before = output.length();
        assertThat(ErrorsPageApplication.starts(parts.group(1) + parts.group(3), directory.resolve("right")))
                .isTrue();
        assertThat(output.toString().substring(before)).doesNotContain("[" + code + "]");
    }

    private static Map<String, String> sections() throws IOException {
        Map<String, String> sections = new LinkedHashMap<>();
        SECTION.matcher(page()).results().forEach(section -> sections.put(section.group(1), section.group(2)));
        return sections;
    }

    private static String page() throws IOException {
        return Files.readString(Path.of("..", "docs", "errors.md"));
    }
}
