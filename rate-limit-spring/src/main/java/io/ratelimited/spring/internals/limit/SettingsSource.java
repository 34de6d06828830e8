package io.ratelimited.spring.internals.limit;

import io.ratelimited.spring.InvalidRateLimitException;
import org.springframework.core.env.Environment;

/** The place where the settings of limits come from: the properties as Spring Boot binds them, or those of the Environment. */
public interface SettingsSource {

    /**
     * The settings for all limits, as they are at the start.
     *
     * @throws InvalidRateLimitException when one is invalid
     */
    LimitSettings settings();

    /** The number of keys that limits remember in the heap of this JVM. */
    KeyMemory memory();

    /**
     * Checks that a context sets no property of the limits that it shares otherwise than its parent, whose properties they have.
     *
     * @param there the properties of the parent
     * @throws InvalidRateLimitException when it does
     */
    void requireSame(Environment there);

    /** The error of a property that a context sets otherwise than its parent. */
    static InvalidRateLimitException differing(Object property, String here, String there) {
        return new InvalidRateLimitException(
                "Property " + property + " is " + here + " in a child context, but " + there
                        + " in its parent, with which it shares its limits",
                "Set it for the parent, such as in a file that both read; or let only one of the two"
                        + " contexts have the auto-configuration of limits. [RL-116]");
    }
}
