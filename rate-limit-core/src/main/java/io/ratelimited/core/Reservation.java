package io.ratelimited.core;

import java.util.concurrent.CompletableFuture;

/**
 * Permits that were taken for one call, or its rejection. Obtained from {@link RateLimiter#reserve}. Thread-safe; all operations
 * are idempotent.
 *
 * <p>The life of a reservation: {@link #await} or {@link #awaitAsync} until the call can proceed, then the call, then {@link
 * #release}. A caller that gives up before the call calls {@link #cancel}. A caller that learns the real cost of the call
 * calls {@link #settle} before {@link #release}.
 */
public interface Reservation {

    /** Returns whether the call was rejected; an admitted call may still have to wait. */
    boolean isRefused();

    /** Nanoseconds from the decision until the call can proceed; 0 when at once, when rejected, or when not known yet. */
    long waitNanos();

    /** Returns whether {@link #await} may have to wait, for time to pass or for other calls to end. */
    default boolean mayWait() {
        return waitNanos() > 0;
    }

    /** The decision, with the budget as the call has left it. */
    Decision decision();

    /**
     * Sleeps until the call can proceed.
     *
     * @return true when the call can proceed; false when it is rejected: by the decision, because {@link Limit#maxWaiting}
     *     callers already sleep, or because no call in flight ended in time
     * @throws InterruptedException when interrupted; the permits have been refunded
     */
    boolean await() throws InterruptedException;

    /**
     * {@link #await} without a thread: completes when the call can proceed or is rejected. Cancelling the future gives the
     * permits back.
     */
    CompletableFuture<Boolean> awaitAsync();

    /**
     * Gives permits back, as far as no later caller is moved and no permit is created. A reservation whose wait is not
     * over refunds its permits less those reserved later; one without a wait refunds its permits.
     */
    void cancel();

    /**
     * Charges the real cost of the call instead of the reserved permits. The first of {@link #cancel} and this method
     * counts; later ones have no effect. A reservation that is never settled stays charged with its reserved permits.
     *
     * <p>If the call has cost less, the difference is refunded by the rules of {@link #cancel}: at most the difference,
     * and no permit is created. If it has cost more, the difference is taken at once and rejects nobody who was admitted
     * before; later callers wait until it is paid. In any window, the spent permits exceed the limit at most by those that
     * calls used beyond their reservations. The excess counts in the present window or slot; where a limit follows virtual
     * time, it becomes debt, of some decades at most.
     *
     * <p>Under a limit that {@link Limit#blocksByCharge blocks by charge}, a cost of 1 or more starts a block if what calls were
     * charged leaves the key without a permit, however long the next call would wait under its policy.
     *
     * @param permits the cost of the call, 0 or more; no effect if the call was rejected
     * @throws IllegalArgumentException when the permits are negative
     * @throws UnsupportedOperationException when the limit counts calls in flight, which cost nothing but their place
     */
    void settle(long permits);

    /**
     * {@link #settle(long)} of a call whose cost may say nothing about its caller: it was cancelled before its end, or its key is
     * exempt from blocks.
     *
     * @param mayBlock whether the cost may begin a {@link Limit#block}
     */
    default void settle(long permits, boolean mayBlock) {
        settle(permits);
    }

    /**
     * The caller of a call that was {@link Call#isUndecided undecided} does not give the permits back because of another limit.
     * Whoever was rejected by them meanwhile has {@link Limit#block violated} the limit, unless other permits have come back.
     */
    default void keep() {}

    /** Ends the call, which then does not count as in flight. Without effect on limits that count over time. */
    void release();

    /**
     * {@link #release()} for callers who know how the call has ended, from which {@link Algorithm#ADAPTIVE} learns. The first of
     * all releases counts; {@link #release()} is an answer, {@link #cancel} a call that was not made.
     */
    default void release(End end) {
        release();
    }

    /**
     * The call begins to wait for its caller: for a part of what the caller sends, or until the caller has taken a part of the
     * answer. Until {@link #callerCame} {@link Algorithm#ADAPTIVE} takes it for no call that waits for the service; it keeps its
     * place. Without effect on a call that waits for its caller already, or that has ended.
     */
    default void awaitCaller() {}

    /**
     * The call goes on that has waited for its caller.
     *
     * @param nanos for how long it has waited, 0 or more, which {@link Algorithm#ADAPTIVE} does not count as time of the service
     */
    default void callerCame(long nanos) {}
}
