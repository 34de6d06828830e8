package io.ratelimited.spring.guide;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.internals.web.Logins;
import io.ratelimited.spring.internals.web.RunningServer;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.provider.EnumSource;

/** Guesses at a login whose limits block, in the applications of the page on guessing of passwords. */
@ParameterizedClass
@EnumSource(
        value = Kind.class,
        names = {"TOMCAT", "REACTOR_NETTY"})
@Tag("proof")
class LockedOutGuessesTest {

    private static final String PAGE = "stop-guessing-passwords.md";

    @TempDir
    static Path directory;

    private static RunningServer server;

    @Parameter
    Kind kind;

    @BeforeParameterizedClassInvocation
    static void start(Kind kind) throws Exception {
        boolean reactive = kind == Kind.REACTOR_NETTY;
        DocPage section = DocPage.section(PAGE, reactive ? "A WebFlux application" : "A servlet application");
        List<Class<?>> sources = new ArrayList<>(section.classes(directory).values());
        sources.add(Logins.application(kind));
        server = kind.startSecured(
                sources,
                "rate-limit.limits.guesses-of-name.rate=5/m",
                "rate-limit.limits.guesses-of-name.block=10m",
                "rate-limit.limits.guesses-of-name.block-factor=3",
                "rate-limit.limits.guesses-of-name.block-max=24h",
                "rate-limit.limits.guesses-of-address.rate=10000/s");
    }

    @AfterParameterizedClassInvocation
    static void stop() {
        server.close();
    }

    @BeforeEach
    void nobodyHasTriedYet() {
        TestLimits limits = TestLimits.of(server.context);
        limits.reset("guesses-of-name", "ann");
        Logins.CHECKS.set(0);
    }

    private static void requireLockedOut(String answer, int seconds) {
        assertThat(answer).startsWith("HTTP/1.1 429").contains("Retry-After: " + seconds + "\r\n");
    }

    @Test
    void ofTwoHundredGuessesAtOnceFiveAreCheckedAndAfterEachBlockFiveMoreForALongerOne() throws Exception {
        for (int minutes : new int[] {10, 30, 90}) {
            int guesses = minutes == 10 ? 200 : 50;
            List<String> answers = PasswordGuessingTest.atOnce(
                    guesses, i -> Logins.login(server, i % 2 == 0 ? "ann" : "Ann", "wrong" + i));

            assertThat(Logins.CHECKS.getAndSet(0)).isEqualTo(5);
            assertThat(answers).filteredOn(answer -> answer.contains("?error")).hasSize(5);
            assertThat(answers)
                    .filteredOn(answer -> answer.startsWith("HTTP/1.1 429"))
                    .hasSize(guesses - 5);
            requireLockedOut(Logins.login(server, "ann", "right"), minutes * 60);
            assertThat(Logins.login(server, "neighbour", "wrong")).contains("?error");
            Logins.CHECKS.set(0);

            server.ticker().advance(Duration.ofMinutes(minutes).minusSeconds(1));
            requireLockedOut(Logins.login(server, "ann", "right"), 1);
            assertThat(Logins.CHECKS).hasValue(0);
            server.ticker().advance(Duration.ofSeconds(1));
        }
    }

    @Test
    void aRightPasswordIsNeverBlockedAndProlongsNothing() throws Exception {
        for (int i = 0; i < 4; i++) {
            assertThat(Logins.login(server, "ann", "wrong")).contains("?error");
        }
        List<String> atOnce = PasswordGuessingTest.atOnce(100, i -> Logins.login(server, "ann", "right"));
        assertThat(atOnce)
                .filteredOn(answer -> answer.startsWith("HTTP/1.1 302"))
                .as("one at a time has room; who finds none is refused, and not blocked")
                .isNotEmpty();
        assertThat(Logins.login(server, "ann", "right"))
                .startsWith("HTTP/1.1 302")
                .doesNotContain("?error");

        assertThat(Logins.login(server, "ann", "wrong")).contains("?error");
        server.ticker().advance(Duration.ofMinutes(9));
        for (int i = 0; i < 20; i++) {
            requireLockedOut(Logins.login(server, "ann", "right"), 60);
        }
        server.ticker().advance(Duration.ofMinutes(1));
        assertThat(Logins.login(server, "ann", "right"))
                .startsWith("HTTP/1.1 302")
                .doesNotContain("?error");
    }

    @Test
    void whoUnlocksANameLetsItsOwnerIn() {
        for (int i = 0; i < 5; i++) {
            Logins.login(server, "ann", "wrong");
        }
        requireLockedOut(Logins.login(server, "ann", "right"), 600);

        TestLimits.of(server.context).reset("guesses-of-name", "ann");

        assertThat(Logins.login(server, "ann", "right"))
                .startsWith("HTTP/1.1 302")
                .doesNotContain("?error");
    }
}
