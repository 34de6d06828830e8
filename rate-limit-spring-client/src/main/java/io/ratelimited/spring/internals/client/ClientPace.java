package io.ratelimited.spring.internals.client;

import io.ratelimited.spring.fields.ResponseLimits;
import io.ratelimited.spring.fields.ResponseLimits.Quota;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The pace of the calls to a remote service, as its responses state it. Not thread-safe. All times are of a monotonic clock,
 * in nanoseconds.
 *
 * <ol>
 *   <li>No call proceeds during a pause, whatever its place. After a pause one call proceeds alone, and the others follow its
 *       response.
 *   <li>A quota is known by its name, its limit and the host. It holds the calls to the {@link Scope} in which responses have
 *       named it: one path at first.
 *   <li>A path leaves the scope when a response names other quotas, or when a later call succeeds and its response names none.
 *       This ends a quota of one path.
 *   <li>A quota is over {@code maxPause} after the last response that named it. Then one call proceeds alone in its scope, and
 *       the others there follow its response. A response that does not name it, as above, ends it.
 * </ol>
 */
final class ClientPace {

    private static final long NANOS_OF_SECOND = 1_000_000_000L;

    /** No quota has more permits, and no window is longer: their sums and products stay within a long. */
    private static final long MOST = 1_000_000_000_000_000L;

    private static final long LONGEST = Duration.ofDays(366).toNanos();

    /** A host that names more quotas at one time means something else by their names. */
    private static final int MOST_OF_HOST = 100;

    /** Each call looks at all of them. */
    private static final int MOST_QUOTAS = 1_000;

    private final long maxPause;
    private final CallsInFlight calls = new CallsInFlight();
    /** The least recently named first. */
    private final List<ReportedQuota> quotas = new ArrayList<>();

    private boolean paused;
    /** Time at which the last pause was stated. */
    private long pausedAt;
    /** End of the last pause. */
    private long pausedUntil;
    /** Whether no call that proceeded after the pause has been answered yet. */
    private boolean probing;
    /** The first call after the pause, until it ends. */
    private @Nullable Pass probe;

    /** A call that proceeds; each is another, whatever its fields. */
    static final class Pass {

        private final String place;
        private final long sentAt;
        /** Number of calls that had ended when this one was sent. */
        private final long endedBefore;
        /** Whether it waits for the limits of this side. */
        private volatile boolean unsent;

        Pass(String place, long sentAt, long endedBefore) {
            this.place = place;
            this.sentAt = sentAt;
            this.endedBefore = endedBefore;
        }

        String place() {
            return place;
        }

        long sentAt() {
            return sentAt;
        }

        long endedBefore() {
            return endedBefore;
        }

        boolean isUnsent() {
            return unsent;
        }

        void waitForLimits() {
            unsent = true;
        }
    }

    ClientPace(long maxPause) {
        this.maxPause = maxPause;
    }

    /** Returns the time at which the next call to a place can proceed; immediately if that is not after {@code now}. */
    long next(String place, long now) {
        long next = heldUntil(now);
        for (ReportedQuota quota : quotas) {
            if (quota.covers(place)) {
                next = later(next, quota.next(now));
            }
        }
        return next;
    }

    /** Returns the time until which no call proceeds, whatever its place; {@code now} if some may. */
    long heldUntil(long now) {
        if (isPaused(now)) {
            return pausedUntil;
        }
        return probe == null ? now : later(now, probe.sentAt + maxPause);
    }

    /** Returns whether the next call follows the response to one in flight, at the latest after {@code maxPause}. */
    boolean awaitsAnswer(String place, long now) {
        return !isPaused(now)
                && (probe != null || quotas.stream().anyMatch(quota -> quota.covers(place) && quota.isAsked()));
    }

    /**
     * Returns how long a new call waits at least, behind others that wait. A round trip is short: no caller waits for a
     * response in vain.
     *
     * @param waiting the places of the others: those are ahead at a quota that it holds as well, or that all wait before
     */
    long leastWait(String place, List<String> waiting, long now) {
        boolean allWait = heldUntil(now) - now > 0;
        long next = awaitsAnswer(place, now) ? now : next(place, now);
        long earliest = next;
        for (ReportedQuota quota : quotas) {
            if (quota.covers(place)) {
                long ahead = allWait || quota.next(now) - now > 0
                        ? waiting.stream().filter(quota::covers).count()
                        : 0;
                earliest = later(earliest, quota.earliest(next, ahead));
            }
        }
        return Math.max(0, earliest - now);
    }

    static long sooner(long one, long other) {
        return one - other > 0 ? other : one;
    }

    static long later(long one, long other) {
        return other - one > 0 ? other : one;
    }

    boolean isPaused(long now) {
        return paused && pausedUntil - now > 0;
    }

