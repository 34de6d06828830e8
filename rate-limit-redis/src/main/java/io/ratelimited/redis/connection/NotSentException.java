package io.ratelimited.redis.connection;

import java.io.Serial;

/** A command has certainly not been sent, and so has changed nothing in Redis. */
final class NotSentException extends RuntimeException {

    @Serial
    private static final long serialVersionUID = 1L;

    /** Without a stack trace: thrown for every call of an outage. */
    NotSentException(String message) {
        super(message, null, false, false);
    }
}
