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

/** A long snippet of the guide comes from an example: it shows classes that the example compiles and tests. */
@Tag("once")
class ExamplesTest {

    /** Of a snippet, without its imports: more are a part of an application. */
    private static final int LONG = 15;

    private static final Pattern SNIPPET =
            Pattern.compile("(?ms)^(?:<!-- examples/(\\S+): (.*?) -->\\n)?```(?:java|kotlin|yaml)\\n(.*?)^```$");

    @Test
    void aSnippetThatNamesClassesOfAnExampleIsTheirCode() throws IOException {
        for (String page : Pages.all()) {
            Matcher snippets = SNIPPET.matcher(Files.readString(Pages.ROOT.resolve(page)));
            while (snippets.find()) {
                if (snippets.group(1) != null) {
                    List<String> code = new ArrayList<>();
                    for (String name : snippets.group(2).split(" ")) {
                        code.addAll(lines(Files.readString(source(snippets.group(1), name))));
                    }
                    List<String> shown = lines(snippets.group(3));
                    assertThat(imports(shown)).as(page).isEqualTo(imports(code));
                    assertThat(body(shown)).as(page).isEqualTo(body(code));
                }
            }
        }
    }

    @Test
    void aLongSnippetNamesClassesOfAnExample() throws IOException {
        List<String> fromNowhere = new ArrayList<>();
        int longOnes = 0;
        for (String page : Pages.all()) {
            Matcher snippets = SNIPPET.matcher(Files.readString(Pages.ROOT.resolve(page)));
            while (snippets.find()) {
                List<String> body = body(lines(snippets.group(3)));
                if (body.size() > LONG) {
                    longOnes++;
                    if (snippets.group(1) == null) {
                        fromNowhere.add(page + ": " + body.get(0));
                    }
                }
            }
        }
        assertThat(longOnes).isPositive();
        assertThat(fromNowhere).isEmpty();
    }

    /** Each once, since a page shows several classes with the imports of all. */
    private static List<String> imports(List<String> lines) {
        return lines.stream()
                .filter(line -> line.startsWith("import "))
                .distinct()
                .sorted()
                .toList();
    }

    private static List<String> body(List<String> lines) {
        return lines.stream().filter(line -> !line.startsWith("import ")).toList();
    }

    private static List<String> lines(String code) {
        return code.lines()
                .filter(line -> !line.isBlank() && !line.startsWith("package "))
                .toList();
    }

    private static Path source(String example, String name) throws IOException {
        try (Stream<Path> files = Files.walk(Pages.ROOT.resolve("examples/" + example + "/src"))) {
            return files.filter(file -> file.endsWith(name + ".java"))
                    .findFirst()
                    .orElseThrow();
        }
    }
}
