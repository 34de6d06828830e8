package io.ratelimited.core;

import java.io.InterruptedIOException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** The end of a call, from which {@link Algorithm#ADAPTIVE} learns. */
public enum End {
    /** An answer. One that comes later than {@link Limit#lateAfter} counts against the limit. */
    ANSWERED,
    /** An error that has nothing to do with load. It counts neither way, unless it comes late. */
    FAILED,
    /** The caller has given up, or has not made the call. It counts neither way. */
    CANCELLED,
    /** A timeout, or a rejection by another service that is overloaded. It counts against the limit. */
    OVERLOADED;

    /**
     * The end of a call that has thrown. Timeouts are {@link #OVERLOADED}, also as the cause of a {@link CompletionException} or
     * {@link ExecutionException}. A {@link RateLimitExceededException} is {@link #FAILED}: a limit that rejects is no overload.
     *
     * @param error null for an answer
     */
    public static End of(@Nullable Throwable error) {
        if (error == null) {
            return ANSWERED;
        }
        if (error.getCause() != null && (error instanceof CompletionException || error instanceof ExecutionException)) {
            return of(error.getCause());
        }
        if (error instanceof CancellationException || error instanceof InterruptedException) {
            return CANCELLED;
        }
        boolean overloaded = error instanceof TimeoutException || error instanceof InterruptedIOException;
        return overloaded ? OVERLOADED : FAILED;
    }
}
