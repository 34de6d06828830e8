package io.ratelimited.spring.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimited;
import java.security.Principal;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.security.authentication.UsernamePasswordAuthenticationToken;
import org.springframework.security.core.AuthenticatedPrincipal;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.oauth2.core.ClaimAccessor;

/** Whose budget a caller uses, by what its authentication says of it. */
@ExtendWith(OutputCaptureExtension.class)
class CallerNamesTest {

    private final Supplier<ManualTicker> ticker = ManualTicker::new;

    private void run(Consumer<Keyed> test) {
        Contexts.runner(ticker.get()).withBean(Keyed.class).run(context -> {
            assertThat(context).hasNotFailed();
            test.accept(context.getBean(Keyed.class));
        });
    }

    static class Keyed {

        @RateLimited(rate = "1/s", key = "#caller")
        public void call(Principal caller) {}

        @RateLimited(rate = "1/s", key = "#caller?.name")
        public void callByName(Principal caller) {}

        @RateLimited(rate = "1/s", key = "#key")
        public void callByText(String key) {}
    }

    /** A token, which is another object with another text at each login. */
    record Token(String sub, Instant iat) implements ClaimAccessor {

        @Override
        public Map<String, Object> getClaims() {
            return Map.of("sub", sub, "iat", iat);
        }
    }

    record Account(String id, Instant since) implements AuthenticatedPrincipal {

        @Override
        public String getName() {
            return id;
        }
    }

    private static Principal authenticated(Object principal) {
        return new UsernamePasswordAuthenticationToken(principal, null, List.of());
    }

    /** An authentication of the application's own, whose name is always the text of its principal. */
    static final class OwnAuthentication extends UsernamePasswordAuthenticationToken {

        private static final long serialVersionUID = 1L;

        OwnAuthentication(Object principal) {
            super(principal, null, List.of());
        }

        @Override
        public String getName() {
            return getPrincipal().toString();
        }
    }

    /** Makes the same caller again, as at the next login. */
    static Stream<Supplier<Principal>> aCallerHasOneBudgetAfterEachLogin() {
        UUID id = UUID.randomUUID();
        return Stream.of(
                () -> authenticated("ann"),
                () -> authenticated(id),
                () -> authenticated(new User("ann", String.valueOf(System.nanoTime()), List.of())),
                () -> authenticated(new Account("ann", Instant.ofEpochSecond(0, System.nanoTime()))),
                () -> authenticated(new Token("ann", Instant.ofEpochSecond(0, System.nanoTime()))),
                () -> new OwnAuthentication(new Token("ann", Instant.ofEpochSecond(0, System.nanoTime()))),
                () -> new OwnAuthentication(new Account("ann", Instant.ofEpochSecond(0, System.nanoTime()))),
                () -> new OwnAuthentication(new User("ann", "secret", List.of())));
    }

    @ParameterizedTest
    @MethodSource
    void aCallerHasOneBudgetAfterEachLogin(Supplier<Principal> login) {
        run(keyed -> {
            keyed.call(login.get());
            assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(() -> keyed.call(login.get()));
            keyed.call(authenticated("bob"));
        });
    }

    static class Nameless {}

    @Test
    void aCallerWhoseNameIsTheDefaultTextOfAnObjectFailsTheCall() {
        run(keyed -> {
            assertThatIllegalStateException()
                    .isThrownBy(() -> keyed.call(authenticated(new Nameless())))
                    .withMessageContainingAll("#caller", Nameless.class.getName(), "its id", "the call was not made");
            assertThatIllegalStateException().isThrownBy(() -> keyed.callByName(authenticated(new Nameless())));
        });
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "java.lang.Object@1f",
                "[B@7cafe",
                "[Ljava.lang.String;@0",
                "java.lang.Runnable$$Lambda/0x0012@ff"
            })
    void aTextOfAnObjectIsNoKey(String text) {
        run(keyed -> assertThatIllegalStateException().isThrownBy(() -> keyed.callByText(text)));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "ann@cafe",
                "Ann.Lee@bad",
                "ann@example.org",
                "@1",
                "java.lang.Object@",
                "java.lang.Object@123456789",
                "a@b@c"
            })
    void anAddressIsAKey(String text) {
        run(keyed -> {
            keyed.callByText(text);
            assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(() -> keyed.callByText(text));
        });
    }

    record Caller(String id, Instant since) {}

    @Test
    void aCallerWhoseNameIsATextOfAnObjectIsWarnedOfOnce(CapturedOutput output) {
        run(keyed -> {
            keyed.call(authenticated(new Caller("ann", Instant.EPOCH)));
            keyed.call(authenticated(new Caller("ann", Instant.MAX)));
        });
        assertThat(output.getAll().lines().filter(line -> line.contains("[RL-232]")))
                .singleElement()
                .asString()
                .contains(Caller.class.getName(), "AuthenticatedPrincipal");
    }
}
