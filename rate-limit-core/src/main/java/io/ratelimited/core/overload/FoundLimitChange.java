package io.ratelimited.core.overload;

/**
 * A change of the limit that {@code ADAPTIVE} has found. Immutable.
 *
 * <p>Experimental: may change in a minor release.
 *
 * @param nanos the time of the change, as the ticker of the limiter counts it
 * @param from calls in flight that were the limit before
 * @param to calls in flight that are the limit now
 */
public record FoundLimitChange(long nanos, int from, int to, Reason reason) {

    /** The reason for a change. */
    public enum Reason {
        /** The limiter has started; nothing is limited. */
        START,
        /** Nothing is short any more, or calls are as quick as with fewer in flight: more are admitted, or as many as may be. */
        ROOM,
        /** More calls in flight served more. */
        SERVES_MORE,
        /** More calls in flight served no more, and took longer. */
        SERVES_NO_MORE,
        /** Many answers came too late, or met an overloaded service. */
        LATE,
        /** The bounds of the limit were changed. */
        BOUNDS
    }
}
