package io.ratelimited.redis.simulation;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The simulation notices changes of the shipped code: {@code mutants.txt} has the list. */
class MutantsTest {

    private static final Path SOURCES = Path.of("src", "main");
    private static final int SECONDS = 60;

    /** A change. Runs of white space in the original stand for any. */
    record Mutant(String breaks, Path file, String original, String changed) {

        private Pattern pattern() {
            return Pattern.compile(
                    Stream.of(original.split("\\s+")).map(Pattern::quote).collect(Collectors.joining("\\s+")));
        }

        private String source() throws IOException {
            return Files.readString(SOURCES.resolve(file));
        }

        @Override
        public String toString() {
            return breaks;
        }
    }

    static List<Mutant> mutants() throws IOException {
        String list;
        try (var in = MutantsTest.class.getResourceAsStream("mutants.txt")) {
            list = new String(Objects.requireNonNull(in).readAllBytes(), StandardCharsets.UTF_8);
        }
        List<Mutant> all = new ArrayList<>();
        for (String entry : list.split("\n\n")) {
            List<String> lines = entry.strip().lines().toList();
            if (!lines.get(0).startsWith("#")) {
                all.add(new Mutant(
                        lines.get(0),
                        Path.of(lines.get(1)),
                        lines.get(2).substring(2),
                        lines.get(3).substring(2)));
            }
        }
        return all;
    }

    @Test
    void everyMutantFitsTheShippedCode() throws IOException {
        assertThat(mutants()).hasSizeGreaterThanOrEqualTo(25);
        for (Mutant mutant : mutants()) {
            assertThat(mutant.pattern().matcher(mutant.source()).results().count())
                    .as("%s: %s", mutant.file, mutant.original)
                    .isEqualTo(1);
        }
    }

    @ParameterizedTest
    @MethodSource("mutants")
    @Tag("proof")
    void aMutantIsNoticedWithinAMinute(Mutant mutant, @TempDir Path directory) throws Exception {
        Path changed = directory.resolve(mutant.file.getFileName().toString());
        Files.writeString(
                changed,
                mutant.pattern().matcher(mutant.source()).replaceFirst(Matcher.quoteReplacement(mutant.changed)));
        String classPath = System.getProperty("java.class.path");
        Path classes = Files.createDirectories(directory.resolve("classes"));
        if (mutant.file.startsWith("java")) {
            int failed = ToolProvider.getSystemJavaCompiler()
                    .run(
                            null,
                            null,
                            null,
                            "-proc:none",
                            "-nowarn",
                            "-d",
                            classes.toString(),
                            "-cp",
                            classPath,
                            changed.toString());
            assertThat(failed).as("compiles").isZero();
        } else {
            Path resource = classes.resolve(Path.of("resources").relativize(mutant.file));
            Files.createDirectories(Objects.requireNonNull(resource.getParent()));
            Files.copy(changed, resource);
        }
        long begin = System.nanoTime();
        Path output = directory.resolve("output");
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-XX:+UseSerialGC",
                        "-cp",
                        classes + File.pathSeparator + classPath,
                        Simulations.class.getName(),
                        "1000",
                        "1000000",
                        Integer.toString(SECONDS))
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .start();
        try {
            boolean ended = process.waitFor(2 * SECONDS, TimeUnit.SECONDS);
            System.out.printf(
                    "MUTANT %s after %d s: %s%n",
                    !ended || process.exitValue() != 0 ? "noticed" : "SURVIVES",
                    (System.nanoTime() - begin) / 1_000_000_000,
                    mutant);
            if (ended) {
                assertThat(process.exitValue())
                        .as(() -> mutant + "\n" + read(output))
                        .isNotZero();
            }
        } finally {
            process.destroyForcibly();
        }
    }

    private static String read(Path output) {
        try {
            return Files.readString(output);
        } catch (IOException ex) {
            return ex.toString();
        }
    }
}
