package io.ratelimited.spring.internals.check;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** The codes of errors and warnings in the sources are those of the page that lists them. */
class ErrorCodesTest {

    private static final Path TOP = Path.of("..");
    private static final Pattern ROW = Pattern.compile("(?m)^\\| (RL-\\d{3}) \\|");
    private static final Pattern IN_SOURCE = Pattern.compile("\\[(RL-\\d{3})]\"");
    /** A start-up error, up to the statement's end; what is said of a change at run time needs no code. */
    private static final Pattern WARNING = Pattern.compile("(?s)LOG\\s*\\.warn\\((.*?)\\);\\n");

    @Test
    void thePageHasTheCodesOfTheSourcesAndNoOthers() throws IOException {
        List<String> page = ROW.matcher(Files.readString(TOP.resolve("docs/errors.md")))
                .results()
                .map(row -> row.group(1))
                .toList();
        TreeSet<String> used = new TreeSet<>();
        for (Path source : sources("rate-limit-")) {
            IN_SOURCE
                    .matcher(Files.readString(source))
                    .results()
                    .map(code -> code.group(1))
                    .forEach(used::add);
        }
        assertThat(page).doesNotHaveDuplicates().containsExactlyElementsOf(used);
    }

    @Test
    void everyWarningOfAStartUpCheckHasACode() throws IOException {
        List<String> without = new ArrayList<>();
        for (Path source : sources("rate-limit-spring")) {
            if (source.getParent().endsWith("check")
                    || source.getParent().endsWith("expression")
                    || source.getFileName().toString().endsWith("Check.java")) {
                for (MatchResult warning :
                        WARNING.matcher(Files.readString(source)).results().toList()) {
                    if (!IN_SOURCE.matcher(warning.group(1)).find()) {
                        without.add(source.getFileName() + ": " + warning.group(1));
                    }
                }
            }
        }
        assertThat(without).isEmpty();
    }

    private static List<Path> sources(String prefix) throws IOException {
        List<Path> sources = new ArrayList<>();
        try (Stream<Path> modules = Files.list(TOP)) {
            for (Path module : modules.filter(
                            path -> path.getFileName().toString().startsWith(prefix))
                    .sorted()
                    .toList()) {
                Path main = module.resolve("src/main/java");
                if (Files.isDirectory(main)) {
                    try (Stream<Path> files = Files.walk(main)) {
                        files.filter(file -> file.toString().endsWith(".java")).forEach(sources::add);
                    }
                }
            }
        }
        assertThat(sources).isNotEmpty();
        return sources;
    }
}
