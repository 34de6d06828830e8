package io.ratelimited.spring.internals.call;

import java.io.Serial;
import org.jspecify.annotations.Nullable;

/**
 * A call asks for permits that no call can have, such as a negative number or a text that is no number: the caller's mistake where the number comes from the call, as
 * from a parameter of a request. The call was not made. Has no stack trace, since callers can cause as many as they like.
 */
public final class InvalidPermitsException extends IllegalStateException {

    @Serial
    private static final long serialVersionUID = 1L;

    private final String limit;

    InvalidPermitsException(String limit, @Nullable String message) {
        super(message);
        this.limit = limit;
    }

    /** The name of the limit. */
    public String limit() {
        return limit;
    }

    @Override
    public synchronized Throwable fillInStackTrace() {
        return this;
    }
}
