package io.ratelimited.spring.guide;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.internals.web.Logins;
import io.ratelimited.spring.internals.web.RunningServer;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** The page on guessing of passwords: its snippets, in applications that run. */
@ParameterizedClass
@EnumSource(
        value = Kind.class,
        names = {"TOMCAT", "REACTOR_NETTY"})
@Tag("proof")
class PasswordGuessingTest {

    private static final String PAGE = "stop-guessing-passwords.md";

    @TempDir
    static Path directory;

    private static RunningServer server;

    @BeforeParameterizedClassInvocation
    static void start(Kind kind) throws Exception {
        boolean reactive = kind == Kind.REACTOR_NETTY;
        DocPage servlet = DocPage.section(PAGE, "A servlet application");
        DocPage section = reactive ? DocPage.section(PAGE, "A WebFlux application") : servlet;
        List<Class<?>> sources = new ArrayList<>(section.classes(directory).values());
        sources.add(Logins.application(kind));
        server = kind.startSecured(sources, servlet.properties());
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
    void aGuessThatIsNotCheckedCostsNothing() {
        for (int i = 0; i < 40; i++) {
            Logins.login(server, "bob", "wrong");
        }
        assertThat(Logins.login(server, "ann", "wrong")).contains("?error");
        assertThat(Logins.CHECKS).hasValue(5 + 1);
    }

    /** One that fails for names that it does not know would make guesses free, and tell which names it knows. */
    @Test
    void aUserStoreThatFailsCostsWhatAWrongPasswordCosts() {
        for (String name : new String[] {"ann", "broken"}) {
            server.ticker().advance(Duration.ofHours(2));
            Logins.CHECKS.set(0);
            for (int i = 0; i < 5; i++) {
                assertThat(Logins.login(server, name, "wrong"))
                        .as(name)
                        .doesNotStartWith("HTTP/1.1 429")
                        .containsIgnoringCase("RateLimit: \"guesses-of-address\";r=" + (19 - i) + ";");
            }
            assertThat(Logins.login(server, name, "wrong")).as(name).startsWith("HTTP/1.1 429");
            assertThat(Logins.CHECKS).hasValue(5);
        }
    }

    /** Whose lower case of I is no i. */
    @Test
    void theLocaleOfTheServerBuysNoGuesses() {
        Locale before = Locale.getDefault();
        Locale.setDefault(Locale.forLanguageTag("tr-TR"));
        try {
            for (String name : new String[] {"titi", "TITI", "TiTi", "tITi", "TItI", "Titi", "tiTI"}) {
                Logins.login(server, name, "wrong");
            }
            assertThat(Logins.CHECKS).hasValue(5);
        } finally {
            Locale.setDefault(before);
        }
    }

    static <T> List<T> atOnce(int calls, IntFunction<T> call) throws Exception {
        ExecutorService threads = Executors.newFixedThreadPool(calls);
        try {
            CountDownLatch gate = new CountDownLatch(1);
            List<Future<T>> answers = IntStream.range(0, calls)
                    .mapToObj(i -> threads.submit(() -> {
                        gate.await();
                        return call.apply(i);
                    }))
                    .toList();
            gate.countDown();
            List<T> all = new ArrayList<>();
            for (Future<T> answer : answers) {
                all.add(answer.get());
            }
            return all;
        } finally {
            threads.shutdownNow();
        }
    }
}
