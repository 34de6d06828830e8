package io.ratelimited.spring.internals.expression;

import java.io.Serial;
import org.jspecify.annotations.Nullable;

/**
 * A call has a value that no limit can be asked with: the caller's mistake where the value comes from the call, as from a
 * header or from a parameter of a request. The call was not made. Has no stack trace, since callers can cause as many as they
 * like.
 */
public final class InvalidCallException extends IllegalStateException {

    @Serial
    private static final long serialVersionUID = 1L;

    private final String expression;
    private final String detail;

    /**
     * @param expression that read the value
     * @param message for the log
     * @param detail for the caller: nothing internal
     * @param cause where the expression failed; null if it returned the value
     */
    public InvalidCallException(CallExpression expression, String message, String detail, @Nullable Throwable cause) {
        super(message, cause);
        this.expression = expression.toString();
        this.detail = detail;
    }

    /** The name of the expression, and its text. */
    public String expression() {
        return expression;
    }

    /** What is wrong, in a sentence for the caller. */
    public String detail() {
        return detail;
    }

    @Override
    public synchronized Throwable fillInStackTrace() {
        return this;
    }
}
