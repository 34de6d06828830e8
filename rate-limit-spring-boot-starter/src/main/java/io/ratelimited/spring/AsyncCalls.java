package io.ratelimited.spring;

import io.ratelimited.core.RateLimitExceededException;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Calls that return a {@link CompletionStage}: a refusal is a failed future, and a wait does not block the caller. A
 * call that is admitted at once is made as if it had no limit: same thread, same future.
 */
final class AsyncCalls {

    private AsyncCalls() {}

    /** Makes a call of a method. */
    static @Nullable Object invoke(LimitedMethod method, Call call) throws Throwable {
        CompletableFuture<Gate.Pass> entered;
        try {
            entered = method.enterAsync(call, method.currentRequest());
        } catch (RuntimeException ex) {
            return CompletableFuture.failedFuture(ex);
        }
        boolean unattended = method.isUnattended();
        return AsyncCalls.<@Nullable Object>run(
                entered,
                method.gate(),
                () -> cast(call.proceed()),
                refusal -> stage(method.refused(call, unattended, refusal)));
    }

    /** Makes a call of a supplier; it ends when its stage completes. */
    static <T extends @Nullable Object> CompletableFuture<T> call(
            Gate gate,
            List<Ask> asks,
            @Nullable CurrentRequest request,
            Callable<? extends @Nullable CompletionStage<T>> call) {
        try {
            CompletionStage<T> stage = AsyncCalls.<T>run(
                    gate.enterAsync(asks, request), gate, call::call, CompletableFuture::failedFuture);
            return stage == null ? CompletableFuture.completedFuture(null) : stage.toCompletableFuture();
        } catch (Throwable ex) {
            return CompletableFuture.failedFuture(ex);
        }
    }

    private static <T extends @Nullable Object> @Nullable CompletionStage<T> run(
            CompletableFuture<Gate.Pass> entered, Gate gate, Body<T> body, Refused<T> refused) throws Throwable {
        if (!entered.isDone()) {
            return new Waiting<>(entered, body, refused).start(gate.lateStart().ofThisCaller());
        }
        Gate.Pass pass;
        try {
            pass = entered.join();
        } catch (RuntimeException ex) {
            return refusal(unwrap(ex), refused);
        }
        return start(pass, body);
    }

    /**
     * Makes an admitted call; throws what it throws, and returns the very stage that it returns, unless the call counts
     * as long as it is in flight: then one that completes when it no longer does.
     */
    private static <T extends @Nullable Object> @Nullable CompletionStage<T> start(Gate.Pass pass, Body<T> body)
            throws Throwable {
        CompletionStage<T> stage = null;
        try {
            stage = body.start();
        } finally {
            if (stage == null || !pass.countsInFlight()) {
                pass.end();
            }
        }
        return stage == null || !pass.countsInFlight() ? stage : new Result<T>().follow(stage, pass::endWith);
    }

    private static <T extends @Nullable Object> CompletionStage<T> refusal(Throwable failure, Refused<T> refused) {
        try {
            return failure instanceof RateLimitExceededException refusal
                    ? refused.instead(refusal)
                    : CompletableFuture.failedFuture(failure);
        } catch (Throwable ex) {
            return CompletableFuture.failedFuture(ex);
        }
    }

    private static CompletionStage<@Nullable Object> stage(@Nullable Object value) {
        CompletionStage<@Nullable Object> stage = value instanceof CompletionStage<?> ? cast(value) : null;
        return stage == null ? CompletableFuture.completedFuture(value) : stage.toCompletableFuture();
    }

    @SuppressWarnings("unchecked")
    private static @Nullable CompletionStage<@Nullable Object> cast(@Nullable Object stage) {
        return (CompletionStage<@Nullable Object>) stage;
    }

    static Throwable unwrap(Throwable failure) {
        Throwable cause = failure.getCause();
        return failure instanceof CompletionException && cause != null ? cause : failure;
    }

    /** Stands for the future of the method: cancelling it cancels that. */
    private static class Result<T extends @Nullable Object> extends CompletableFuture<T> {

        /** Ends with the stage, after what has to come before any reaction to its end. */
        CompletableFuture<T> follow(CompletionStage<T> stage, Consumer<? super T> before) {
            stage.whenComplete((value, failure) -> {
                before.accept(value);
                if (failure != null) {
                    completeExceptionally(unwrap(failure));
                } else {
                    complete(value);
                }
            });
            whenComplete((value, failure) -> {
                if (isCancelled()) {
                    stage.toCompletableFuture().cancel(true);
                }
            });
            return this;
        }
    }

    /** A call that was not decided at once. */
    private static final class Waiting<T extends @Nullable Object> extends Result<T> {

        private final CompletableFuture<Gate.Pass> entered;
        private final Body<T> body;
        private final Refused<T> refused;

        private Waiting(CompletableFuture<Gate.Pass> entered, Body<T> body, Refused<T> refused) {
            this.entered = entered;
            this.body = body;
            this.refused = refused;
        }

        private CompletableFuture<T> start(Executor later) {
            entered.whenComplete((pass, failure) -> {
                if (isDone()) {
                    giveBack(pass);
                    return;
                }
                try {
                    later.execute(() -> decided(pass, failure));
                } catch (RuntimeException ex) {
                    giveBack(pass);
                    completeExceptionally(ex);
                }
            });
            // Whoever completes it, by a timeout too, does not wait for its turn.
            whenComplete((value, failure) -> entered.cancel(false));
            return this;
        }

        private void decided(Gate.@Nullable Pass pass, @Nullable Throwable failure) {
            if (isDone()) {
                giveBack(pass);
                return;
            }
            try {
                CompletionStage<T> stage = pass == null
                        ? refusal(unwrap(Objects.requireNonNull(failure)), refused)
                        : AsyncCalls.start(pass, body);
                if (stage == null) {
                    complete(null);
                } else {
                    follow(stage, value -> {});
                }
            } catch (Throwable ex) {
                completeExceptionally(ex);
            }
        }

        private static void giveBack(Gate.@Nullable Pass pass) {
            if (pass != null) {
                pass.cancel();
            }
        }
    }

    /** The call itself. */
    private interface Body<T extends @Nullable Object> {

        @Nullable
        CompletionStage<T> start() throws Throwable;
    }

    /** What happens instead of a refused call. */
    private interface Refused<T extends @Nullable Object> {

        CompletionStage<T> instead(RateLimitExceededException refusal) throws Throwable;
    }
}
