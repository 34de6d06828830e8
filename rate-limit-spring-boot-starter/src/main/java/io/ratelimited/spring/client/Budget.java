package io.ratelimited.spring.client;

import io.ratelimited.spring.client.Answer.Quota;

/**
 * What this side may still use of a quota of the other side. Not thread-safe. All times are of a monotonic clock, in
 * nanoseconds.
 *
 * <p>The answers do not say whether a window begins anew at its end or a bucket fills all the time, so this holds for both:
 *
 * <ol>
 *   <li>{@code credit} is never more than what the other side has left for calls that have not been sent. An answer counts
 *       less the calls in flight and the calls that were answered since its own was sent, whatever their order there was.
 *   <li>As long as credit of more than a quarter of the quota is left, calls go at once. The rest is spread over the time
 *       until the reset.
 *   <li>Without credit, one call goes at the earliest reset that the answers have told since credit last rose, when at least
 *       one permit is there in a window and in a bucket; after the latest reset the whole quota is there.
 * </ol>
 */
final class Budget {

    private long quota;
    private long credit;
    /** The length of a window, as far as it is known. */
    private long window;
    /** The first and the last of the resets that answers have told since credit rose. */
    private long earliestReset;

    private long latestReset;
    /** Whether a call has gone at the earliest reset. */
    private boolean probed;
    /** Whether no answer has come since the whole quota was there again: the resets are a guess until then. */
    private boolean guessed;

    /** @param sent calls that the answer may not have counted */
    Budget(Quota told, long sent, long now) {
        quota = told.quota();
        credit = told.remaining() - sent;
        keepTerms(told);
        restart(now + told.resetNanos());
    }

    private void keepTerms(Quota told) {
        quota = Math.max(told.quota() == Quota.UNKNOWN ? quota : told.quota(), told.remaining());
        window = told.windowNanos() == Quota.UNKNOWN ? Math.max(window, told.resetNanos()) : told.windowNanos();
    }

    private void restart(long reset) {
        earliestReset = reset;
        latestReset = reset;
        probed = false;
        guessed = false;
    }

    /**
     * An answer has come.
     *
     * @param inFlight calls that have been sent and not answered, without the one that is answered
     * @param answeredSince calls that were answered since the one that is answered was sent
     */
    void told(Quota told, long inFlight, long answeredSince, long now) {
        keepTerms(told);
        long reset = now + told.resetNanos();
        long atMost = told.remaining() - inFlight;
        long atLeast = atMost - answeredSince;
        if (guessed) {
            restart(Math.max(reset - now, earliestReset - now) + now);
        } else if (atLeast > credit) {
            restart(reset);
        } else if (reset - earliestReset < 0) {
            earliestReset = reset;
        } else if (reset - latestReset > 0) {
            latestReset = reset;
        }
        credit = Math.max(Math.min(credit, atMost), atLeast);
    }

    /**
     * When the next call may go; at once if that is not after {@code now}.
     *
     * @param last when the last call went
     */
    long next(long now, long last, long inFlight) {
        if (now - latestReset >= 0) {
            credit = Math.max(credit, quota - inFlight);
            restart(now + window);
            guessed = true;
        }
        if (credit > reserve()) {
            return now;
        }
        if (credit > 0) {
            return now - earliestReset >= 0 ? now : last + spacing(last);
        }
        return probed ? latestReset : earliestReset;
    }

    /** The time between two calls if all that is left is spread until the reset; 0 if calls need not be spread. */
    long spacing(long from) {
        return credit > reserve() ? 0 : Math.max(0, earliestReset - from) / (Math.max(0, credit) + 1);
    }

    private long reserve() {
        return quota < 2 ? 0 : Math.max(1, quota / 4);
    }

    /** A call goes. */
    void take() {
        if (credit <= 0) {
            probed = true;
        } else {
            credit--;
        }
    }

    /** A call that had been let go was not sent. */
    void giveBack() {
        credit++;
    }

    long credit() {
        return Math.max(0, credit);
    }

    long quota() {
        return quota;
    }

    long reset() {
        return earliestReset;
    }
}
