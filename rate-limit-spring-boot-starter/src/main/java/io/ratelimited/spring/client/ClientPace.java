package io.ratelimited.spring.client;

import io.ratelimited.spring.client.Answer.Quota;
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

    private final long maxPause;
    private Map<String, Budget> budgets = Map.of();
    private boolean paused;
    private long pausedUntil;
    /** Whether no call that went after the pause has been answered yet. */
    private boolean probing;
    /** The first call after the pause, until it ends. */
    private @Nullable Pass probe;

    private long inFlight;
    private long answers;
    private boolean anyCall;
    private long lastCall;

    /** A call that goes. */
    static final class Pass {

        private final long answersBefore;

        private Pass(long answersBefore) {
            this.answersBefore = answersBefore;
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
        if (probe != null) {
            return later(now, longest);
        }
        long next = now;
        for (Budget budget : budgets.values()) {
            next = later(next, budget.next(now, lastCall, inFlight));
        }
        return later(now, next - longest > 0 ? longest : next);
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
        budgets.values().forEach(Budget::take);
        inFlight++;
        anyCall = true;
        lastCall = now;
        Pass pass = new Pass(answers);
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
    void failed(Pass pass) {
        ended(pass);
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
        long since = answers - pass.answersBefore;
        if (!answer.quotas().isEmpty()) {
            Map<String, Budget> told = new HashMap<>();
            for (Quota quota : answer.quotas()) {
                Budget known = budgets.get(quota.name());
                if (known == null) {
                    known = new Budget(quota, inFlight + since, now);
                } else {
                    known.told(quota, inFlight, since, now);
                }
                told.put(quota.name(), known);
            }
            budgets = told;
        }
        answers++;
    }

    /**
     * Calls pause.
     *
     * @param nanos the whole pause, from now; a longer one than {@code maxPause} is shortened
     * @return whether that is a new pause, or the present one becomes longer
     */
    boolean pause(long nanos, long now) {
        long until = now + Math.min(nanos, maxPause);
        if (isPaused(now) && until - pausedUntil <= 0) {
            return false;
        }
        paused = true;
        probing = true;
        pausedUntil = until;
        return true;
    }

    /** What is left of each quota that the last answers named, for reports. */
    List<Map<String, Object>> report() {
        List<Map<String, Object>> report = new ArrayList<>();
        budgets.forEach((name, budget) ->
                report.add(Map.of("quota", name, "of", budget.quota(), "remaining", budget.credit())));
        return report;
    }
}
