package io.ratelimited.redis.simulation;

/** An error that a server replies. */
final class RedisError extends RuntimeException {

    private static final long serialVersionUID = 1L;

    RedisError(String message) {
        super(message, null, false, false);
    }
}
