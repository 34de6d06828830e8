package io.ratelimited.redis;

/**
 * Keeps calls from waiting for a part of Redis that does not answer. Closed, it counts failures; five in a row, or half
 * of the last twenty, open it, and then nobody asks Redis but a single probe from time to time, until one succeeds.
 *
 * <p>Thread-safe.
 */
final class Breaker {

    private static final int IN_A_ROW = 5;
    private static final int WINDOW = 20;
    private static final long FIRST_PAUSE = 250;
    private static final long LONGEST_PAUSE = 500;

    private volatile boolean open;
    /** One bit a call, the latest lowest; 1 for a failure. Guarded by this. */
    private long history;
    /** Whether {@link #history} may have a bit set: keeps the lock out of the way while all is well. */
    private volatile boolean troubled;

    private long pause = FIRST_PAUSE;

    boolean isOpen() {
        return open;
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
        if (open || !(inARow || Long.bitCount(history) >= WINDOW / 2)) {
            return false;
        }
        open = true;
        pause = FIRST_PAUSE;
        return true;
    }

    /** Milliseconds until the next probe; longer each time. */
    synchronized long nextPause() {
        long current = pause;
        pause = Math.min(LONGEST_PAUSE, 2 * pause);
        return current;
    }

    synchronized void close() {
        history = 0;
        troubled = false;
        open = false;
    }
}
