package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Applications in a process of their own, for what the class path or an agent decides. */
public final class Fork {

    /** For a process that lives for seconds: the second compiler would never earn its time. */
    public static final String SHORT = "-XX:TieredStopAtLevel=1";

    private Fork() {}

    /** The jar of the class path whose name begins so. */
    public static String jar(String name) {
        return entries()
                .filter(entry -> Path.of(entry).getFileName().toString().startsWith(name))
                .findFirst()
                .orElseThrow();
    }

    /** This class path, as far as wanted. */
    public static String classPath(Predicate<String> wanted) {
        return entries().filter(wanted).collect(Collectors.joining(File.pathSeparator));
    }

    private static Stream<String> entries() {
        return Stream.of(System.getProperty("java.class.path").split(File.pathSeparator));
    }

    /** Runs a main class, and returns the facts that it printed, as in {@code word 1}. */
    public static List<String> run(Path directory, String classPath, Class<?> main, String... options)
            throws IOException, InterruptedException {
        Path arguments =
                Files.writeString(directory.resolve("arguments"), "-cp \"" + classPath.replace("\\", "\\\\") + "\"");
        Path output = directory.resolve("output");
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.addAll(List.of(options));
        command.addAll(List.of("@" + arguments, main.getName()));
        Process process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .start();
        if (!process.waitFor(5, TimeUnit.MINUTES)) {
            process.destroyForcibly().waitFor();
        }
        int status = process.exitValue();
        List<String> lines = Files.readAllLines(output);
        assertThat(status).as(String.join("\n", lines)).isZero();
        return lines.stream().filter(line -> line.matches("\\w+ \\d+")).toList();
    }
}
