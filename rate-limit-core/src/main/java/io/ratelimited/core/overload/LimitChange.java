package io.ratelimited.core.overload;

/**
 * A change of the limit that {@code ADAPTIVE} has found. Immutable.
 *
 * @param nanos the time of the change, as the ticker of the limiter counts it
 * @param from calls in flight that were the limit before
 * @param to calls in flight that are the limit now
 */
public record LimitChange(long nanos, int from, int to, Reason reason) {

    /** The reason for a change. */
    public enum Reason {
        /** The limiter has begun; nothing is known yet. */
        START,
        /** Calls were refused or waited, although those in flight took no longer than usual. */
        ROOM,
        /** More calls in flight served more. */
        SERVES_MORE,
        /** More calls in flight served no more, and took longer. */
        SERVES_NO_MORE,
        /** Most answers came too late, or were refused by others. */
        LATE,
        /** The bounds of the limit were changed. */
        BOUNDS
    }
}
