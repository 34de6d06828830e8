package io.ratelimited.spring;

import io.ratelimited.spring.internals.text.PropertyText;
import java.io.Serial;
import org.jspecify.annotations.Nullable;

/**
 * The configuration of a limit is invalid, which fails startup. The message has the problem, the value and its origin; {@link
 * #remedy} has the correction. Immutable.
 */
public final class InvalidRateLimitException extends RuntimeException {

    @Serial
    private static final long serialVersionUID = 1L;

    private final String remedy;

    /**
     * Creates an error of one limit.
     *
     * @param limit name of the limit
     * @param place origin of the value: an annotation or a property
     * @param problem the error, with the value and the valid range; without a period
     * @param remedy the correction, an imperative
     */
    public InvalidRateLimitException(
            String limit, String place, String problem, String remedy, @Nullable Throwable cause) {
        this("Rate limit '" + limit + "' is invalid: " + problem + ". Origin: " + place + ".", remedy, cause);
    }

    private InvalidRateLimitException(String message, String remedy, @Nullable Throwable cause) {
        super(message, cause);
        this.remedy = remedy;
    }

    /**
     * Creates an error of a property that does not belong to a single limit.
     *
     * @param problem the error: the property, its value and the valid range; without a period
     * @param remedy the correction, an imperative
     */
    public InvalidRateLimitException(String problem, String remedy) {
        this(problem + ".", remedy, null);
    }

    /**
     * Creates an error of a property that is out of range, and does not belong to a single limit.
     *
     * @param range the valid values, such as {@code must be from 1 to 128}
     */
    public static InvalidRateLimitException ofProperty(String property, String range, @Nullable Object value) {
        return new InvalidRateLimitException(
                "Property " + property + " is " + (value == null ? "missing" : PropertyText.of(value)) + ", but "
                        + range + ".",
                "Correct the property. [RL-102]",
                null);
    }

    public InvalidRateLimitException(String limit, String place, String problem, String remedy) {
        this(limit, place, problem, remedy, null);
    }

    /** The correction. */
    public String remedy() {
        return remedy;
    }
}
