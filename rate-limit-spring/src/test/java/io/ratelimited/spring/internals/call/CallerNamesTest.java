package io.ratelimited.spring.internals.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import java.security.Principal;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.security.authentication.UsernamePasswordAuthenticationToken;
import org.springframework.security.core.AuthenticatedPrincipal;
import org.springframework.security.core.userdetails.User;
import org.springframework.security.oauth2.core.ClaimAccessor;

/** Whose budget a caller uses, by what its authentication says of it. */
@ExtendWith(CapturedLog.Capture.class)
class CallerNamesTest {

    private final Supplier<ManualTicker> ticker = ManualTicker::new;
    private final AtomicReference<RateLimitOperations> operations = new AtomicReference<>();

    private void run(Consumer<Keyed> test) {
        runBoth((keyed, limits) -> test.accept(keyed));
    }

    private void runBoth(BiConsumer<Keyed, RateLimits> test) {
        ContextRunner.limited(ticker.get())
                .withBean(Keyed.class)
                .withPropertyValues("rate-limit.limits.by-hand.rate=1/s", "rate-limit.limits.by-hand.key=#key")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    operations.set(context.getBean(RateLimitOperations.class));
                    test.accept(context.getBean(Keyed.class), context.getBean(RateLimits.class));
                });
    }

    static class Keyed {

        @RateLimited(rate = "1/s", key = "#caller")
        public void call(Principal caller) {}

        @RateLimited(rate = "1/s", key = "#caller?.name")
        public void callByName(Principal caller) {}

        @RateLimited(rate = "1/s", key = "#key")
        public void callByText(String key) {}

        @RateLimited(rate = "1/s", key = "#key.strip()")
        public void callByPartOfText(String key) {}

        @RateLimited(name = "by-hand")
        public void callByHand(String key) {}

        @RateLimited(rate = "1/s", key = "{#caller, #region}")
        public void callByList(Principal caller, String region) {}

        @RateLimited(rate = "1/s", key = "{caller: #caller, of: {#region}}")
        public void callByMap(Principal caller, String region) {}

        @RateLimited(rate = "1/s", key = "#caller + ':' + #region")
        public void callByConcatenation(Principal caller, String region) {}

        @RateLimited(rate = "1/s", key = "#region + '/' + #caller")
        public void callByConcatenationBehind(Principal caller, String region) {}

        @RateLimited(rate = "1/s", key = "#of")
        public void callByRecord(Of of) {}

        @RateLimited(rate = "1/s", key = "'of ' + #any + '/' + #region")
        public void callByTextOf(Object any, String region) {}

        @RateLimited(rate = "1/s", key = "#any.toString() + '/' + #region")
        public void callByOwnTextOf(Object any, String region) {}

        @RateLimited(rate = "1/s", key = "{#any.toString(), #region}")
        public void callByListOfTexts(Object any, String region) {}
    }

    public record Of(Principal caller, String region) {}

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

    /** Each way to put a caller into a key of several parts. */
    private static List<BiConsumer<Keyed, Principal>> ways() {
        return List.of(
                (keyed, caller) -> keyed.callByList(caller, "eu"),
                (keyed, caller) -> keyed.callByMap(caller, "eu"),
                (keyed, caller) -> keyed.callByConcatenation(caller, "eu"),
                (keyed, caller) -> keyed.callByConcatenationBehind(caller, "eu"),
                (keyed, caller) -> keyed.callByRecord(new Of(caller, "eu")));
    }

    @ParameterizedTest
    @MethodSource("aCallerHasOneBudgetAfterEachLogin")
    void soHasOneWhoseNameIsAPartOfTheKey(Supplier<Principal> login) {
        run(keyed -> ways().forEach(way -> {
            way.accept(keyed, login.get());
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> way.accept(keyed, login.get()));
            way.accept(keyed, authenticated("bob"));
        }));
    }

    @ParameterizedTest
    @MethodSource("aCallerHasOneBudgetAfterEachLogin")
    void soHasOneWhoseKeyIsStatedByHand(Supplier<Principal> login) {
        runBoth((keyed, limits) -> {
            assertThat(limits.tryAcquire("by-hand", login.get())).isTrue();
            assertThat(limits.tryAcquire("by-hand", login.get())).isFalse();
            assertThat(limits.peek("by-hand", login.get()).admitted()).isFalse();
            operations.get().reset("by-hand", login.get());
            assertThatCode(() -> limits.execute("by-hand", login.get(), () -> "done"))
                    .doesNotThrowAnyException();
            assertThatExceptionOfType(RateLimitExceededException.class)
                    .isThrownBy(() -> limits.execute("by-hand", login.get(), () -> "done"));
            assertThat(limits.tryAcquire("by-hand", List.of(login.get(), "eu"))).isTrue();
            assertThat(limits.tryAcquire("by-hand", List.of(login.get(), "eu"))).isFalse();
        });
    }

    @Test
    void aPartOfAKeyThatIsTheTextOfAnObjectFailsTheCall() {
        run(keyed -> {
            ways().forEach(way -> assertThatIllegalStateException()
                    .isThrownBy(() -> way.accept(keyed, authenticated(new Nameless())))
                    .withMessageContainingAll(Nameless.class.getName(), "its id", "the call was not made"));
            assertThatIllegalStateException()
                    .isThrownBy(() -> keyed.callByTextOf(new Nameless(), "eu"))
                    .withMessageContainingAll(Nameless.class.getName(), "its id", "the call was not made");
            assertThatIllegalStateException().isThrownBy(() -> keyed.callByOwnTextOf(new Nameless(), "eu"));
            assertThatIllegalStateException().isThrownBy(() -> keyed.callByListOfTexts(new Nameless(), "eu"));
            assertThatIllegalStateException()
                    .isThrownBy(() -> keyed.callByOwnTextOf(authenticated("ann"), "eu"))
                    .withMessageContainingAll("text of an authentication", "principal?.name");
        });
    }

    @Test
    void soDoesOneByHand() {
        runBoth((keyed, limits) -> {
            for (Object key : List.of(
                    authenticated(new Nameless()), List.of("eu", authenticated(new Nameless())), new Nameless())) {
                assertThatIllegalArgumentException()
                        .isThrownBy(() -> limits.tryAcquire("by-hand", key))
                        .withMessageContainingAll(Nameless.class.getName(), "its id");
                assertThatIllegalArgumentException().isThrownBy(() -> limits.execute("by-hand", key, () -> "done"));
                assertThatIllegalArgumentException().isThrownBy(() -> limits.reserve("by-hand", key, 1));
                assertThatIllegalArgumentException().isThrownBy(() -> limits.peek("by-hand", key));
                assertThatIllegalArgumentException()
                        .isThrownBy(() -> operations.get().reset("by-hand", key));
                assertThatIllegalArgumentException()
                        .isThrownBy(() -> operations.get().removeOverride("by-hand", key));
            }
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

    /** The text alone tells nothing: a client may write it, and its call must count like any other. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "java.lang.Object@1f",
                "[B@7cafe",
                "[x@1",
                "java.lang.Runnable$$Lambda/0x0012@ff",
                "eu:java.lang.Object@1f",
                "UsernamePasswordAuthenticationToken [Principal=ann, Credentials=[PROTECTED]]",
                "ann@cafe",
                "ann@example.org",
                "@1"
            })
    void aTextThatAClientWritesIsAKeyWhateverItIs(String text) {
        runBoth((keyed, limits) -> {
            List<Runnable> ways = List.of(
                    () -> keyed.callByText(text),
                    () -> keyed.callByPartOfText(text),
                    () -> keyed.call(() -> text),
                    () -> keyed.callByName(() -> text),
                    () -> keyed.callByList(authenticated(text), "eu"),
                    () -> keyed.callByListOfTexts(text, "eu"),
                    () -> limits.execute("by-hand", text, () -> "done"));
            for (Runnable way : ways) {
                way.run();
                assertThatExceptionOfType(RateLimitExceededException.class).isThrownBy(way::run);
            }
        });
    }

    record Caller(String id, Instant since) {}

    @Test
    void aCallerWhoseNameIsATextOfAnObjectIsWarnedOfOnce(CapturedLog output) {
        run(keyed -> {
            keyed.call(authenticated(new Caller("ann", Instant.EPOCH)));
            keyed.call(authenticated(new Caller("ann", Instant.MAX)));
        });
        assertThat(output.toString().lines().filter(line -> line.contains("[RL-232]")))
                .singleElement()
                .asString()
                .contains(Caller.class.getName(), "AuthenticatedPrincipal");
    }
}
