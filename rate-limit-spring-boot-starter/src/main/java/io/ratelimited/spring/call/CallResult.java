package io.ratelimited.spring.call;

import org.jspecify.annotations.Nullable;

/**
 * How a call has ended.
 *
 * @param value what it returned, the value of its stage or {@code Mono}, or the last element of its stream; null if there
 *     is none
 * @param error what it threw; a {@link java.util.concurrent.CancellationException} if it was cancelled before its end;
 *     null if it returned
 * @param count elements of a stream, else 1, or 0 after an error
 */
public record CallResult(@Nullable Object value, @Nullable Throwable error, long count) {

    /** The result of a call that is not a stream. */
    public static CallResult of(@Nullable Object value, @Nullable Throwable error) {
        return new CallResult(value, error, error == null ? 1 : 0);
    }
}
