package io.ratelimited.redis.internals.connection;

import org.jspecify.annotations.Nullable;

/**
 * Decides whether a server may be asked. A closed breaker counts failures: five in a row, or half of the last twenty, open
 * it, and so does a server that is silent or takes no writes. While it is open, nobody asks the server but a probe, until one succeeds.
 * Thread-safe.
 */
final class Breaker {

    private static final int IN_A_ROW = 5;
    private static final int WINDOW = 20;

    /** The present outage; null while the breaker is closed. */
    private volatile @Nullable Object outage;
    /** One bit a call, the latest lowest; 1 for a failure. Guarded by this. */
    private long history;
    /** Whether {@link #history} may have a bit set: keeps the lock out of the way while all is well. */
    private volatile boolean troubled;

    boolean isOpen() {
        return outage != null;
    }

    /** An object of its own for each outage; null while the breaker is closed. */
    @Nullable
    Object outage() {
        return outage;
    }

    void succeeded() {
        if (troubled) {
            synchronized (this) {
                history = history << 1 & ((1L << WINDOW) - 1);
                troubled = history != 0;
            }
        }
    }

    /** Counts a failure; true when this one has opened the breaker. */
    synchronized boolean failed() {
        troubled = true;
        history = (history << 1 | 1) & ((1L << WINDOW) - 1);
        boolean inARow = Long.numberOfTrailingZeros(~history) >= IN_A_ROW;
        return (inARow || Long.bitCount(history) >= WINDOW / 2) && open();
    }

    /** True when the breaker was closed. */
    synchronized boolean open() {
        boolean opened = outage == null;
        if (opened) {
            outage = new Object();
        }
        return opened;
    }

    synchronized void close() {
        history = 0;
        troubled = false;
        outage = null;
    }
}
