package io.ratelimited.spring.internals.client;

import io.ratelimited.spring.fields.ResponseLimits.Quota;
import io.ratelimited.spring.internals.client.ClientPace.Pass;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A quota that responses have named, with the calls to its {@link Scope}. Not thread-safe. All times are of a monotonic clock,
 * in nanoseconds.
 */
final class ReportedQuota {

    private final long maxPause;
    private final CallsInFlight calls;
    private final String name;
    private final long size;
    private final boolean ofCalls;
    private final RecentCalls recent = new RecentCalls();
    private final CallCosts costs;
    private Scope scope;
    private Budget budget;
    private long inFlight;
    /** Time at which the last call was sent. */
    private long last;
    /** When a response has named the quota last, and the number of calls that had ended then. */
    private long toldAt;

    private long toldBy;
    /** Whether what was stated is over: one call at a time proceeds, until a response to it ends or renews the quota. */
    private boolean over;
    /** That call, until it ends. */
    private @Nullable Pass asking;
    /** The rest that the last response has stated. */
    private long left;

    /** @param pass the call whose response names the quota first; it has ended */
    ReportedQuota(long maxPause, CallsInFlight calls, Quota told, Pass pass, long now) {
        this.maxPause = maxPause;
        this.calls = calls;
        name = told.name();
        size = told.quota();
        ofCalls = told.ofCalls();
        costs = new CallCosts(calls);
        scope = Scope.of(pass.place());
        last = pass.sentAt();
        count(pass, now);
        // Those that were counted before may be calls of this side whose responses have not named the quota.
        long counted = ofCalls ? Math.min(RecentCalls.MAX_CALLS, size - told.remaining()) : 0;
        for (long i = 1; i < counted; i++) {
            recent.add(now);
        }
        budget = budget(told, pass, now);
        keepWhen(now);
    }

    private Budget budget(Quota told, Pass pass, long now) {
        return new Budget(
                inCalls(told, pass, now),
                recent,
                inFlight + calls.endedSince(pass, scope),
                inFlight,
                pass.sentAt(),
                now);
    }

    /** Counts the calls of a new scope. */
    private void count(Pass pass, long now) {
        keepSent(ClientPace.later(last, pass.sentAt()));
        recent.add(now);
    }

    private void keepSent(long lastKnown) {
        inFlight = calls.inFlight(scope);
        last = calls.lastSent(scope, lastKnown);
    }

    /** Returns how many calls a quota is good for, if each takes as much as the largest of the last. */
    private Quota inCalls(Quota told, Pass pass, long now) {
        left = told.remaining();
        if (ofCalls) {
            return told;
        }
        costs.told(told, pass, now);
        return new Quota(
                name,
                size == Quota.UNKNOWN ? Quota.UNKNOWN : size / costs.most(),
                left / costs.most(),
                told.windowNanos(),
                told.resetNanos());
    }

    private void keepWhen(long now) {
        toldAt = now;
        toldBy = calls.ended();
    }

    /** Returns whether a response from a place names this quota. */
    boolean is(Quota told, String place) {
        return name.equals(told.name()) && size == told.quota() && isOnHostOf(place);
    }

    boolean isOnHostOf(String place) {
        return scope.isOnHostOf(place);
    }

    boolean covers(String place) {
        return scope.covers(place);
    }

    /** Takes a response into account that names the quota, to a call that has ended. */
    void told(Quota told, Pass pass, long now) {
        if (!scope.covers(pass.place())) {
            scope = scope.including(pass.place());
            count(pass, now);
        }
        if (over) {
            over = false;
            asking = null;
            budget = budget(told, pass, now);
        } else {
            budget.told(inCalls(told, pass, now), inFlight, calls.endedSince(pass, scope), pass.sentAt(), now);
        }
        keepWhen(now);
    }

    /**
     * Takes a response into account that does not name the quota: its place is not of the scope.
     *
     * @return whether the quota is kept, for other places
     */
    boolean isKeptWithout(Pass pass) {
        if (over || scope.isOnePlace()) {
            return false;
        }
        scope = scope.excluding(pass.place());
        keepSent(last);
        return true;
    }

    /** Returns whether a call was sent after the last response that has named the quota. */
    boolean isBefore(Pass pass) {
        return pass.endedBefore() >= toldBy;
    }

    /** Returns whether responses since a call was admitted, which was not sent yet, leave nothing for it. */
    boolean holdsAgain(Pass pass, long now) {
        long overdraft = over || isBefore(pass) ? 0 : budget.overdraft(now, last, inFlight);
        return overdraft > 0 && overdraft >= calls.unsent(scope);
    }

    /** Returns the time at which the next call can proceed. */
    long next(long now) {
        if (over) {
            return asking == null ? now : ClientPace.later(now, asking.sentAt() + maxPause);
        }
        return ClientPace.later(now, ClientPace.sooner(budget.next(now, last, inFlight), overAt()));
    }

    /** Returns whether one call proceeds alone now. */
    boolean isAsked() {
        return asking != null;
    }

    boolean isAskedBy(Pass pass) {
        return pass == asking;
    }

    /**
     * Returns the time at which what was stated is over: {@code maxPause} after it was, or after the last call, whose response
     * may still come.
     */
    private long overAt() {
        long afterCall = last + maxPause;
        return inFlight == 0 ? ClientPace.sooner(afterCall, toldAt + maxPause) : afterCall;
    }

    /**
     * Returns the earliest time at which a call can proceed behind others, if all responses are as good as they can be.
     *
     * @param next the time at which the first of the others proceeds
     */
    long earliest(long next, long ahead) {
        return over
                ? next
                : ClientPace.later(next, ClientPace.sooner(budget.earliest(next, ahead, inFlight), overAt()));
    }

    /** Notes that a call proceeds. One that does so against what was stated, because that is over, proceeds alone. */
    void go(Pass pass, long now) {
        over = over || (now - overAt() >= 0 && budget.next(now, last, inFlight) - now > 0);
        if (over) {
            asking = pass;
        } else {
            budget.take(now);
        }
        inFlight++;
        last = now;
    }

    /** Notes that an admitted call was not sent. */
    void giveBack(Pass pass) {
        leave(pass);
        budget.giveBack();
    }

    /** Notes that a call has ended. */
    void ended(Pass pass, long now) {
        leave(pass);
        recent.add(now);
    }

    /** Notes that a call ends whose response has not come or states nothing. */
    void lost(long now) {
        budget.lost(now);
    }

    private void leave(Pass pass) {
        inFlight--;
        if (pass == asking) {
            asking = null;
        }
    }

    /** The quota as the endpoint shows it. */
    Map<String, Object> report() {
        return Map.of(
                "quota", name, "of", ofCalls ? budget.quota() : size, "remaining", ofCalls ? budget.credit() : left);
    }
}
