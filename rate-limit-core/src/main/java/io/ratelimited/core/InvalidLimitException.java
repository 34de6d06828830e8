package io.ratelimited.core;

import java.io.Serial;
import org.jspecify.annotations.Nullable;

/**
 * An attribute of a limit is invalid. The message starts with the name of the attribute, and has its value and the valid
 * values.
 */
public final class InvalidLimitException extends IllegalArgumentException {

    @Serial
    private static final long serialVersionUID = 1L;

    private final String attribute;

    /**
     * @param attribute named as in the annotation
     * @param problem the rest of the message: the value and the valid values
     */
    public InvalidLimitException(String attribute, String problem) {
        this(attribute, problem, null);
    }

    InvalidLimitException(String attribute, String problem, @Nullable Throwable cause) {
        super(attribute + " " + problem, cause);
        this.attribute = attribute;
    }

    /** The invalid attribute, named as in the annotation, such as {@code maxConcurrent}. */
    public String attribute() {
        return attribute;
    }
}
