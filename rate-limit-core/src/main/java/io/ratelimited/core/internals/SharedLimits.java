package io.ratelimited.core.internals;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.InvalidLimitException;
import io.ratelimited.core.Limit;

/** Knows which limits instances can share. The others are about the calls of one process. */
public final class SharedLimits {

    private SharedLimits() {}

    /**
     * Checks whether Redis supports a limit.
     *
     * @throws InvalidLimitException when it does not
     */
    public static void requireShareable(Limit limit) {
        if (limit.algorithm() == Algorithm.ADAPTIVE) {
            throw new InvalidLimitException(
                    "algorithm",
                    "ADAPTIVE adapts the limit of one process, which instances cannot share; set the backend to memory"
                            + " for limit '" + limit.name() + "'");
        }
        if (!limit.priorities().isEmpty()) {
            throw new InvalidLimitException(
                    "priorities",
                    "order the calls of one process, which Redis does not support: " + limit.priorities()
                            + "; remove them, or set the backend to memory for limit '" + limit.name() + "'");
        }
    }
}
