package io.ratelimited.redis;

import java.io.Serial;

/** Redis did not decide in time, and the limit says {@link OnFailure#THROW}, or the operation has no other way. */
public final class RedisUnavailableException extends RuntimeException {

    @Serial
    private static final long serialVersionUID = 1L;

    /** @param undone the failure of the operation, as in {@code limit 'x' could not be decided} */
    RedisUnavailableException(String undone, Throwable cause) {
        super(undone + " by Redis: " + (cause.getMessage() == null ? cause : cause.getMessage()), cause);
    }
}
