package io.ratelimited.core;

import java.util.concurrent.CompletableFuture;

/**
 * Permits that were taken for one call, or its rejection. Obtained from {@link RateLimiter#reserve}. Thread-safe; all
 * operations are idempotent.
 *
 * <p>Use a reservation in this order: {@link #await} or {@link #awaitAsync} until the call can proceed, then make the call,
 * then {@link #release}. A caller that gives up before the call uses {@link #cancel}. A caller that learns the actual cost of
 * the call uses {@link #settle} before {@link #release}. A reservation has one wait at a time: call {@link #await} or
 * {@link #awaitAsync} again only after the wait before has ended.
 */
public interface Reservation {

    /** Returns whether the call was rejected. An admitted call may still have to wait. */
    boolean isRefused();

    /**
     * Returns the nanoseconds from the decision until the call can proceed; 0 if it can proceed immediately, is rejected, or
     * the time is not known yet.
     */
    long waitNanos();

    /** Returns whether {@link #await} may have to wait, for a time or for other calls to complete. */
    default boolean mayWait() {
        return waitNanos() > 0;
    }

    /** Returns the decision, with the remaining permits after the call. */
    Decision decision();

    /**
     * Waits until the call can proceed.
     *
     * @return true if the call can proceed; false if it is rejected: by the decision, because {@link Limit#maxWaiting}
     *     callers already wait, or because no call in flight completed in time
     * @throws InterruptedException if the thread is interrupted; the permits are refunded
     */
    boolean await() throws InterruptedException;

    /**
     * {@link #await} without blocking a thread: completes when the call can proceed or is rejected. Cancelling the future
     * refunds the permits.
     */
    CompletableFuture<Boolean> awaitAsync();

    /**
     * Refunds permits, unless that would reschedule later callers or add permits. A reservation that is still waiting refunds
     * its permits minus those that were reserved later; one without a wait refunds its permits.
     */
    void cancel();

    /**
     * Charges the actual cost of the call instead of the reserved permits. Only the first call of {@link #cancel} or this
     * method has an effect. A reservation that is never settled stays charged with its reserved permits.
     *
     * <p>If the call cost less, the difference is refunded by the rules of {@link #cancel}: at most the difference, without
     * adding permits. If it cost more, the difference is charged immediately. Calls that were admitted before are not
     * affected; later callers wait until it is paid. In any window, the used permits exceed the limit at most by those that
     * calls used beyond their reservations. The excess counts in the current window or slot; under other algorithms, it
     * becomes debt, of a few decades at most.
     *
     * <p>Under a limit that {@link Limit#blocksByCharge blocks by charge}, a cost of 1 or more starts a block if the charged
     * permits leave the key without a permit, regardless of the policy.
     *
     * @param permits the cost of the call, 0 or more; no effect if the call was rejected
     * @throws IllegalArgumentException if the permits are negative
     * @throws UnsupportedOperationException if the limit counts calls in flight, which have no other cost
     */
    void settle(long permits);

    /**
     * {@link #settle(long)} for a call that may not be evidence against its caller, because it was cancelled before its end,
     * or is exempt from blocks.
     *
     * @param mayBlock whether the cost can start a {@link Limit#block}
     */
    default void settle(long permits, boolean mayBlock) {
        settle(permits);
    }

    /**
     * Confirms a call that was {@link Call#isUndecided undecided}: the permits are not refunded because of another limit.
     * Calls that were rejected meanwhile because of them have {@link Limit#block violated} the limit, unless other permits
     * were refunded.
     */
    default void keep() {}

    /** Ends the call, which then no longer counts as in flight. Has no effect on limits that count over time. */
    void release();

    /**
     * {@link #release()} with the outcome of the call, for {@link Algorithm#ADAPTIVE}. Only the first release has an effect.
     * {@link #release()} means a response, {@link #cancel} a call that was not made.
     */
    default void release(End end) {
        release();
    }

    /**
     * The call starts to wait for its caller: for a part of the request body, or until the caller has received a part of the
     * response. Until {@link #callerCame}, {@link Algorithm#ADAPTIVE} does not count it as a call that waits for the service;
     * it keeps its permit. Has no effect on a call that already waits for its caller, or that has ended.
     */
    default void awaitCaller() {}

    /**
     * The call continues after it has waited for its caller.
     *
     * @param nanos how long it has waited, 0 or more; {@link Algorithm#ADAPTIVE} does not count this as latency of the
     *     service
     */
    default void callerCame(long nanos) {}
}
