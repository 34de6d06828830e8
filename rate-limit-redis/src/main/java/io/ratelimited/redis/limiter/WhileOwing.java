package io.ratelimited.redis.limiter;

import io.ratelimited.redis.connection.GuardedConnection;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;

/**
 * What a limiter has to tell Redis as the first thing after an outage. The connection knows the limiter only while there is
 * something: one that nobody uses any more, and that owes nothing, is garbage. Thread-safe.
 */
final class WhileOwing {

    private final GuardedConnection connection;
    private final BooleanSupplier owes;
    private final Runnable onRecovery;
    private final AtomicBoolean known = new AtomicBoolean();

    /** @param onRecovery tells Redis; must not block */
    WhileOwing(GuardedConnection connection, BooleanSupplier owes, Runnable onRecovery) {
        this.connection = connection;
        this.owes = owes;
        this.onRecovery = onRecovery;
    }

    /**
     * There is something to tell, from now on.
     *
     * @return whether the connection did not know
     */
    boolean begin() {
        if (known.get() || known.getAndSet(true)) {
            return false;
        }
        connection.onRecovery(onRecovery);
        return true;
    }

    /**
     * Looks whether there is still something to tell.
     *
     * @return whether there is
     */
    boolean goesOn() {
        if (owes.getAsBoolean()) {
            return true;
        }
        connection.forget(onRecovery);
        known.set(false);
        // It may have begun again meanwhile, and been taken for known.
        return owes.getAsBoolean() && begin();
    }
}
