package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.woven.WovenApplication;
import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Classes woven by AspectJ, in a process of their own with the weaver as its agent. */
final class WovenModeTests {

    @Test
    void wovenClassesAreLimitedHoweverTheyAreCalledAndNeverTwice(@TempDir Path directory) throws Exception {
        assertThat(runWoven(directory))
                .containsExactly(
                        "public 2",
                        "self 2",
                        "private 2",
                        "static 2",
                        "new 2",
                        "meta 2",
                        "future 2",
                        "mono 2",
                        "override 2",
                        "interface 2",
                        "remaining 1",
                        "closed 3");
    }

    @Test
    void classThatShouldBeWovenAndIsNotIsAnErrorAtTheStart() {
        assertThatThrownBy(() -> Applications.start(
                                new ManualTicker(),
                                new Class<?>[] {WovenApplication.Service.class},
                                "rate-limit.aspect.mode=woven",
                                "rate-limit.defaults.rate=2/h")
                        .close())
                .rootCause()
                .isInstanceOf(InvalidRateLimitException.class)
                .hasMessageContaining("rate-limit.aspect.mode is woven")
                .hasMessageContaining(WovenApplication.Service.class.getName() + " was not woven");
    }

    private static List<String> runWoven(Path directory) throws Exception {
        String classPath = System.getProperty("java.class.path");
        String weaver = Stream.of(classPath.split(File.pathSeparator))
                .filter(entry -> entry.contains("aspectjweaver"))
                .findFirst()
                .orElseThrow();
        Path arguments =
                Files.writeString(directory.resolve("arguments"), "-cp \"" + classPath.replace("\\", "\\\\") + "\"");
        Path output = directory.resolve("output");
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-javaagent:" + weaver,
                        "-Dlogging.level.root=error",
                        "@" + arguments,
                        WovenApplication.class.getName())
                .redirectErrorStream(true)
                .redirectOutput(output.toFile())
                .start();
        int status = process.waitFor();
        List<String> lines = Files.readAllLines(output);
        assertThat(status).as(String.join("\n", lines)).isZero();
        return lines.stream().filter(line -> line.matches("\\w+ \\d+")).toList();
    }
}