    /** Returns how long the pause lasts; 0 without a pause. */
    long pauseLeft(long now) {
        return isPaused(now) ? pausedUntil - now : 0;
    }

    /** Notes that a call to a place proceeds. */
    Pass go(String place, long now) {
        Pass pass = calls.sent(place, now);
        quotas.stream().filter(quota -> quota.covers(place)).forEach(quota -> quota.go(pass, now));
        if (probing) {
            probe = pass;
        }
        return pass;
    }

    /** Returns whether a call that has waited for the limits of this side must wait here again, because of responses since. */
    boolean holdsAgain(Pass pass, long now) {
        boolean holds = isPaused(now)
                || (probing && pass.sentAt - pausedAt <= 0)
                || quotas.stream().anyMatch(quota -> quota.covers(pass.place) && quota.holdsAgain(pass, now));
        pass.unsent = holds;
        return holds;
    }

    /** Notes that an admitted call was not sent. */
    void giveBack(Pass pass) {
        leave(pass);
        calls.giveBack(pass);
        quotas.stream().filter(quota -> quota.covers(pass.place)).forEach(quota -> quota.giveBack(pass));
    }

    /** Notes that a call has ended without a statement about limits: the remote service may have counted it. */
    void failed(Pass pass, long now) {
        quotas.stream().filter(quota -> quota.covers(pass.place)).forEach(quota -> quota.lost(now));
        ended(pass, now);
    }

    private void ended(Pass pass, long now) {
        leave(pass);
        quotas.stream().filter(quota -> quota.covers(pass.place)).forEach(quota -> quota.ended(pass, now));
        calls.ended(pass);
    }

    private void leave(Pass pass) {
        if (pass == probe) {
            probe = null;
        }
    }

    /**
     * Notes that the remote service has admitted a call, and has stated nothing about limits: another host has responded behind
     * a redirect, a cache has responded, or the response is no success, so that a part of the service may have sent it that knows
     * no limits.
     */
    void admittedThere(Pass pass, long now) {
        probing = probing && pass != probe;
        quotas.removeIf(quota -> quota.isAskedBy(pass));
        failed(pass, now);
    }

    /** Notes that a call has got a response that states limits, is a success, or rejects the call. */
    void answered(Pass pass, ResponseLimits answer, boolean refused, long now) {
        if (pass == probe && !refused) {
            probing = false;
        }
        ended(pass, now);
        List<ReportedQuota> named = new ArrayList<>();
        for (Quota unbounded : answer.quotas()) {
            Quota told = bounded(unbounded);
            ReportedQuota known = quotas.stream()
                    .filter(quota -> quota.is(told, pass.place))
                    .findFirst()
                    .orElse(null);
            if (known == null) {
                known = new ReportedQuota(maxPause, calls, told, pass, now);
            } else {
                known.told(told, pass, now);
            }
            named.add(known);
        }
        quotas.removeAll(named);
        quotas.removeIf(quota -> quota.covers(pass.place)
                && (!named.isEmpty() || (!refused && quota.isBefore(pass)))
                && !quota.isKeptWithout(pass));
        quotas.addAll(named);
        // One that is used up is named by no response, so that hosts must not push out quotas of each other.
        List<ReportedQuota> ofHost =
                quotas.stream().filter(quota -> quota.isOnHostOf(pass.place)).toList();
        if (ofHost.size() > MOST_OF_HOST) {
            quotas.removeAll(ofHost.subList(0, ofHost.size() - MOST_OF_HOST));
        }
        if (quotas.size() > MOST_QUOTAS) {
            quotas.subList(0, quotas.size() - MOST_QUOTAS).clear();
        }
    }

    private static Quota bounded(Quota told) {
        return new Quota(
                told.name(),
                Math.min(told.quota(), MOST),
                Math.min(told.remaining(), MOST),
                Math.min(told.windowNanos(), LONGEST),
                Math.min(told.resetNanos(), LONGEST),
                told.ofCalls());
    }

    /**
     * Lets calls pause.
     *
     * @param nanos the whole pause, from now; a longer one than {@code maxPause} is shortened
     * @return whether that is a new pause, or the present one becomes longer by a second or more: responses to calls in flight
     *     mean the same pause
     */
    boolean pause(long nanos, long now) {
        long until = now + Math.min(nanos, maxPause);
        boolean known = isPaused(now);
        long longer = known ? until - pausedUntil : 0;
        probing = true;
        probe = null;
        pausedAt = now;
        if (!known || longer > 0) {
            paused = true;
            pausedUntil = until;
        }
        return !known || longer >= NANOS_OF_SECOND;
    }

    /** Returns the rest of each quota that responses have named last, for reports. */
    List<Map<String, Object>> report() {
        return quotas.stream().map(ReportedQuota::report).toList();
    }
}
