package io.ratelimited.redis;

import java.io.Serial;

/** Redis did not decide in time, and the limit says {@link OnFailure#THROW}, or the operation has no other way. */
public final class RedisUnavailableException extends RuntimeException {

    @Serial
    private static final long serialVersionUID = 1L;

    RedisUnavailableException(String message, Throwable cause) {
        super(message, cause);
    }
}
