package io.ratelimited.sample.docs;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

/** Each attack that the page on security names has the test that it names. */
final class SecurityPageTest {

    /** {@code `KeyAttacksTest#noTwoKeysAreOne`}; without a class the method is of the class before it in the row. */
    private static final Pattern NAMED = Pattern.compile("`(?:\\w+\\.)*(\\w+Test)?(?:#(\\w+))?`");

    @Test
    void eachAttackHasItsTest() throws IOException {
        List<String> rows = Files.readAllLines(Pages.ROOT.resolve("SECURITY.md")).stream()
                .filter(line -> line.startsWith("| ") && !line.startsWith("| attack"))
                .toList();
        assertThat(rows).hasSizeGreaterThan(30);
        for (String row : rows) {
            String tests = row.substring(row.lastIndexOf("| ", row.length() - 3));
            Matcher named = NAMED.matcher(tests);
            String type = null;
            while (named.find()) {
                type = named.group(1) == null ? type : named.group(1);
                assertThat(type).as(row).isNotNull();
                List<String> sources = sources(type);
                assertThat(sources).as(row).isNotEmpty();
                String method = named.group(2);
                if (method != null) {
                    assertThat(sources).as(row).anyMatch(source -> source.contains(" void " + method + "("));
                }
            }
            assertThat(type).as(row).isNotNull();
        }
    }

    private static List<String> sources(String type) throws IOException {
        try (Stream<Path> modules = Files.list(Pages.ROOT)) {
            return modules.map(module -> module.resolve("src/test/java"))
                    .filter(Files::isDirectory)
                    .flatMap(SecurityPageTest::files)
                    .filter(file -> file.getFileName().toString().equals(type + ".java"))
                    .map(SecurityPageTest::read)
                    .toList();
        }
    }

    private static Stream<Path> files(Path directory) {
        try (Stream<Path> files = Files.walk(directory)) {
            return files.toList().stream();
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }

    private static String read(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException ex) {
            throw new UncheckedIOException(ex);
        }
    }
}
