package io.ratelimited.core.several;

import io.ratelimited.core.Call;
import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import java.util.List;
import java.util.concurrent.CompletionStage;

/**
 * A limiter whose backend decides several limits on one call in one step, without the gap between check and charge that
 * {@link AllOf} otherwise has. {@link #reserveAsync}, {@link #peekAsync} and {@link #lookAsync} do not block.
 */
public interface JointRateLimiter extends RateLimiter {

    /** Returns the time of this limiter in nanoseconds, from which the maximum wait of a call is counted. */
    default long nanos() {
        return Ticker.system().nanos();
    }

    /** Returns whether {@link #reserveAll} of this limiter also decides for another one. */
    boolean decidesWith(RateLimiter other);

    /**
     * Takes the permits of all claims or of none, and refunds them if it fails halfway. {@link AllOf#reserveEach} does so for
     * claims that cannot be decided in one step, such as permits for calls in flight, which a call that waits takes later. A
     * rejection can be a violation, as in {@link #reserve}.
     *
     * @param claims of this limiter, and of others that it {@link #decidesWith decides with}; no two of the same limit and key
     * @param othersWaitNanos how long the call has to wait for limits that are not among the claims; 0 if it does not wait
     * @return the reservations in the order of the claims; or a single rejection from {@link AllOf#refused}
     */
    List<Reservation> reserveAll(List<Claim> claims, long othersWaitNanos);

    /** {@link #reserveAll} for callers that must not block. {@link AllOf} waits for the stage and does not cancel it. */
    CompletionStage<List<Reservation>> reserveAllAsync(List<Claim> claims, long othersWaitNanos, Callbacks callbacks);

    /**
     * {@link #peek} for a call under several limits, before it is charged, or after another limit has rejected it, so that the
     * rejection also names these limits. Checks them at the same time, and takes no permits. A key whose caller has other numbers
     * now goes on by them, as if the call had been rejected. A remote backend caches rejections, so that a flood of rejected
     * calls does not reach it.
     *
     * @param claims of this limiter, and of others that it {@link #decidesWith decides with}
     * @param knownNanos how long the decisions can be cached, at most one second; 0 if they must be new
     * @return the decisions in the order of the claims
     */
    default List<Decision> look(List<Claim> claims, long knownNanos) {
        return claims.stream().map(claim -> claim.limiter().peek(claim)).toList();
    }

    /** {@link #look} about a single call, for callers that must not block. */
    default CompletionStage<Decision> lookAsync(Call call, long knownNanos) {
        return peekAsync(call);
    }
}
