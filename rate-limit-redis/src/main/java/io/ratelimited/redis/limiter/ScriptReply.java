package io.ratelimited.redis.limiter;

import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import java.time.Duration;
import java.util.List;

/**
 * What was decided about one call.
 *
 * @param outcome nanoseconds to wait, 0 or more, of an admitted call; else the complement of its retry-after, or {@link
 *     #NEVER} or {@link #UNKNOWN}
 * @param remaining permits left
 * @param reset nanoseconds until the budget is whole
 * @param mark its text is what the script needs to give the permits back; empty when nothing was taken in Redis
 * @param parameters under which it was decided
 * @param source who decided
 */
record ScriptReply(long outcome, long remaining, long reset, Object mark, ScriptParameters parameters, Source source) {

    /** As {@code virtual_time.lua} writes it; few are ever asked for theirs. */
    private record Mark(long v, long part, long epoch, ScriptParameters.Cost cost, long instant) {

        @Override
        public String toString() {
            return v + "+" + part + '@' + epoch + '/' + cost.micros() + '+' + cost.parts() + '@' + instant;
        }
    }

    static final long NEVER = Long.MIN_VALUE;
    static final long UNKNOWN = Long.MIN_VALUE + 1;

    /** As in the scripts. */
    private static final long SCRIPT_NEVER = -9007199254740991L;

    private static final long SCRIPT_UNKNOWN = -9007199254740990L;

    /** Values of the reply to the usual calls of {@code virtual_time_usual.lua}; others have four a call. */
    private static final int USUAL = 5;

    /** What a script has decided about a call under one of its limits. */
    @SuppressWarnings("unchecked") // Arrays of a script are lists of what they hold.
    static ScriptReply ofLimit(List<Object> reply, int limit, PermitRequest call, ScriptParameters parameters) {
        List<Object> own = reply.get(0) instanceof List ? (List<Object>) reply.get(limit) : reply;
        return own.size() == USUAL ? all(own, List.of(call), parameters)[0] : of(own, 4 * limit, parameters);
    }

    /** What a script has decided about calls, in their order. */
    static ScriptReply[] all(List<Object> reply, List<PermitRequest> calls, ScriptParameters parameters) {
        ScriptReply[] replies = new ScriptReply[calls.size()];
        if (reply.size() == USUAL) {
            usual(reply, calls.get(0), parameters, replies);
            return replies;
        }
        for (int i = 0; i < replies.length; i++) {
            replies[i] = of(reply, 4 * i, parameters);
        }
        return replies;
    }

    /** Of equal calls, each after the other, by the same arithmetic as in the script. */
    private static void usual(
            List<Object> reply, PermitRequest call, ScriptParameters parameters, ScriptReply[] replies) {
        long now = (Long) reply.get(0);
        long v = (Long) reply.get(1);
        long part = (Long) reply.get(2);
        long taken = (Long) reply.get(4);
        long epoch = (Long) reply.get(3);
        long one = parameters.one;
        ScriptParameters.Cost cost = parameters.cost(call.permits());
        ScriptParameters.Cost depth = parameters.depth;
        long burst = parameters.limit().burst();
        long step = parameters.step.longValue();
        for (int i = 0; i < replies.length; i++) {
            long next = v + cost.micros();
            long nextPart = part + cost.parts();
            if (nextPart >= one) {
                next++;
                nextPart -= one;
            }
            long wait = Math.max(0, next - now + (nextPart > 0 ? 1 : 0));
            long outcome = wait * 1000;
            Object mark = "0";
            if (i < taken) {
                v = next;
                part = nextPart;
                mark = new Mark(v, part, epoch, cost, wait == 0 ? now : 0);
            }
            if (wait > call.maxWaitMicros()) {
                outcome = wait > ScriptParameters.FAR ? UNKNOWN : ~((wait - call.maxWaitMicros()) * 1000);
            }
            boolean ahead = v > now || (v == now && part > 0);
            long remaining = ahead ? 0 : Math.min(burst, ((now - v) * one - part) / step);
            long over = part + depth.parts();
            long reset = v + depth.micros() - now + (over > one ? 2 : over > 0 ? 1 : 0);
            replies[i] = new ScriptReply(outcome, remaining, Math.max(0, reset) * 1000, mark, parameters, Source.REDIS);
        }
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

    /** From the four values of a reply that begin at an index; see {@code decide.lua}. */
    static ScriptReply of(List<Object> reply, int index, ScriptParameters parameters) {
        long micros = (Long) reply.get(index);
        long outcome;
        if (micros == SCRIPT_NEVER) {
            outcome = NEVER;
        } else if (micros == SCRIPT_UNKNOWN) {
            outcome = UNKNOWN;
        } else {
            outcome = micros >= 0 ? micros * 1000 : ~(-micros * 1000);
        }
        return new ScriptReply(
                outcome,
                (Long) reply.get(index + 1),
                (Long) reply.get(index + 2) * 1000,
                reply.get(index + 3).toString(),
                parameters,
                Source.REDIS);
    }

    /**
     * The decision with the budget as it is by what this node knows.
     *
     * @param excess permits that were taken since; those of a negative number were given back
     * @param elapsed nanoseconds since the decision
     */
    ScriptReply settled(long excess, long elapsed) {
        if (parameters.isConstant()) {
            return this;
        }
        long most = parameters.limit().capacity();
        long whole = Math.max(0, reset - elapsed);
        long before = whole == 0 ? most : remaining;
        long left = Math.max(0, Math.min(most, before - Math.min(excess, most)));
        if (parameters.limit().algorithm().family() == Family.WINDOW) {
            // What is taken counts from now on, unless a window of the calendar has begun already.
            boolean begins =
                    excess > 0 && (whole == 0 || !parameters.limit().algorithm().followsCalendar());
            return budget(left, left == most ? 0 : begins ? Math.max(reset, parameters.windowNanos()) : whole);
        }
        long cost = parameters.nanos(Math.abs(excess));
        whole = Math.max(0, whole + (excess > 0 ? cost : -cost));
        // A lease holds permits that are not in Redis any more.
        return budget(source == Source.LEASE ? left : parameters.remaining(whole), whole);
    }

    private ScriptReply budget(long left, long whole) {
        return new ScriptReply(outcome, left, whole, mark, parameters, source);
    }

    boolean admitted() {
        return outcome >= 0;
    }

    /** Refused, with a time at which to try again. */
    boolean hasRetry() {
        return outcome < 0 && outcome != NEVER && outcome != UNKNOWN;
    }

    ScriptReply outcome(long value) {
        return new ScriptReply(value, remaining, reset, mark, parameters, source);
    }

    Decision decision() {
        return new Decision(
                parameters.limit().name(),
                admitted(),
                Duration.ofNanos(Math.max(0, outcome)),
                hasRetry() ? Duration.ofNanos(~outcome) : null,
                outcome == NEVER,
                remaining,
                Duration.ofNanos(reset),
                source);
    }
}
