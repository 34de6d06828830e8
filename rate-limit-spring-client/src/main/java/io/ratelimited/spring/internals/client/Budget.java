package io.ratelimited.spring.internals.client;

import io.ratelimited.spring.fields.ResponseLimits.Quota;
import java.time.Duration;

/**
 * The part of the other side's quota that this side may still use. Not thread-safe. All times are of a monotonic clock, in
 * nanoseconds.
 *
 * <p>The answers do not say whether a window begins anew at its end or a bucket fills all the time, so this holds for both:
 *
 * <ol>
 *   <li>{@code credit} is never more than the other side's rest for calls that have not been sent. From the rest that an
 *       answer states, this side subtracts the calls in flight and those that were answered since the call was sent,
 *       whatever order they had there.
 *   <li>As long as credit of more than a quarter of the quota is left, calls go at once. The rest is spread: over the time
 *       until the reset or, if that is sooner, a little slower than the quota comes back in a window that slides.
 *   <li>Without credit, one call goes at the earliest reset that the answers have stated since credit last rose, when at
 *       least one permit is there in a window and in a bucket; after the latest reset the whole quota is there, without the
 *       calls after the earliest one whose responses have not come.
 *   <li>While the answers show that nobody else uses the quota, its rest is the whole quota without the calls of this side
 *       that are in flight or that the other side still counts. It counts a call for no longer than a window, or than the
 *       farthest reset that it has stated.
 * </ol>
 */
final class Budget {

    /** The fields are in whole seconds: a window of one may be any shorter time, in which a bucket fills many times. */
    private static final long SHORTEST_WINDOW = Duration.ofSeconds(2).toNanos();

    /** Slots of a sliding window of this library, unless configured otherwise. */
    private static final int SLOTS = 10;

    private static final long SECOND = Duration.ofSeconds(1).toNanos();
    private static final long FARTHEST = Long.MAX_VALUE / 4;

    private final RecentCalls recent;
    private long quota;
    private long credit;
    /** The length of a window, as far as it is known. */
    private long window;
    /**
     * Longest time for which the other side counts a call: a window, or the longest time until a reset that it has stated.
     * The other side forgets a call no later than the reset that its answer states.
     */
    private long memory;
    /**
     * Likely time for which a sliding window counts a call, without the rounding to seconds: answers do not state the slots.
     */
    private long likelyMemory;
    /** Time at which the call went that has the permit of {@link #kept}. */
    private long keptWentAt;
    /** The first and the last of the resets that answers have stated since credit rose. */
    private long earliestReset;

    private long latestReset;
    /** Time at which credit rose: answers to earlier calls may state the end of the window before. */
    private long roseAt;
    /** Whether the earliest reset is the end of a window, or the time when a bucket is full, not a whole window from now. */
    private boolean endIsTold;
    /** Whether a call has gone at the earliest reset. */
    private boolean probed;
    /** Calls without a response that ended after the earliest reset: a window may have begun before them. */
    private long lost;
    /** Whether no answer has come since the whole quota was there again: the resets are a guess until then. */
    private boolean guessed;

    /** Whether the last answer has stated the time in which the missing permits fill again, as a bucket does. */
    private boolean fills;
    /** Whether the other side forgets a call when a window has passed. */
    private boolean isWindow;
    /** Whether others use the quota, as far as is known, and when an answer has last shown it. */
    private boolean shared;

    private long sharedAt;

    /**
     * @param recent the calls of this side; the answered one is the last of them
     * @param sent calls that the answer may not have counted
     * @param inFlight calls that have been sent and not answered, without the one that is answered
     * @param sentAt the time at which the answered call went
     */
    Budget(Quota told, RecentCalls recent, long sent, long inFlight, long sentAt, long now) {
        this.recent = recent;
        quota = told.quota();
        credit = told.remaining() - sent;
        sharedAt = now;
        keepTerms(told);
        keepWhetherShared(told, inFlight, sentAt, now);
        restart(now + told.resetNanos(), sentAt);
        endIsTold = told.resetNanos() < window;
    }

