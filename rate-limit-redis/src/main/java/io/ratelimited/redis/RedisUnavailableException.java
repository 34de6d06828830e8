package io.ratelimited.redis;

import java.io.Serial;

/** Redis did not respond in time, and the policy of the limit is {@link OnFailure#THROW}, or the operation needs Redis. */
public final class RedisUnavailableException extends RuntimeException {

    @Serial
    private static final long serialVersionUID = 1L;

    /** @param undone the failed operation, as in {@code limit 'x' could not be decided} */
    RedisUnavailableException(String undone, Throwable cause) {
        super(undone + " by Redis: " + (cause.getMessage() == null ? cause : cause.getMessage()), cause);
    }
}
