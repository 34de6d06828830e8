package io.ratelimited.redis.simulation;

/** An error that a server replies. Public as {@link Lua}. */
public final class RedisError extends RuntimeException {

    private static final long serialVersionUID = 1L;

    public RedisError(String message) {
        super(message, null, false, false);
    }
}
