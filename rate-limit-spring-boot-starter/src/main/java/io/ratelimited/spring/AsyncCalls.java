package io.ratelimited.spring;

import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/** Calls that return a {@link CompletionStage}: a refusal is a failed future, and a wait does not block the caller. */
final class AsyncCalls {

    private AsyncCalls() {}

    /** Makes the call when the gate lets it in; it ends when its stage completes. */
    static <T extends @Nullable Object> CompletableFuture<T> call(
            Gate gate,
            List<Ask> asks,
            @Nullable CurrentRequest request,
            Callable<? extends @Nullable CompletionStage<T>> body) {
        CompletableFuture<Gate.Pass> entered = gate.enterAsync(asks, request);
        CompletableFuture<T> result = new CompletableFuture<>();
        entered.whenComplete((pass, refusal) -> {
            if (refusal != null) {
                result.completeExceptionally(unwrap(refusal));
                return;
            }
            start(body).whenComplete((value, failure) -> {
                pass.end();
                if (failure != null) {
                    result.completeExceptionally(unwrap(failure));
                } else {
                    result.complete(value);
                }
            });
        });
        result.whenComplete((value, failure) -> {
            if (result.isCancelled()) {
                entered.cancel(false);
            }
        });
        return result;
    }

    private static <T extends @Nullable Object> CompletionStage<T> start(
            Callable<? extends @Nullable CompletionStage<T>> body) {
        try {
            CompletionStage<T> stage = body.call();
            return stage == null ? CompletableFuture.completedFuture(null) : stage;
        } catch (Throwable ex) {
            return CompletableFuture.failedFuture(ex);
        }
    }

    private static Throwable unwrap(Throwable failure) {
        Throwable cause = failure.getCause();
        return failure instanceof CompletionException && cause != null ? cause : failure;
    }
}
