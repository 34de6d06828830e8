package io.ratelimited.spring;

import java.io.Serial;
import org.jspecify.annotations.Nullable;

/** The configuration of a limit is invalid. Carries problem and remedy for the failure analysis. */
public final class InvalidRateLimitException extends RuntimeException {

    @Serial
    private static final long serialVersionUID = 1L;

    private final String remedy;

    /**
     * Describes a mistake.
     *
     * @param limit name of the limit
     * @param place annotation or property at fault
     * @param problem the mistake, with the value
     * @param remedy the correction
     */
    public InvalidRateLimitException(
            String limit, String place, String problem, String remedy, @Nullable Throwable cause) {
        this("Limit '" + limit + "' (" + place + "): " + problem, remedy, cause);
    }

    private InvalidRateLimitException(String message, String remedy, @Nullable Throwable cause) {
        super(message, cause);
        this.remedy = remedy;
    }

    /**
     * A mistake that belongs to no single limit.
     *
     * @param problem the mistake: the property and its value
     * @param remedy the correction
     */
    public InvalidRateLimitException(String problem, String remedy) {
        this(problem, remedy, null);
    }

    /** A property that belongs to no single limit is out of range. */
    public static InvalidRateLimitException ofProperty(String property, String range, @Nullable Object value) {
        return new InvalidRateLimitException(
                "Property " + property + " " + range + ": " + value, "Correct the property. [RL-102]", null);
    }

    public InvalidRateLimitException(String limit, String place, String problem, String remedy) {
        this(limit, place, problem, remedy, null);
    }

    /** The correction. */
    public String remedy() {
        return remedy;
    }
}
