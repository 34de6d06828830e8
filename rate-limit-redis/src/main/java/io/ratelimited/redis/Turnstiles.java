package io.ratelimited.redis;

import java.util.concurrent.ConcurrentHashMap;

/** The turnstiles of one limit; each exists while a call stands at it. Thread-safe. */
final class Turnstiles {

    private final RedisRateLimiter limiter;
    private final ConcurrentHashMap<String, Turnstile> turnstiles = new ConcurrentHashMap<>();

    Turnstiles(RedisRateLimiter limiter) {
        this.limiter = limiter;
    }

    /** Lets every head ask: there may be more room now. */
    void serveAll() {
        turnstiles.values().forEach(Turnstile::serve);
    }

    /** Whether calls of the key wait for others to end. */
    boolean isOccupied(String name) {
        Turnstile turnstile = turnstiles.get(name);
        return turnstile != null && turnstile.isOccupied();
    }

    /** A call waits for others of its key to end. */
    void queue(String name, InFlight call) {
        Turnstile joined = turnstiles.compute(name, (key, present) -> {
            Turnstile turnstile = present == null ? new Turnstile(limiter, key) : present;
            turnstile.add(call);
            return turnstile;
        });
        joined.serve();
    }

    /** A call waits no more. */
    void unqueue(String name, InFlight call) {
        Turnstile turnstile = turnstiles.get(name);
        if (turnstile != null) {
            turnstile.remove(call);
            left(name);
        }
    }

    /** Removes a turnstile at which nobody stands. */
    void left(String name) {
        turnstiles.computeIfPresent(name, (key, turnstile) -> turnstile.isIdle() ? null : turnstile);
    }

    /** A call of the key has ended. */
    void serve(String name) {
        Turnstile turnstile = turnstiles.get(name);
        if (turnstile != null) {
            turnstile.serve();
        }
    }
}
