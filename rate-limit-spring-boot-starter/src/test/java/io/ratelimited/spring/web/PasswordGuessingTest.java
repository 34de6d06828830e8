package io.ratelimited.spring.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.web.RunningServer.Kind;
import java.io.ByteArrayOutputStream;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.IntFunction;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import javax.tools.ToolProvider;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.env.YamlPropertySourceLoader;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.io.ByteArrayResource;

/** The page on guessing of passwords: its snippets, in applications that run. */
@ParameterizedClass
@EnumSource(
        value = Kind.class,
        names = {"TOMCAT", "REACTOR_NETTY"})
class PasswordGuessingTest {

    private static final Path PAGE = Path.of("../docs/stop-guessing-passwords.md");

    @TempDir
    static Path directory;

    private static RunningServer server;

    @BeforeParameterizedClassInvocation
    static void start(Kind kind) throws Exception {
        String section = section(kind == Kind.REACTOR_NETTY ? "A WebFlux application" : "A servlet application");
        String name = kind == Kind.REACTOR_NETTY ? "GuardedReactivePasswords" : "GuardedPasswords";
        server = kind.startSecured(
                List.of(Logins.application(kind), compiled(name, block(section, "java"))),
                properties(block(section, "yaml")));
    }

    @AfterParameterizedClassInvocation
    static void stop() {
        server.close();
    }

    @Parameter
    Kind kind;

    @BeforeEach
    void nobodyHasTriedYet() {
        server.ticker().advance(Duration.ofHours(2));
        Logins.CHECKS.set(0);
    }

    @Test
    void ofTwoHundredGuessesAtOnceExactlyTheLimitIsChecked() throws Exception {
        List<String> answers = atOnce(200, i -> Logins.login(server, i % 2 == 0 ? "ann" : "Ann", "wrong" + i));

        assertThat(Logins.CHECKS).hasValue(5);
        assertThat(answers).filteredOn(answer -> answer.contains("?error")).hasSize(5);
        assertThat(answers)
                .filteredOn(answer -> answer.startsWith("HTTP/1.1 429"))
                .hasSize(195)
                .allMatch(answer -> answer.contains("Retry-After: 3600"))
                .allMatch(answer -> answer.contains("RateLimit-Policy: "));
    }

    @Test
    void ofTwoHundredNamesFromAnAddressExactlyTheLimitIsChecked() throws Exception {
        List<String> answers = atOnce(200, i -> Logins.login(server, "name" + i, "wrong"));

        assertThat(Logins.CHECKS).hasValue(20);
        assertThat(answers)
                .filteredOn(answer -> answer.startsWith("HTTP/1.1 429"))
                .hasSize(180);
    }

    @Test
    void aRightPasswordCostsNothing() {
        for (int i = 0; i < 30; i++) {
            assertThat(Logins.login(server, "ann", "right"))
                    .startsWith("HTTP/1.1 302")
                    .doesNotContain("?error");
        }
        for (int i = 0; i < 5; i++) {
            assertThat(Logins.login(server, "ann", "wrong")).contains("?error");
        }
        assertThat(Logins.login(server, "ann", "right")).startsWith("HTTP/1.1 429");
        assertThat(Logins.CHECKS).hasValue(35);
    }

    @Test
    void whatIsNoGuessCostsNothing() {
        for (int i = 0; i < 30; i++) {
            assertThat(Logins.login(server, "broken", "any")).doesNotStartWith("HTTP/1.1 429");
        }
        for (int i = 0; i < 40; i++) {
            Logins.login(server, "bob", "wrong");
        }
        assertThat(Logins.login(server, "ann", "wrong")).contains("?error");
        assertThat(Logins.CHECKS).hasValue(30 + 5 + 1);
    }

    private static List<String> atOnce(int calls, IntFunction<String> call) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(calls);
        try {
            CountDownLatch gate = new CountDownLatch(1);
            List<Future<String>> answers = IntStream.range(0, calls)
                    .mapToObj(i -> threads.submit(() -> {
                        gate.await();
                        return call.apply(i);
                    }))
                    .toList();
            gate.countDown();
            List<String> all = new ArrayList<>();
            for (Future<String> answer : answers) {
                all.add(answer.get());
            }
            return all;
        } finally {
            threads.shutdownNow();
        }
    }

    static String section(String title) throws Exception {
        Matcher section =
                Pattern.compile("(?ms)^## " + title + "$(.*?)(?=^## |\\z)").matcher(Files.readString(PAGE));
        assertThat(section.find()).isTrue();
        return section.group(1);
    }

    static String block(String section, String kind) {
        Matcher block = Pattern.compile("(?ms)^```" + kind + "\\n(.*?)^```$").matcher(section);
        assertThat(block.find()).isTrue();
        return block.group(1);
    }

    static String[] properties(String yaml) throws Exception {
        EnumerablePropertySource<?> source = (EnumerablePropertySource<?>) new YamlPropertySourceLoader()
                .load("page", new ByteArrayResource(yaml.getBytes(StandardCharsets.UTF_8)))
                .get(0);
        return IntStream.range(0, source.getPropertyNames().length)
                .mapToObj(i -> source.getPropertyNames()[i])
                .map(name -> name + "=" + source.getProperty(name))
                .toArray(String[]::new);
    }

    private static Class<?> compiled(String name, String java) throws Exception {
        Path source = Files.writeString(directory.resolve(name + ".java"), "package guide;\n" + java);
        ByteArrayOutputStream messages = new ByteArrayOutputStream();
        int status = ToolProvider.getSystemJavaCompiler()
                .run(
                        null,
                        messages,
                        messages,
                        "-parameters",
                        "-proc:none",
                        "-d",
                        directory.toString(),
                        "-cp",
                        System.getProperty("java.class.path"),
                        source.toString());
        assertThat(status).as(() -> messages.toString(StandardCharsets.UTF_8)).isZero();
        // Left open: the classes are used until the test is over.
        @SuppressWarnings("resource")
        URLClassLoader loader =
                new URLClassLoader(new URL[] {directory.toUri().toURL()}, PasswordGuessingTest.class.getClassLoader());
        return loader.loadClass("guide." + name);
    }
}
