package io.ratelimited.spring.internals.client;

import io.ratelimited.spring.fields.ResponseLimits.Quota;
import io.ratelimited.spring.internals.client.ClientPace.Pass;
import java.util.Comparator;
import java.util.PriorityQueue;

/**
 * What calls take of a quota that is not of calls: the differences of the rests that responses state. Not thread-safe.
 *
 * <p>Responses need not come in the order in which the remote service has counted their calls. It has counted the one with the
 * greater rest first. So two rests are compared once no call is in flight that it may have counted between them: each that is was
 * sent after the response with the smaller rest.
 */
final class CallCosts {

    /** The largest cost of so many calls at least is expected of the next. */
    private static final int MEMORY = 100;

    /** Calls that the first rest is good for at least. */
    private static final int FIRST_CALLS = 4;

    private static final int MOST_RESTS = 1_000;

    /**
     * What a response has stated.
     *
     * @param endedBefore number of calls that had ended when its call was sent
     * @param ended number of calls that had ended with it
     */
    private record Rest(long left, long endedBefore, long ended) {}

    private final CallsInFlight calls;
    /** The greatest first. */
    private final PriorityQueue<Rest> rests =
            new PriorityQueue<>(Comparator.comparingLong(Rest::left).reversed());

    private long largest;
    private long largestBefore;
    private int known;
    /** The reset that the last response has stated, and its time. */
    private long reset;

    private long resetAt;

    CallCosts(CallsInFlight calls) {
        this.calls = calls;
    }

    /** The largest cost of the last calls. */
    long most() {
        return Math.max(1, Math.max(largest, largestBefore));
    }

    /** Takes the response to a call into account that has ended. */
    void told(Quota told, Pass pass, long now) {
        long at = now + told.resetNanos();
        if (largestBefore == 0 && largest == 0) {
            // Others may have taken most of it before the first response.
            largestBefore = Math.min(told.quota() - told.remaining(), told.remaining() / FIRST_CALLS);
        } else if (resetAt - at > reset / 2) {
            return; // late, and of the window before
        } else if (at - resetAt > told.resetNanos() / 2) {
            rests.clear();
        }
        reset = told.resetNanos();
        resetAt = at;
        rests.add(new Rest(told.remaining(), pass.endedBefore(), calls.ended()));
        compare();
    }

    private void compare() {
        while (rests.size() > 1) {
            Rest first = rests.remove();
            Rest next = rests.element();
            if (next.ended > calls.endedBeforeOldest() && rests.size() < MOST_RESTS) {
                rests.add(first);
                return;
            }
            if (first.endedBefore >= next.ended) {
                // It was the later one: the quota has been refilled meanwhile.
                rests.remove();
                rests.add(first);
            } else {
                add(first.left - next.left);
            }
        }
    }

    private void add(long cost) {
        largest = Math.max(largest, cost);
        if (++known >= MEMORY) {
            known = 0;
            largestBefore = largest;
            largest = 0;
        }
    }
}
