package io.ratelimited.core;

import java.io.InterruptedIOException;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;

/** How a call has ended, for {@link Algorithm#ADAPTIVE}. */
public enum End {
    /** With a response. A response after {@link Limit#lateAfter} counts as overload. */
    ANSWERED,
    /** With an error that is unrelated to load. It is ignored, unless it is late. */
    FAILED,
    /** The caller has given up, or has not made the call. It is ignored. */
    CANCELLED,
    /** With a timeout, or a rejection by an overloaded remote service. It counts as overload. */
    OVERLOADED;

    /**
     * Returns how a call with this exception has ended. Timeouts are {@link #OVERLOADED}, also as the cause of a {@link
     * CompletionException} or {@link ExecutionException}. A {@link RateLimitExceededException} is {@link #FAILED}, because a
     * rejection by a limit is not overload.
     *
     * @param error null for a response
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
