package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.redis.internals.script.ScriptBlocks;
import io.ratelimited.redis.internals.script.ScriptFamily;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The decision about one call.
 *
 * @param outcome nanoseconds to wait, 0 or more, of an admitted call; else the complement of its retry-after, or {@link
 *     #NEVER} or {@link #UNKNOWN}
 * @param remaining permits left
 * @param reset nanoseconds until the budget is full
 * @param mark the script needs its text to give the permits back; empty when nothing was taken in Redis
 * @param parameters under which it was decided
 * @param source the place of the decision
 * @param decidedAt when the script decided: microseconds since 1970, by its time; 0 if that is not known
 * @param block of a refused call whose key is blocked; its outcome is that of the budget, or a retry at once
 */
record ScriptReply(
        long outcome,
        long remaining,
        long reset,
        Object mark,
        ScriptParameters parameters,
        Source source,
        long decidedAt,
        ScriptBlocks.@Nullable State block) {

    static final long NEVER = Long.MIN_VALUE;
    static final long UNKNOWN = Long.MIN_VALUE + 1;

    /** As in the scripts. */
    private static final long SCRIPT_NEVER = -9007199254740991L;

    private static final long SCRIPT_UNKNOWN = -9007199254740990L;

    ScriptReply(long outcome, long remaining, long reset, Object mark, ScriptParameters parameters, Source source) {
        this(outcome, remaining, reset, mark, parameters, source, 0, null);
    }

    /** The decision of a limit that is closed or unlimited. */
    static ScriptReply constant(ScriptParameters parameters) {
        boolean open = parameters.limit().rate().isUnlimited();
        return new ScriptReply(open ? 0 : NEVER, open ? Long.MAX_VALUE : 0, 0, "", parameters, Source.MEMORY);
    }

    /** A decision of this process alone, while Redis is away. */
    static ScriptReply local(long outcome, long remaining, ScriptParameters parameters) {
        return new ScriptReply(outcome, remaining, 0, "", parameters, Source.FALLBACK);
    }

    /** The refusal of a call whose key this node knows to be blocked, and of whose budget it knows nothing. */
    static ScriptReply blocked(ScriptBlocks.State block, ScriptParameters parameters, Source source) {
        return new ScriptReply(~1, 0, 0, "", parameters, source, 0, block);
    }

    /** The refusal of every call, while Redis is away. */
    static ScriptReply unavailable(ScriptParameters parameters) {
        return new ScriptReply(UNKNOWN, 0, 0, "", parameters, Source.UNAVAILABLE);
    }

    /** Makes the reply from the decision of a script. */
    static ScriptReply of(ScriptFamily.Decided decided, ScriptParameters parameters) {
        return new ScriptReply(
                outcome(decided.outcome()),
                decided.remaining(),
                TimeUnit.MICROSECONDS.toNanos(decided.reset()),
                decided.mark(),
                parameters,
                Source.REDIS);
    }

    /** From the outcome in a reply, in microseconds: those of a state that no script has written may not fit. */
    private static long outcome(long micros) {
        if (micros == SCRIPT_NEVER) {
            return NEVER;
        }
        if (micros == SCRIPT_UNKNOWN) {
            return UNKNOWN;
        }
        return micros >= 0 ? TimeUnit.MICROSECONDS.toNanos(micros) : ~TimeUnit.MICROSECONDS.toNanos(-micros);
    }

    /**
     * The decision with the present budget, as far as this node knows it.
     *
     * @param excess permits that were taken since; those of a negative number were given back
     * @param elapsed nanoseconds since the decision
     */
    ScriptReply settled(long excess, long elapsed) {
        if (parameters.isConstant()) {
            return this;
        }
        long capacity = parameters.limit().capacity();
        long untilFull = Math.max(0, reset - elapsed);
        long before = untilFull == 0 ? capacity : remaining;
        long left = Math.max(0, Math.min(capacity, before - Math.min(excess, capacity)));
        if (parameters.limit().algorithm().family() == Family.WINDOW) {
            // The taken permits count from now on, unless a window of the calendar has begun already.
            boolean begins = excess > 0
                    && (untilFull == 0 || !parameters.limit().algorithm().followsCalendar());
            return budget(left, left == capacity ? 0 : begins ? Math.max(reset, parameters.windowNanos()) : untilFull);
        }
        long cost = parameters.cost().nanos(Math.abs(excess));
        untilFull = Math.max(0, untilFull + (excess > 0 ? cost : -cost));
        // A lease holds permits that are not in Redis any more.
        return budget(source == Source.LEASE ? left : parameters.remaining(untilFull), untilFull);
    }

    private ScriptReply budget(long left, long untilFull) {
        return new ScriptReply(outcome, left, untilFull, mark, parameters, source, decidedAt, block);
    }

    boolean admitted() {
        return outcome >= 0;
    }

    /** Refused for good: more permits than the limit ever has. */
    boolean never() {
        return outcome == NEVER;
    }

    /** Refused, with a time at which to try again. */
    boolean hasRetry() {
        return outcome < 0 && outcome != NEVER && outcome != UNKNOWN;
    }

    /** Nanoseconds after which a refused call with a retry would go. */
    long retryNanos() {
        return block == null ? ~outcome : Math.max(~outcome, block.leftNanos());
    }

    ScriptReply withOutcome(long value) {
        return new ScriptReply(value, remaining, reset, mark, parameters, source, decidedAt, value >= 0 ? null : block);
    }

    /** The reply to a call that is rejected by the block of its key, and by nothing else. */
    ScriptReply byBlockAlone() {
        return withOutcome(block == null ? 0 : ~1);
    }

    /** The reply with the block of its key; an admitted call has none. */
    ScriptReply withBlock(ScriptBlocks.@Nullable State state) {
        return admitted() || state == null || state.leftNanos() <= 0
                ? this
                : new ScriptReply(outcome, remaining, reset, mark, parameters, source, decidedAt, state);
    }

    /** The reply of a script that has reported its time. */
    ScriptReply decidedAt(long micros) {
        return new ScriptReply(outcome, remaining, reset, mark, parameters, source, micros, block);
    }

    Decision decision() {
        Decision decision = new Decision(
                parameters.limit().name(),
                admitted(),
                Duration.ofNanos(Math.max(0, outcome)),
                hasRetry() ? Duration.ofNanos(~outcome) : null,
                never(),
                remaining,
                Duration.ofNanos(reset),
                source);
        return block == null ? decision : decision.blockedFor(Duration.ofNanos(block.leftNanos()));
    }
}
