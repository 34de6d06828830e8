package io.ratelimited.core.several;

import io.ratelimited.core.Call;
import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import java.util.List;
import java.util.concurrent.CompletionStage;

/**
 * A limiter whose backend decides several limits on one call together, without the moment between asking and charging that
 * {@link AllOf} otherwise leaves to other callers. It does not block in {@link #reserveAsync}, {@link #peekAsync} and {@link
 * #lookAsync}.
 */
public interface JointRateLimiter extends RateLimiter {

    /** Returns whether {@link #reserveAll} of this limiter also decides for another one. */
    boolean decidesWith(RateLimiter other);

    /**
     * Takes all claims or none, and gives back what it has taken if it fails halfway. A place for a call in flight is left for
     * later where {@link AllOf#placeLater} says so. A refusal is judged as {@link #reserve} does.
     *
     * @param claims of this limiter, and of others that it {@link #decidesWith decides with}
     * @param othersWaitNanos how long the call has to wait for limits that are not among the claims; 0 for not at all
     * @return the reservations in the order of the claims; or a single one, made by {@link AllOf#refused}
     */
    List<Reservation> reserveAll(List<Claim> claims, long othersWaitNanos);

    /** {@link #reserveAll} for callers that must not block. {@link AllOf} waits for the stage and does not cancel it. */
    CompletionStage<List<Reservation>> reserveAllAsync(List<Claim> claims, long othersWaitNanos, Callbacks callbacks);

    /**
     * {@link #peek} for a call that another limit has refused, to name this limit in the refusal. Never admits a call. A
     * backend that is far away remembers refusals, so that a flood of refused calls does not reach it.
     *
     * @param knownNanos how long the answer may serve the same question again: more than 0, one second at the most
     */
    default Decision look(Call call, long knownNanos) {
        return peek(call);
    }

    /** {@link #look} for callers that must not block. */
    default CompletionStage<Decision> lookAsync(Call call, long knownNanos) {
        return peekAsync(call);
    }
}