    /** Looks whether the other side has counted calls that this side cannot have made. */
    private void keepWhetherShared(Quota told, long inFlight, long sentAt, long now) {
        boolean isTold = told.windowNanos() != Quota.UNKNOWN
                && told.quota() >= told.remaining()
                && told.quota() <= RecentCalls.MAX_CALLS;
        isWindow = isTold && told.resetNanos() <= 2 * window && memory >= SHORTEST_WINDOW;
        int own = recent.after(sentAt - memory);
        if (!isTold || told.remaining() < told.quota() - inFlight - own) {
            shared = true;
            sharedAt = now;
        } else if (now - sharedAt >= window) {
            shared = false;
        }
    }

    private void keepTerms(Quota told) {
        // One, if nothing is known: a call must go at a reset to learn what is there.
        quota = Math.max(1, Math.max(told.quota() == Quota.UNKNOWN ? quota : told.quota(), told.remaining()));
        long before = window;
        window = told.windowNanos() == Quota.UNKNOWN ? Math.max(window, told.resetNanos()) : told.windowNanos();
        if (window != before) {
            memory = window;
            likelyMemory = window + window / SLOTS;
        }
        double missing = (double) window * (quota - told.remaining()) / Math.max(1, quota);
        fills = told.windowNanos() != Quota.UNKNOWN && Math.abs(told.resetNanos() - missing) <= 2.0 * SECOND;
        // A window that slides, even by one count and the one before, forgets a call after two windows at the latest.
        memory = Math.max(memory, Math.min(told.resetNanos(), 2 * window));
    }

    private void restart(long reset, long from) {
        roseAt = from;
        endIsTold = false;
        earliestReset = reset;
        latestReset = reset;
        probed = false;
        lost = 0;
        guessed = false;
    }

    /**
     * Takes an answer into account.
     *
     * @param inFlight calls that have been sent and not answered, without the one that is answered
     * @param answeredSince calls that were answered since the one that is answered was sent
     * @param sentAt the time at which the answered call went
     */
    void told(Quota told, long inFlight, long answeredSince, long sentAt, long now) {
        keepTerms(told);
        keepWhetherShared(told, inFlight, sentAt, now);
        long reset = now + told.resetNanos();
        long atMost = told.remaining() - inFlight;
        long atLeast = atMost - answeredSince;
        if (sentAt == keptWentAt && told.remaining() == 0) {
            likelyMemory += (memory - likelyMemory) / 8;
        }
        if (guessed) {
            restart(Math.max(reset - now, earliestReset - now) + now, roseAt);
        } else if (atLeast > credit) {
            restart(reset, sentAt);
            endIsTold = told.resetNanos() < window;
        } else if (reset - earliestReset < 0 && sentAt - roseAt >= 0) {
            earliestReset = reset;
            endIsTold = told.resetNanos() < window;
        } else if (reset - latestReset > 0) {
            latestReset = reset;
        }
        credit = Math.max(Math.min(credit, atMost), atLeast);
    }

    /**
     * Returns the time at which the next call may go; at once if that is not after {@code now}.
     *
     * @param last the time at which the last call went
     */
    long next(long now, long last, long inFlight) {
        if (now - latestReset >= 0) {
            credit = Math.max(credit, quota - inFlight - lost);
            restart(now + window, now);
            guessed = true;
        }
        if (countsOwn()) {
            raise(quota - inFlight - recent.after(now - memory), now);
        }
        if (credit > reserve()) {
            return now;
        }
        if (countsOwn()) {
            long own = own(inFlight);
            if (credit <= 0) {
                return own == 0 ? now + memory : regained(1, own);
            }
            return credit <= kept() && own > 0
                    ? recent.newestBut((int) own - 1) + likelyMemory
                    : last + spread(last, own);
        }
        if (credit > 0) {
            return now - earliestReset >= 0 ? now : last + spacing(last);
        }
        return probed ? latestReset : earliestReset;
    }

