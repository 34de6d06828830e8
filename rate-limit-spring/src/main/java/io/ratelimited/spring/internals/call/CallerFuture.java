package io.ratelimited.spring.internals.call;

import java.util.concurrent.CompletableFuture;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * A future that its caller may end himself, by a timeout too. What it waits for ends first: code that is attached to the future
 * finds the permits given back. Thread-safe.
 */
abstract class CallerFuture<T extends @Nullable Object> extends CompletableFuture<T> {

    /**
     * Ends what this future waits for, unless it has ended.
     *
     * @param end the way in which the caller ends this future
     * @return whether this future has ended by it in the same way
     */
    abstract boolean endFirst(Predicate<CompletableFuture<T>> end);

    @Override
    public final boolean complete(T value) {
        boolean ended = !isDone() && endFirst(waited -> waited.complete(value));
        return super.complete(value) || ended;
    }

    @Override
    public final boolean completeExceptionally(Throwable failure) {
        boolean ended = !isDone() && endFirst(waited -> waited.completeExceptionally(failure));
        return super.completeExceptionally(failure) || ended;
    }

    @Override
    public final boolean cancel(boolean mayInterruptIfRunning) {
        boolean ended = !isDone() && endFirst(waited -> waited.cancel(mayInterruptIfRunning));
        return super.cancel(mayInterruptIfRunning) || ended;
    }

    /** Ends this future with what it has waited for. */
    final boolean succeeded(@Nullable T value) {
        return super.complete(value);
    }

    /** Ends this future with the failure of what it has waited for. */
    final boolean failed(Throwable failure) {
        return super.completeExceptionally(failure);
    }
}
