package io.ratelimited.redis.limiter;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.redis.script.PermitCost;
import io.ratelimited.redis.script.ScriptBlocks;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * A refusal that is remembered until its retry-after, counted from when the command was sent: until then Redis would refuse
 * again, so that an exhausted key costs it nothing. For one second at the most, because a permit given back, a reset or a new
 * limit on another node may end it sooner. Immutable.
 *
 * @param parameters under which it was refused
 * @param until the time at which it is to be forgotten
 * @param due the time at which the budget would admit the refused call
 * @param block of its key; null if it was not blocked
 * @param blockedUntil the end of that
 * @param fullAt the time at which the budget is full
 * @param admittedWith the requests to other limits of the call that the same script admitted
 */
record Denial(
        ScriptParameters parameters,
        long permits,
        long maxWaitMicros,
        long until,
        long due,
        long remaining,
        long fullAt,
        ScriptBlocks.@Nullable State block,
        long blockedUntil,
        List<?> admittedWith) {

    private static final long LONGEST = TimeUnit.SECONDS.toNanos(1);

    /**
     * @param reply a refusal with a retry-after
     * @param hold nanoseconds for which nobody asks again, even if the retry-after is shorter
     */
    static Denial of(PermitRequest call, ScriptReply reply, long sentAt, long hold, List<?> admittedWith) {
        long retry = Math.max(hold, reply.retryNanos());
        ScriptBlocks.State block = reply.block();
        return new Denial(
                reply.parameters(),
                call.permits(),
                call.maxWaitMicros(),
                sentAt + Math.min(LONGEST, retry),
                sentAt + Math.max(hold, ~reply.outcome()),
                reply.remaining(),
                sentAt + reply.reset(),
                block,
                sentAt + (block == null ? 0 : block.leftNanos()),
                admittedWith);
    }

    /** The refusal that Redis would give to a call now; null if that is not known. */
    @Nullable
    ScriptReply refusal(ScriptParameters current, long number, long longestWaitMicros, long now) {
        if (parameters != current || maxWaitMicros != longestWaitMicros || permits > number || now - until >= 0) {
            return null;
        }
        long dueThen = due;
        if (number > permits) {
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
        return block == null || blockedUntil - now <= 0
                ? refusal
                : refusal.withBlock(block.after(block.leftNanos() - (blockedUntil - now)));
    }
}
