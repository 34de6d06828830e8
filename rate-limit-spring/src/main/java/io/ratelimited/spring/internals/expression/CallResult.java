package io.ratelimited.spring.internals.expression;

import java.util.Map;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionException;
import org.jspecify.annotations.Nullable;

/**
 * The end of a call: its result or its failure.
 *
 * @param value its returned value, the value of its stage or {@code Mono}, or the last element of its stream; null if there
 *     is none
 * @param error its exception; a {@link CancellationException} if it was cancelled before its end, and perhaps if something
 *     that it called was; null if it returned
 * @param count elements of a stream, else 1, or 0 after an error
 * @param cancelled whether it was ended from outside, by its caller or a client that disconnects, before it came to its
 *     own end
 */
public record CallResult(@Nullable Object value, @Nullable Throwable error, long count, boolean cancelled) {

    /** The position of {@code #cancelled}. */
    static final int CANCELLED = -5;

    /** Positions of the variables of a result, beside those of the arguments. */
    static final Map<String, Integer> VARIABLES =
            Map.of("result", -2, "error", -3, "count", -4, "cancelled", CANCELLED);

    /**
     * The result of a call that has come to its own end, unless its thread was interrupted. Other cancellations are those of
     * something that the call itself has cancelled, such as a {@code withTimeout} of Kotlin.
     */
    public CallResult(@Nullable Object value, @Nullable Throwable error, long count) {
        this(value, error, count, isInterrupt(error));
    }

    /** Waits for limits report an interrupt as the cause of a cancellation. */
    private static boolean isInterrupt(@Nullable Throwable error) {
        return error instanceof InterruptedException
                || (error instanceof CancellationException && error.getCause() instanceof InterruptedException);
    }

    /** The variable at a position: an argument, or one of the {@link #VARIABLES}. */
    static @Nullable Object variable(int position, @Nullable Object[] args, @Nullable CallResult result) {
        if (position >= 0 || result == null) {
            return args[position];
        }
        return switch (position) {
            case -2 -> result.value;
            case -3 -> result.error;
            case -4 -> result.count;
            default -> result.cancelled;
        };
    }

    /** The result of a call that is not a stream. */
    public static CallResult of(@Nullable Object value, @Nullable Throwable error) {
        return new CallResult(value, error, error == null ? 1 : 0);
    }

    /**
     * The result of a call that ends with a future or a response which its caller may cancel: it fails with this class then,
     * and not with a subclass, such as that of a timeout.
     */
    public static CallResult ofLater(@Nullable Object value, @Nullable Throwable error) {
        CallResult result = of(value, error);
        return error != null && error.getClass() == CancellationException.class ? result.asCancelled() : result;
    }

    /** The result of a call that was ended from outside. */
    public CallResult asCancelled() {
        return new CallResult(value, error, count, true);
    }

    /** Returns the failure of a stage, without the exception that stages wrap it in. */
    public static Throwable unwrap(Throwable failure) {
        Throwable cause = failure.getCause();
        return failure instanceof CompletionException && cause != null ? cause : failure;
    }
}
