package io.ratelimited.core;

import org.jspecify.annotations.Nullable;

/** A call that requests permits of one limit. Its values do not change during the decision. */
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

    /** The number of permits; 0 uses none. */
    long permits();

    /** The maximum wait that is possible now, in nanoseconds, inclusive; 0 for none. */
    long maxWaitNanos();

    /**
     * The maximum wait that the policy of the limit allows, in nanoseconds, inclusive. A rejection is a violation ({@link
     * Limit#block}) only if the call would have to wait longer. The value exceeds {@link #maxWaitNanos} if the call has
     * waited already, or if no thread is available to wait.
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

    /** Returns whether blocks of its key ({@link Limit#block}) do not apply to the call, and the call starts none. */
    default boolean isExemptFromBlocks() {
        return false;
    }

    /**
     * Returns whether other limits of the call decide later, or may have it wait, so that its permits may be refunded because
     * of them. Until the caller {@link Reservation#keep keeps} or refunds them, a rejection that they may have caused is not a
     * violation. Otherwise they count like the permits of any other call.
     */
    default boolean isUndecided() {
        return false;
    }
}
