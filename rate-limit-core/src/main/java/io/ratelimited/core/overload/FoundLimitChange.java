package io.ratelimited.core.overload;

/**
 * A change of the adaptive limit of {@code ADAPTIVE}. Immutable.
 *
 * <p>Experimental: may change in a minor release.
 *
 * @param nanos the time of the change, in nanoseconds of the ticker of the limiter
 * @param from previous limit, in calls in flight
 * @param to new limit, in calls in flight
 */
public record FoundLimitChange(long nanos, int from, int to, Reason reason) {

    /** The reason for a change. */
    public enum Reason {
        /** The limiter has started; calls are not limited yet. */
        START,
        /** There is no overload any more, or calls are as fast as with lower concurrency: more calls are admitted, or all. */
        ROOM,
        /** Concurrency increased throughput. */
        SERVES_MORE,
        /** Concurrency added latency, not throughput. */
        SERVES_NO_MORE,
        /** Many responses were late, or met an overloaded remote service. */
        LATE,
        /** The bounds of the limit were changed. */
        BOUNDS
    }
}
