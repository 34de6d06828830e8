package io.ratelimited.spring.client;

import io.ratelimited.spring.fields.Answer;
import io.ratelimited.spring.fields.Answer.Quota;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The pace of the calls to one other side, as its answers state it: no call goes during a pause or beyond the rest of a
 * quota. After a pause one call goes alone, and the others follow its answer. What one answer says is over after {@code
 * maxPause} at the latest, and with the first success after it that says nothing. Not thread-safe. All times are of a monotonic clock, in nanoseconds.
 */
final class ClientPace {

    private static final long NANOS_OF_SECOND = 1_000_000_000L;

    /** No quota has more permits, and no window is longer: their sums and products stay within a long. */
    private static final long MOST = 1_000_000_000_000_000L;

    private static final long LONGEST = Duration.ofDays(366).toNanos();

    private final long maxPause;
    private final RecentCalls recent = new RecentCalls();
    private Map<String, Budget> budgets = Map.of();
    /** When an answer has last stated quotas. */
    private long toldAt;
    /** The number of that answer. */
    private long toldBy;
    /** Whether there has been a pause. */
    private boolean paused;
    /** End of the last pause. */
    private long pausedUntil;
    /** Whether no call that went after the pause has been answered yet. */
    private boolean probing;
    /** The first call after the pause, until it ends. */
    private @Nullable Pass probe;

    /** Used only if no answer states a quota. */
    private final RefusedWindow window = new RefusedWindow();

    private long inFlight;
    /** Number of ended calls that the other side may have counted. */
    private long answers;

    private boolean anyCall;
    private long lastCall;

    /** A call that goes. */
    static final class Pass {

        private final long answersBefore;
        private final long sentAt;

        private Pass(long answersBefore, long sentAt) {
            this.answersBefore = answersBefore;
            this.sentAt = sentAt;
        }
    }

    ClientPace(long maxPause) {
        this.maxPause = maxPause;
    }

    /** Returns the time at which the next call may go; at once if that is not after {@code now}. */
    long next(long now) {
        if (isPaused(now)) {
            return pausedUntil;
        }
        if (!anyCall) {
            return now;
        }
        if (window.pass(now)) {
            probing = true;
        }
        if (awaitsAnswer(now)) {
            return later(now, lastCall + maxPause);
        }
        long next = isUsedUp() && window.isTrusted() ? window.end() : now;
        return later(now, sooner(later(next, toldNext(now)), overAt()));
    }

    /** Returns the time at which the next call may go by the quotas that answers have stated. */
    private long toldNext(long now) {
        long next = now;
        for (Budget budget : budgets.values()) {
            next = later(next, budget.next(now, lastCall, inFlight));
        }
        return next;
    }

    /**
     * Returns the time at which no call waits any more for what answers have stated: {@code maxPause} after the last of them, or
     * after the last call, whose answer may still come.
     */
    private long overAt() {
        long afterCall = lastCall + maxPause;
        return inFlight == 0 && !budgets.isEmpty() ? sooner(afterCall, toldAt + maxPause) : afterCall;
    }

    /** Returns whether the next call follows the answer to one in flight, at the latest after {@code maxPause}. */
    boolean awaitsAnswer(long now) {
        return !isPaused(now) && inFlight > 0 && (probe != null || (isUsedUp() && !window.isTrusted()));
    }

    private boolean isUsedUp() {
        return budgets.isEmpty() && window.isUsedUp(inFlight);
    }

    /**
     * Returns how long a new call waits at least, behind others that wait. A round trip is short: nobody waits for an answer
     * in vain.
     *
     * @param ahead number of the others that wait
     */
    long leastWait(int ahead, long now) {
        long next = awaitsAnswer(now) ? now : next(now);
        long earliest = next;
        for (Budget budget : budgets.values()) {
            earliest = later(earliest, budget.earliest(next, ahead, inFlight));
        }
        // The answer to the call that goes then may end all that was stated.
        long atMost = budgets.isEmpty() ? next : later(next, overAt());
        return Math.max(0, next - now) + sooner(earliest, atMost) - next;
    }

    private static long sooner(long one, long other) {
        return one - other > 0 ? other : one;
    }

