package io.ratelimited.core;

import java.util.List;
import java.util.concurrent.CompletionStage;

/**
 * A limiter that can decide several limits on one call in one step, without the moment between asking and charging that
 * {@link AllOf} otherwise leaves to other callers.
 */
public interface JointRateLimiter extends RateLimiter {

    /** Whether this limiter can decide these claims, one of which is its own, in one step. */
    boolean canJoin(List<Claim> claims);

    /**
     * Takes all claims or none.
     *
     * @return the reservations in the order of the claims; or a single one, made by {@link AllOf#refused}
     */
    List<Reservation> reserveTogether(List<Claim> claims);

    /** {@link #reserveTogether} for callers that must not block. {@link AllOf} waits for the stage and does not cancel it. */
    CompletionStage<List<Reservation>> reserveTogetherAsync(List<Claim> claims);
}
