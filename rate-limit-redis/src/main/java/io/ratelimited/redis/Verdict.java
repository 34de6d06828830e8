package io.ratelimited.redis;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import java.time.Duration;

/**
 * What was decided about one call.
 *
 * @param outcome nanoseconds to wait, 0 or more, of an admitted call; else the complement of its retry-after, or {@link
 *     #NEVER} or {@link #UNKNOWN}
 * @param remaining permits left
 * @param reset nanoseconds until the budget is whole
 * @param mark what the script needs to give the permits back; empty when nothing was taken in Redis
 * @param terms under which it was decided
 * @param source who decided
 */
record Verdict(long outcome, long remaining, long reset, String mark, RedisTerms terms, Source source) {

    static final long NEVER = Long.MIN_VALUE;
    static final long UNKNOWN = Long.MIN_VALUE + 1;

    /** As in the scripts. */
    private static final long SCRIPT_NEVER = -9007199254740991L;

    private static final long SCRIPT_UNKNOWN = -9007199254740990L;

    /** From the four values of a reply that begin at an index; see {@code decide.lua}. */
    static Verdict of(java.util.List<Object> reply, int index, RedisTerms terms) {
        long micros = (Long) reply.get(index);
        long outcome;
        if (micros == SCRIPT_NEVER) {
            outcome = NEVER;
        } else if (micros == SCRIPT_UNKNOWN) {
            outcome = UNKNOWN;
        } else {
            outcome = micros >= 0 ? micros * 1000 : ~(-micros * 1000);
        }
        return new Verdict(
                outcome,
                (Long) reply.get(index + 1),
                (Long) reply.get(index + 2) * 1000,
                reply.get(index + 3).toString(),
                terms,
                Source.REDIS);
    }

    boolean admitted() {
        return outcome >= 0;
    }

    /** Refused, with a time at which to try again. */
    boolean hasRetry() {
        return outcome < 0 && outcome != NEVER && outcome != UNKNOWN;
    }

    Verdict outcome(long value) {
        return new Verdict(value, remaining, reset, mark, terms, source);
    }

    Decision decision() {
        return new Decision(
                terms.limit().name(),
                admitted(),
                Duration.ofNanos(Math.max(0, outcome)),
                hasRetry() ? Duration.ofNanos(~outcome) : null,
                outcome == NEVER,
                remaining,
                Duration.ofNanos(reset),
                source);
    }
}
