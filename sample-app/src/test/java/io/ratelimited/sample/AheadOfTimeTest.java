package io.ratelimited.sample;

import static org.assertj.core.api.Assertions.assertThat;
import static org.awaitility.Awaitility.await;

import java.io.File;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.boot.SpringApplicationAotProcessor;

/**
 * The sample processed ahead of time, as {@code spring-boot:process-aot} does it, starts in a process of its own and
 * still limits. The test of this name in the starter does the same with a small application.
 */
@Tag("proof")
class AheadOfTimeTest {

    private static final Pattern PORT = Pattern.compile("Tomcat started on port (\\d+)");

    @TempDir
    Path directory;

    private Process application;

    @AfterEach
    void stop() throws InterruptedException {
        if (application != null) {
            application.destroyForcibly().waitFor();
        }
    }

    @Test
    void theSampleStillLimits() throws Exception {
        Path sources = directory.resolve("sources");
        Path resources = directory.resolve("resources");
        Path classes = directory.resolve("classes");
        Process processing = java(
                "processing",
                classPath(),
                SpringApplicationAotProcessor.class.getName(),
                SampleApplication.class.getName(),
                sources.toString(),
                resources.toString(),
                classes.toString(),
                "io.ratelimited",
                "sample-app");
        assertThat(processing.waitFor()).as(() -> output("processing")).isZero();
        compile(sources, classes);

        application = java(
                "application",
                classes + File.pathSeparator + resources + File.pathSeparator + classPath(),
                "-Dspring.aot.enabled=true",
                SampleApplication.class.getName(),
                "--server.port=0",
                "--rate-limit.limits.recommendations.rate=1/h",
                "--rate-limit.limits.order-quota.rate=1/d");
        await().atMost(Duration.ofMinutes(2))
                .until(() -> PORT.matcher(output("application")).find() || !application.isAlive());
        Matcher port = PORT.matcher(output("application"));
        assertThat(port.find()).as(() -> output("application")).isTrue();
        assertThat(output("application")).contains("Starting AOT-processed SampleApplication");
        Http http = new Http(Integer.parseInt(port.group(1)));

        String order = "{\"customer\":\"ann\",\"items\":[\"tea\"]}";
        assertThat(http.post("/orders", order).statusCode()).isEqualTo(201);
        assertThat(http.post("/orders", order).statusCode()).isEqualTo(429);
        assertThat(http.post("/orders", order.replace("ann", "bob")).statusCode())
                .isEqualTo(201);
        assertThat(http.get("/search?q=tea", "X-Api-Key", "key-of-gina")
                        .headers()
                        .firstValue("RateLimit-Policy"))
                .contains("\"search\";q=100;w=2, \"search-address\";q=200;w=1");
        assertThat(http.get("/recommendations/carol").body()).contains("Cast iron pot");
        assertThat(http.get("/recommendations/carol").body()).contains("Green tea");
    }

    /** What the sample has, and not what its tests have. */
    private static String classPath() {
        return Stream.of(System.getProperty("java.class.path").split(File.pathSeparator))
                .filter(entry -> !entry.endsWith("test-classes"))
                .collect(Collectors.joining(File.pathSeparator));
    }

    private Process java(String name, String classPath, String... arguments) throws IOException {
        Path options = Files.writeString(
                directory.resolve(name + ".arguments"), "-cp \"" + classPath.replace("\\", "\\\\") + "\"");
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        command.add("-XX:TieredStopAtLevel=1");
        command.add("@" + options);
        command.addAll(Arrays.asList(arguments));
        return new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(directory.resolve(name + ".output").toFile())
                .start();
    }

    private String output(String name) {
        try {
            return Files.readString(directory.resolve(name + ".output"));
        } catch (IOException ex) {
            throw new java.io.UncheckedIOException(ex);
        }
    }

    private static void compile(Path sources, Path classes) throws IOException {
        List<String> arguments = new ArrayList<>(List.of(
                "-proc:none", "-nowarn", "-d", classes.toString(), "-cp", classes + File.pathSeparator + classPath()));
        try (Stream<Path> files = Files.walk(sources)) {
            files.map(Path::toString).filter(file -> file.endsWith(".java")).forEach(arguments::add);
        }
        assertThat(ToolProvider.getSystemJavaCompiler().run(null, null, null, arguments.toArray(String[]::new)))
                .isZero();
    }
}
