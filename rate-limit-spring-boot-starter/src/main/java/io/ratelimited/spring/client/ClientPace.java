package io.ratelimited.spring.client;

import io.ratelimited.spring.fields.Answer;
import io.ratelimited.spring.fields.Answer.Quota;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * When the calls to one other side may go, as its answers say: not during a pause, and within what it has left. After a pause
 * one call goes alone, and the others follow its answer. No wait for the other side is longer than {@code maxPause}. Not
 * thread-safe. All times are of a monotonic clock, in nanoseconds.
 */
final class ClientPace {

    private static final long NANOS_OF_SECOND = 1_000_000_000L;

    private final long maxPause;
    private final RecentCalls recent = new RecentCalls();
    private Map<String, Budget> budgets = Map.of();
    private boolean paused;
    private long pausedUntil;
    /** Whether no call that went after the pause has been answered yet. */
    private boolean probing;
    /** The first call after the pause, until it ends. */
    private @Nullable Pass probe;

    /** How many calls the other side has admitted before it refused the next; 0 if that is not known. */
    private long learned;
    /** Calls that were admitted since {@link #windowBegan}. */
    private long admitted;
    /** The end of the last pause, or a whole number of windows later. */
    private long windowBegan;
    /** The time between two refusals of which each ended a window; 0 if it is not known. */
    private long windowNanos;

    private long inFlight;
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

    /** When the next call may go; at once if that is not after {@code now}. */
    long next(long now) {
        if (isPaused(now)) {
            return pausedUntil;
        }
        if (!anyCall) {
            return now;
        }
        long longest = lastCall + maxPause;
        if (awaitsAnswer(now)) {
            return later(now, longest);
        }
        long next = now;
        for (Budget budget : budgets.values()) {
            next = later(next, budget.next(now, lastCall, inFlight));
        }
        return later(now, next - longest > 0 ? longest : next);
    }

    /** Whether the next call follows the answer to one in flight, at the latest after {@code maxPause}. */
    boolean awaitsAnswer(long now) {
        return !isPaused(now) && inFlight > 0 && (probe != null || goSingly(now));
    }

    /**
     * Whether as many calls have gone as the other side admitted before it refused one: of those behind them each waits for the
     * answer to the one before, so that one call is refused instead of all in flight. Only where nothing else tells a quota.
     */
    private boolean goSingly(long now) {
        if (windowNanos > 0 && now - windowBegan >= windowNanos) {
            windowBegan = now;
            admitted = 0;
        }
        return learned > 0 && budgets.isEmpty() && admitted + inFlight >= learned;
    }

    /** The time between two calls that are spread. */
    long spacing() {
        long spacing = 0;
        for (Budget budget : budgets.values()) {
            spacing = Math.max(spacing, budget.spacing(lastCall));
        }
        return Math.min(spacing, maxPause);
    }

    private static long later(long one, long other) {
        return other - one > 0 ? other : one;
    }

    boolean isPaused(long now) {
        paused = paused && pausedUntil - now > 0;
        return paused;
    }

    /** How long the pause lasts; 0 without a pause. */
    long pauseLeft(long now) {
        return isPaused(now) ? pausedUntil - now : 0;
    }

    /** A call goes. */
    Pass go(long now) {
        budgets.values().forEach(budget -> budget.take(now));
        inFlight++;
        windowBegan = anyCall ? windowBegan : now;
        anyCall = true;
        lastCall = now;
        Pass pass = new Pass(answers, now);
        if (probing) {
            probe = pass;
        }
        return pass;
    }

    /** A call that had been let go was not sent. */
    void giveBack(Pass pass) {
        ended(pass);
        budgets.values().forEach(Budget::giveBack);
    }

    /** A call has ended without an answer; whether the other side has counted it is not known. */
    void failed(Pass pass, long now) {
        ended(pass);
        recent.add(now);
    }

    private void ended(Pass pass) {
        inFlight--;
        if (pass == probe) {
            probe = null;
        }
    }

    /** A call has been answered. */
    void answered(Pass pass, Answer answer, boolean refused, long now) {
        if (pass == probe && !refused) {
            probing = false;
        }
        ended(pass);
        learn(refused, now);
        recent.add(now);
        long since = answers - pass.answersBefore;
        if (!answer.quotas().isEmpty()) {
            Map<String, Budget> told = new HashMap<>();
            for (Quota quota : answer.quotas()) {
                Budget known = budgets.get(quota.name());
                if (known == null) {
                    known = new Budget(quota, recent, inFlight + since, inFlight, pass.sentAt, now);
                } else {
                    known.told(quota, inFlight, since, pass.sentAt, now);
                }
                told.put(quota.name(), known);
            }
            budgets = told;
        }
        answers++;
    }

    private void learn(boolean refused, long now) {
        if (!refused && isPaused(now)) {
            learned++;
        } else if (!refused && ++admitted >= 2 * learned) {
            learned = 0;
        }
    }

    /**
     * Calls pause.
     *
     * @param nanos the whole pause, from now; a longer one than {@code maxPause} is shortened
     * @return whether that is a new pause, or the present one becomes longer by a second or more: answers to calls in flight
     *     mean the same pause
     */
    boolean pause(long nanos, long now) {
        long until = now + Math.min(nanos, maxPause);
        boolean known = isPaused(now);
        long longer = known ? until - pausedUntil : 0;
        if (!known || longer > 0) {
            paused = true;
            probing = true;
            pausedUntil = until;
            if (!known) {
                learned = admitted;
                admitted = 0;
                windowNanos = anyCall ? until - windowBegan : 0;
            }
            windowBegan = until;
        }
        return !known || longer >= NANOS_OF_SECOND;
    }

    /** What is left of each quota that the last answers named, for reports. */
    List<Map<String, Object>> report() {
        List<Map<String, Object>> report = new ArrayList<>();
        budgets.forEach((name, budget) ->
                report.add(Map.of("quota", name, "of", budget.quota(), "remaining", budget.credit())));
        return report;
    }
}
