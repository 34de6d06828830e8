package io.ratelimited.core.several;

import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import java.util.List;
import java.util.concurrent.CompletionStage;

/**
 * A limiter whose backend decides several limits on one call together, without the moment between asking and charging that
 * {@link AllOf} otherwise leaves to other callers. It does not block in {@link #reserveAsync} and {@link #peekAsync}.
 */
public interface JointRateLimiter extends RateLimiter {

    /** Whether {@link #reserveAll} of this limiter also decides for another one. */
    boolean decidesWith(RateLimiter other);

    /**
     * Takes all claims or none. A place for a call in flight is asked for later where {@link AllOf#placeLater} says so.
     *
     * @param claims of this limiter, and of others that it {@link #decidesWith decides with}
     * @param othersWaitNanos how long the call has to wait for limits that are not among the claims; 0 for not at all
     * @return the reservations in the order of the claims; or a single one, made by {@link AllOf#refused}
     */
    List<Reservation> reserveAll(List<Claim> claims, long othersWaitNanos);

    /** {@link #reserveAll} for callers that must not block. {@link AllOf} waits for the stage and does not cancel it. */
    CompletionStage<List<Reservation>> reserveAllAsync(List<Claim> claims, long othersWaitNanos, Callbacks callbacks);
}
