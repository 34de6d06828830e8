package io.ratelimited.spring;

import java.io.Serial;
import org.jspecify.annotations.Nullable;

/** A limit is configured in a way that cannot be meant. Carries what a failure analysis needs to say. */
public final class InvalidRateLimitException extends RuntimeException {

    @Serial
    private static final long serialVersionUID = 1L;

    private final String remedy;

    /**
     * Describes a mistake.
     *
     * @param limit name of the limit
     * @param place annotation or property at fault
     * @param problem what is wrong, with the value
     * @param remedy what to do
     */
    InvalidRateLimitException(String limit, String place, String problem, String remedy, @Nullable Throwable cause) {
        super("Limit '" + limit + "' (" + place + "): " + problem, cause);
        this.remedy = remedy;
    }

    InvalidRateLimitException(String limit, String place, String problem, String remedy) {
        this(limit, place, problem, remedy, null);
    }

    /** What to do about it. */
    public String remedy() {
        return remedy;
    }
}
