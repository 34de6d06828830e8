package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.redis.internals.script.PermitCost;
import io.ratelimited.redis.internals.script.ScriptBlocks;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A refusal that is remembered until its retry-after, counted from when the command was sent: until then Redis would refuse
 * again, so that an exhausted key costs it nothing. For one second at the most, because a permit given back, a reset or a new
 * limit on another node may end it sooner. Immutable.
 *
 * @param parameters under which it was refused
 * @param patienceMicros the rejection was no violation for callers who are more patient: {@link PermitRequest#patienceMicros};
 *     {@link Long#MAX_VALUE} if the call was exempt from blocks
 * @param until the time at which it is to be forgotten
 * @param blockedAlone whether the budget would have admitted the call, so that {@code due} says nothing about more permits
 * @param due the time at which the budget would admit the refused call
 * @param block of its key; null if it was not blocked
 * @param blockedUntil the end of that
 * @param fullAt the time at which the budget is full
 */
record Denial(
        ScriptParameters parameters,
        long permits,
        long maxWaitMicros,
        long patienceMicros,
        long until,
        boolean blockedAlone,
        long due,
        long remaining,
        long fullAt,
        ScriptBlocks.@Nullable State block,
        long blockedUntil) {

    private static final long LONGEST = TimeUnit.SECONDS.toNanos(1);

    /**
     * @param reply a refusal with a retry-after
     * @param hold nanoseconds for which nobody asks again, even if the retry-after is shorter
     */
    static Denial of(PermitRequest call, ScriptReply reply, long sentAt, long hold) {
        long retry = Math.max(hold, reply.retryNanos());
        ScriptBlocks.State block = reply.block();
        return new Denial(
                reply.parameters(),
                call.permits(),
                call.maxWaitMicros(),
                call.exempt() ? Long.MAX_VALUE : call.patienceMicros(),
                sentAt + Math.min(LONGEST, retry),
                block != null && ~reply.outcome() <= 1_000,
                sentAt + Math.max(hold, ~reply.outcome()),
                reply.remaining(),
                sentAt + reply.reset(),
                block,
                sentAt + (block == null ? 0 : block.leftNanos()));
    }

    /** The refusal that Redis would give to a call now; null if that is not known. */
    @Nullable
    ScriptReply refusal(ScriptParameters current, Wanted wanted, long now) {
        long number = wanted.permits();
        long longestWaitMicros = PermitRequest.micros(wanted.maxWait());
        boolean blocked = block != null && blockedUntil - now > 0;
        // A violation has to reach Redis, and the end of a block is not for those who are exempt.
        if (wanted.exempt() || (!blocked && PermitRequest.micros(wanted.patience()) < patienceMicros)) {
            return null;
        }
        if (parameters != current || maxWaitMicros != longestWaitMicros || permits > number || now - until >= 0) {
            return null;
        }
        long dueThen = due;
        if (number > permits) {
            if (blockedAlone) {
                return null;
            }
            Algorithm algorithm = current.limit().algorithm();
            // The next window of the calendar has room for any call, unless some wait for it.
            boolean opens = algorithm.followsCalendar() && due == fullAt;
            if (algorithm.family() == Family.WINDOW && !opens) {
                return null;
            }
            if (algorithm.family() == Family.BUCKET) {
                PermitCost.Time cost = current.cost().of(number);
                PermitCost.Time denied = current.cost().of(permits);
                if (cost.parts() != denied.parts()) {
                    return null;
                }
                dueThen += (cost.micros() - denied.micros()) * 1000;
            }
        }
        ScriptReply refusal = new ScriptReply(
                ~Math.max(1, dueThen - now), remaining, Math.max(0, fullAt - now), "", current, Source.DENY_CACHE);
        return block == null || !blocked
                ? refusal
                : refusal.withBlock(block.after(block.leftNanos() - (blockedUntil - now)));
    }
}