    private static long later(long one, long other) {
        return other - one > 0 ? other : one;
    }

    boolean isPaused(long now) {
        return paused && pausedUntil - now > 0;
    }

    /** Returns how long the pause lasts; 0 without a pause. */
    long pauseLeft(long now) {
        return isPaused(now) ? pausedUntil - now : 0;
    }

    /**
     * Notes that a call goes. One that goes against what answers have stated, because that is over, goes alone: the others follow
     * its answer.
     */
    Pass go(long now) {
        if (!budgets.isEmpty() && now - overAt() >= 0 && toldNext(now) - now > 0) {
            budgets = Map.of();
            probing = true;
        }
        budgets.values().forEach(budget -> budget.take(now));
        inFlight++;
        if (!anyCall) {
            window.begin(now);
        }
        anyCall = true;
        lastCall = now;
        Pass pass = new Pass(answers, now);
        if (probing) {
            probe = pass;
        }
        return pass;
    }

    /** Notes that an admitted call was not sent. */
    void giveBack(Pass pass) {
        ended(pass);
        budgets.values().forEach(Budget::giveBack);
    }

    /** Notes that a call has ended without an answer: the other side may have counted it. */
    void failed(Pass pass, long now) {
        ended(pass);
        recent.add(now);
        answers++;
    }

    private void ended(Pass pass) {
        inFlight--;
        if (pass == probe) {
            probe = null;
        }
    }

    /** Notes that a call has been answered. */
    void answered(Pass pass, Answer answer, boolean refused, long now) {
        if (pass == probe && !refused) {
            probing = false;
        }
        ended(pass);
        if (!refused) {
            window.admitted(isPaused(now));
        }
        recent.add(now);
        long since = answers - pass.answersBefore;
        if (!answer.quotas().isEmpty()) {
            Map<String, Budget> told = new HashMap<>();
            for (Quota unbounded : answer.quotas()) {
                Quota quota = bounded(unbounded);
                Budget known = budgets.get(quota.name());
                if (known == null) {
                    known = new Budget(quota, recent, inFlight + since, inFlight, pass.sentAt, now);
                } else {
                    known.told(quota, inFlight, since, pass.sentAt, now);
                }
                told.put(quota.name(), known);
            }
            budgets = told;
            toldAt = now;
            toldBy = answers;
        } else if (!refused && pass.answersBefore > toldBy) {
            // The other side says so no longer.
            budgets = Map.of();
        }
        answers++;
    }

    private static Quota bounded(Quota told) {
        return new Quota(
                told.name(),
                Math.min(told.quota(), MOST),
                Math.min(told.remaining(), MOST),
                Math.min(told.windowNanos(), LONGEST),
                Math.min(told.resetNanos(), LONGEST));
    }

    /**
     * Lets calls pause.
     *
     * @param nanos the whole pause, from now; a longer one than {@code maxPause} is shortened
     * @param refused the call whose answer asked for the pause; null if another instance got that answer
     * @return whether that is a new pause, or the present one becomes longer by a second or more: answers to calls in flight
     *     mean the same pause
     */
    boolean pause(long nanos, @Nullable Pass refused, long now) {
        long until = now + Math.min(nanos, maxPause);
        boolean known = isPaused(now);
        long longer = known ? until - pausedUntil : 0;
        if (!known || longer > 0) {
            paused = true;
            probing = true;
            pausedUntil = until;
            if (!anyCall) {
                window.begin(now);
            }
            if (!known) {
                window.paused(until, refused == null ? 0 : NANOS_OF_SECOND + now - refused.sentAt);
            }
            if (longer >= NANOS_OF_SECOND || refused == null || nanos > maxPause) {
                window.endsOtherwise(until);
            }
        }
        return !known || longer >= NANOS_OF_SECOND;
    }

    /** Returns the rest of each quota that the last answers named, for reports. */
    List<Map<String, Object>> report() {
        List<Map<String, Object>> report = new ArrayList<>();
        budgets.forEach((name, budget) ->
                report.add(Map.of("quota", name, "of", budget.quota(), "remaining", budget.credit())));
        return report;
    }
}
