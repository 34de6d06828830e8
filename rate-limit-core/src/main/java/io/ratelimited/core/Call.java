package io.ratelimited.core;

import org.jspecify.annotations.Nullable;

/** A call as it asks one limit for permits. Its values do not change while it is decided. */
public interface Call {

    /** A call that states nothing else. */
    static Call of(@Nullable Object key, long permits, long maxWaitNanos) {
        return of(key, permits, maxWaitNanos, RateLimiter.NO_RANK);
    }

    /** {@link #of(Object, long, long)} of a priority. */
    static Call of(@Nullable Object key, long permits, long maxWaitNanos, int rank) {
        record Stated(@Nullable Object key, long permits, long maxWaitNanos, int rank) implements Call {}
        return new Stated(key, permits, maxWaitNanos, rank);
    }

    /** The key whose budget the call uses; null for a limit without keys. */
    @Nullable
    Object key();

    /** The number of permits; 0 asks for nothing. */
    long permits();

    /** The longest wait in nanoseconds that is possible now, inclusive; 0 for none. */
    long maxWaitNanos();

    /**
     * The longest wait in nanoseconds that the policy of the limit allows, inclusive: a rejection is a violation
     * ({@link Limit#block}) only if the call would have to wait for longer. It is longer than {@link #maxWaitNanos} where the
     * call has waited already, or no thread may sleep.
     */
    default long patienceNanos() {
        return maxWaitNanos();
    }

    /**
     * The number of the priority of the call, as {@link Limit#rank} counts; {@link RateLimiter#NO_RANK}, or another number that is
     * none, for {@link Limit#rankOfOthers}. Limits without {@link Limit#priorities} do not read it.
     */
    default int rank() {
        return RateLimiter.NO_RANK;
    }

    /** Returns whether the call is admitted although its key is {@link Limit#block blocked}, and starts no block. */
    default boolean isExemptFromBlocks() {
        return false;
    }

    /**
     * Returns whether other limits of the call decide later, so that its permits may be given back in the next moment. Until the
     * caller {@link Reservation#keep keeps} them or gives them back, a rejection that they may have caused is no violation. They
     * count like those of any other call in all other respects.
     */
    default boolean isUndecided() {
        return false;
    }
}
