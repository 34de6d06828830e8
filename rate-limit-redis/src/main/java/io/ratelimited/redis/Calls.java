package io.ratelimited.redis;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** Waiting for Redis. */
final class Calls {

    private Calls() {}

    /** Blocks until done, at the longest for the timeout; an interrupt is kept for later. */
    static <T> T await(CompletableFuture<T> future, long timeoutNanos) throws ExecutionException {
        long deadline = System.nanoTime() + timeoutNanos;
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    return future.get(Math.max(0, deadline - System.nanoTime()), TimeUnit.NANOSECONDS);
                } catch (InterruptedException ex) {
                    interrupted = true;
                } catch (TimeoutException ex) {
                    future.completeExceptionally(ex);
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    static Throwable unwrap(@Nullable Throwable failure) {
        Throwable cause = failure;
        while (cause != null
                && (cause instanceof CompletionException || cause instanceof ExecutionException)
                && cause.getCause() != null) {
            cause = cause.getCause();
        }
        return cause == null ? new IllegalStateException("failed without a reason") : cause;
    }
}