    /** Returns how many of the calls in flight the other side does not admit. */
    long overdraft(long now, long last, long inFlight) {
        next(now, last, inFlight);
        return Math.max(0, -credit);
    }

    private boolean countsOwn() {
        return isWindow && !shared;
    }

    /** The calls of this side that the other side still counts, where nobody else uses the quota. */
    private long own(long inFlight) {
        return Math.min(recent.size(), Math.max(0, quota - inFlight - Math.max(0, credit)));
    }

    /** Returns the time at which so many calls of {@code own} are forgotten; at the latest one memory after the last. */
    private long regained(long calls, long own) {
        long forgotten = recent.newestBut((int) Math.max(0, own - calls)) + memory;
        return endIsTold && !probed && earliestReset - forgotten < 0 ? earliestReset : forgotten;
    }

    /**
     * The time between two calls if the credit lasts until the next call is forgotten, and with what is regained until there is
     * more than the reserve.
     */
    private long spread(long last, long own) {
        if (own == 0) {
            return 0;
        }
        long unknown = Math.max(0, memory - likelyMemory);
        long first = (regained(1, own) - unknown - last) / (credit + 1);
        long all = (regained(reserve() + 1 - credit, own) - unknown - last) / (reserve() + 1);
        return Math.max(0, Math.max(first, all));
    }

    /**
     * The earliest time at which a call may go behind others, if all answers are as good as they can be.
     *
     * @param next the time at which the first of the others goes
     * @param ahead number of the others
     */
    long earliest(long next, long ahead, long inFlight) {
        long over = ahead - (credit > 0 ? credit : quota);
        if (over < 0) {
            return next;
        }
        if (fills) {
            return next + product(over + 1, window / Math.max(1, quota));
        }
        long windows = over / Math.max(1, quota);
        long own = own(inFlight);
        if (countsOwn() && own > 0) {
            return later(next, regained(over + 1, own)) + product(windows, window);
        }
        return (credit > 0 ? later(next, earliestReset) : next) + product(credit > 0 ? windows : windows + 1, window);
    }

    /** Returns the product, at most {@link #FARTHEST}. */
    private static long product(long number, long nanos) {
        return nanos == 0 || number <= FARTHEST / nanos ? number * nanos : FARTHEST;
    }

    private static long later(long one, long other) {
        return other - one > 0 ? other : one;
    }

    /** Adds the permits that come back because the other side forgets calls of this side. */
    private void raise(long to, long now) {
        if (to > credit) {
            credit = to;
            if (now - earliestReset >= 0) {
                restart(now + memory, now);
            }
        }
    }

    /** The time between two calls if the credit is spread until the reset. */
    private long spacing(long from) {
        long rest = Math.max(0, earliestReset - from) / (credit + 1);
        return !shared ? Math.min(rest, window / quota + window / quota / credit) : rest;
    }

    /**
     * The last permit of a window that slides goes when its calls are likely to be forgotten, if that gains more than it costs:
     * the answer states the permits that are there again, and the call is not refused if there are none.
     */
    private long kept() {
        return !shared && quota > 1 && memory > window && memory - likelyMemory > memory / quota ? 1 : 0;
    }

    private long reserve() {
        return quota < 2 ? 0 : Math.max(1, quota / 4);
    }

    /** Notes that a call goes. */
    void take(long now) {
        if (credit <= 0) {
            probed = true;
        } else {
            keptWentAt = credit <= kept() ? now : keptWentAt;
            credit--;
        }
    }

    /** Notes that a call ends whose response has not come. */
    void lost(long now) {
        lost += now - earliestReset >= 0 ? 1 : 0;
    }

    /** Notes that an admitted call was not sent. */
    void giveBack() {
        credit++;
    }

    long credit() {
        return Math.max(0, credit);
    }

    long quota() {
        return quota;
    }
}
