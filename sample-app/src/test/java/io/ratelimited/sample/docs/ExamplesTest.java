package io.ratelimited.sample.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

/** A snippet of the guide that names classes of an example shows these classes as the example has them, and runs them. */
@Tag("once")
class ExamplesTest {

    private static final Pattern MARKED =
            Pattern.compile("(?ms)^<!-- examples/(\\S+): (.*?) -->\\n```java\\n(.*?)^```$");

    @Test
    void aSnippetThatNamesClassesOfAnExampleIsTheirCode() throws IOException {
        int snippets = 0;
        for (String page : Pages.all()) {
            Matcher marked = MARKED.matcher(Files.readString(Pages.ROOT.resolve(page)));
            while (marked.find()) {
                snippets++;
                List<String> code = new ArrayList<>();
                for (String name : marked.group(2).split(" ")) {
                    code.addAll(lines(Files.readString(source(marked.group(1), name))));
                }
                assertThat(sorted(lines(marked.group(3)), true)).as(page).isEqualTo(sorted(code, true));
                assertThat(sorted(lines(marked.group(3)), false)).as(page).isEqualTo(sorted(code, false));
            }
        }
        assertThat(snippets).isEqualTo(2);
    }

    /** The imports, each once; or all other lines in their order. */
    private static List<String> sorted(List<String> lines, boolean imports) {
        Stream<String> chosen = lines.stream().filter(line -> line.startsWith("import ") == imports);
        return (imports ? chosen.distinct().sorted() : chosen).toList();
    }

    private static List<String> lines(String code) {
        return code.lines()
                .filter(line -> !line.isBlank() && !line.startsWith("package "))
                .toList();
    }

    private static Path source(String example, String name) throws IOException {
        try (Stream<Path> files = Files.walk(Pages.ROOT.resolve("examples/" + example + "/src/main/java"))) {
            return files.filter(file -> file.endsWith(name + ".java"))
                    .findFirst()
                    .orElseThrow();
        }
    }
}
