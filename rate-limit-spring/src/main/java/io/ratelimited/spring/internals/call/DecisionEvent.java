package io.ratelimited.spring.internals.call;

import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.Outcome;
import jdk.jfr.Category;
import jdk.jfr.Description;
import jdk.jfr.Enabled;
import jdk.jfr.Event;
import jdk.jfr.Label;
import jdk.jfr.Name;
import jdk.jfr.Timespan;

/**
 * An event of Java's flight recorder: a call that was refused, delayed, or over a limit that does not refuse. Off unless a
 * recording enables it.
 */
@Name("io.ratelimited.Decision")
@Label("Rate Limit Decision")
@Description(
        "A call that a limit rejected, admitted although it was over the limit (SHADOW), or delayed by 20 ms or more")
@Category("Rate Limits")
@Enabled(false)
final class DecisionEvent extends Event {

    /** The threshold of the recorder's own events for waiting threads. */
    private static final long LONG_WAIT_NANOS = 20_000_000;

    @Label("Limit")
    String limit = "";

    @Label("Outcome")
    String outcome = "";

    @Label("Wait")
    @Timespan
    long waited;

    static void record(NamedLimit limit, Outcome outcome, long waitedNanos) {
        DecisionEvent event = new DecisionEvent();
        if (event.isEnabled() && (outcome != Outcome.DELAYED || waitedNanos >= LONG_WAIT_NANOS)) {
            event.limit = limit.name();
            event.outcome = outcome.tag();
            event.waited = waitedNanos;
            event.commit();
        }
    }
}
