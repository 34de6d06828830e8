package io.ratelimited.spring.internals.overload;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.TestLimits;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Kotlin's suspend functions and flows hold their places until their bodies have ended, and say how. */
@Tag("slow")
class SuspendedCallsTest {

    private final RecordingBackend backend = new RecordingBackend();
    private SuspendedCalls calls;
    private TestLimits limits;

    private void run(Consumer<CompletableFuture<String>> test, String... properties) {
        Contexts.runner()
                .withBean(RecordingBackend.class, () -> backend)
                .withBean(SuspendedCalls.class)
                .withPropertyValues(
                        "rate-limit.backend=recording",
                        "rate-limit.limits.calls.algorithm=adaptive",
                        "rate-limit.limits.calls.max-concurrent=1",
                        "rate-limit.limits.calls.priorities=critical,batch")
                .withPropertyValues(properties)
                .run(context -> {
                    calls = context.getBean(SuspendedCalls.class);
                    limits = TestLimits.of(context);
                    test.accept(new CompletableFuture<>());
                });
    }

    private CompletableFuture<String> call(String function, @Nullable String kind, CompletableFuture<String> body) {
        return SuspendedCallsKt.call(calls, function, kind, body);
    }

    private static String result(CompletableFuture<String> call) {
        return call.orTimeout(20, TimeUnit.SECONDS).join();
    }

    private static void assertFails(CompletableFuture<String> call) {
        assertThatThrownBy(() -> result(call)).isInstanceOf(Exception.class);
    }

    private void assertRefused(CompletableFuture<String> call) {
        assertThatThrownBy(() -> result(call)).hasCauseInstanceOf(RateLimitExceededException.class);
    }

    private void assertFree() {
        assertThat(result(call("call", null, CompletableFuture.completedFuture("next"))))
                .isEqualTo("next");
    }

    @ParameterizedTest
    @ValueSource(strings = {"call", "flow", "suspendedFlow"})
    void aPlaceIsHeldUntilTheBodyHasEnded(String function) {
        run(body -> {
            CompletableFuture<String> held = call(function, null, body);
            assertThat(held).isNotDone();
            assertRefused(call(function, null, body));
            assertThat(backend.ends).isEmpty();
            body.complete("done");
            assertThat(result(held)).isEqualTo("done");
            assertThat(backend.ends).containsExactly("ANSWERED");
            assertFree();
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"call", "flow", "suspendedFlow"})
    void anExceptionFreesThePlace(String function) {
        run(body -> {
            CompletableFuture<String> held = call(function, null, body);
            body.completeExceptionally(new IllegalStateException("broken"));
            assertFails(held);
            assertThat(backend.ends).containsExactly("FAILED");
            assertFree();
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"call", "flow", "suspendedFlow"})
    void aCoroutineThatIsCancelledFreesThePlace(String function) {
        run(body -> {
            call(function, null, body).cancel(true);
            assertThat(body).isCancelled();
            assertThat(backend.ends).containsExactly("CANCELLED");
            assertFree();
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"call", "flow", "suspendedFlow"})
    void aTimeoutOfTheBodyIsOverload(String function) {
        run(body -> {
            CompletableFuture<String> held = call(function, null, body);
            body.completeExceptionally(new TimeoutException());
            assertFails(held);
            assertThat(backend.ends).containsExactly("OVERLOADED");
            assertFree();
        });
    }

    @Test
    void aTimeoutOfCoroutinesInTheBodyIsOverload() {
        run(body -> {
            assertFails(call("hurried", null, body));
            assertThat(backend.ends).containsExactly("OVERLOADED");
            assertFree();
        });
    }

    @Test
    void nothingInsteadOfALateResultIsAnAnswer() {
        run(body -> {
            assertThat(result(call("orNothing", null, body))).isNull();
            assertThat(backend.ends).containsExactly("ANSWERED");
            assertFree();
        });
    }

    @ParameterizedTest
    @ValueSource(strings = {"call", "flow", "suspendedFlow"})
    void theBestClassGoesWhereOthersAreRefused(String function) {
        run(
                body -> {
                    CompletableFuture<String> held = call(function, "batch", body);
                    for (String other : new String[] {"batch", "unknown", "", null}) {
                        assertRefused(call(function, other, body));
                    }
                    CompletableFuture<String> best = call(function, "critical", body);
                    assertThat(best).isNotDone();
                    body.complete("done");
                    assertThat(result(best)).isEqualTo("done");
                    assertThat(result(held)).isEqualTo("done");
                    assertFree();
                },
                "rate-limit.limits.calls.max-concurrent=2");
    }

    @ParameterizedTest
    @ValueSource(strings = {"call", "flow", "suspendedFlow"})
    void waitingCallsGoByClassAndThoseThatAreCancelledLeaveTheQueue(String function) {
        run(
                body -> {
                    CompletableFuture<String> held = call(function, "critical", body);
                    CompletableFuture<String> batch = call(function, "batch", CompletableFuture.completedFuture("2nd"));
                    CompletableFuture<String> gone =
                            call(function, "critical", CompletableFuture.completedFuture("no"));
                    CompletableFuture<String> best = call(function, "critical", new CompletableFuture<>());
                    assertThat(limits.configured("calls").limiter().waiting()).isEqualTo(3);
                    gone.cancel(true);
                    assertThat(limits.configured("calls").limiter().waiting()).isEqualTo(2);
                    body.complete("1st");
                    assertThat(result(held)).isEqualTo("1st");
                    assertThat(batch).isNotDone();
                    best.cancel(true);
                    assertThat(result(batch)).isEqualTo("2nd");
                    assertFree();
                },
                "rate-limit.limits.calls.policy=wait",
                "rate-limit.limits.calls.max-wait=1m");
    }
}
