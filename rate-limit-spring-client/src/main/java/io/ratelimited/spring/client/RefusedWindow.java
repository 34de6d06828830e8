package io.ratelimited.spring.client;

/**
 * A window of the other side as its refusals show it, where no answer states a quota: the number of calls that it holds, and
 * its length. Not thread-safe. All times are of a monotonic clock, in nanoseconds.
 *
 * <ol>
 *   <li>A window holds as many calls as were admitted between a pause and the next refusal. Each later call waits for the
 *       answer to the one before, so that one call is refused instead of all in flight. This number is forgotten after twice
 *       as many calls.
 *   <li>A refusal states the end of its window to the second, and windows follow each other. When two windows in a row were
 *       used up by as many calls, and one whole number of seconds alone explains the ends of these pauses and of those
 *       before, calls beyond the number that a window holds go in the next window, for {@value #TRUSTED} windows. Then one
 *       window is used until a call is refused, since it may hold more.
 *   <li>This guess is forgotten when a call is refused in spite of it, and when a window is not used up: a bucket saves
 *       unused permits.
 * </ol>
 */
final class RefusedWindow {

    private static final int TRUSTED = 10;

    private static final long SECOND = 1_000_000_000L;
    /** Shortest window that is guessed: of a shorter one, a second would be too much to lose. */
    private static final long SHORTEST = 3 * SECOND;

    /** After so many windows, a length that is not a whole number of seconds is recognized. */
    private static final int KNOWN_AFTER_MISTAKE = 8;

    /** Number of calls that a window holds; 0 if that is not known. */
    private long holds;
    /** Calls that were admitted since {@link #began}. */
    private long admitted;
    /** The end of the last pause, or the end of a window after it. */
    private long began;
    /** The time between two refusals of which each ended a window; 0 if it is not known. */
    private long length;

    /** The end of a pause, and the windows since then; negative if there is none. */
    private long firstEnd;

    private long windows = -1;
    /** Number of windows that must be known before their length is guessed. */
    private int known = 2;
    /** The length of a window is between these two. */
    private long shortest;

    private long longest;
    /**
     * Number of windows for which the guess is still trusted: calls beyond the number that a window holds wait for the next.
     */
    private int trusted;

    /** Begins to count: nothing is known of the time before. */
    void begin(long now) {
        began = now;
    }

    /**
     * Leaves windows behind that have ended.
     *
     * @return whether the present window is one whose begin is a guess, and has just begun
     */
    boolean pass(long now) {
        boolean guessed = false;
        while (length > 0 && now - began >= length) {
            if (trusted > 0 && admitted >= holds) {
                trusted--;
                windows++;
                began += length;
                guessed = true;
            } else {
                forget();
                began = now;
                guessed = false;
            }
            admitted = 0;
        }
        return guessed;
    }

    private void forget() {
        trusted = 0;
        windows = -1;
    }

    /** Returns whether as many calls have gone as a window holds. */
    boolean isUsedUp(long inFlight) {
        return holds > 0 && admitted + inFlight >= holds;
    }

    /** Returns whether calls behind those go in the next window, which begins at {@link #end}. */
    boolean isTrusted() {
        return trusted > 0;
    }

    /** Returns the end of the present window. */
    long end() {
        return began + length;
    }

    /** Notes that a call was admitted. */
    void admitted(boolean duringPause) {
        if (duringPause) {
            holds++;
        } else if (++admitted >= 2 * holds) {
            holds = 0;
            forget();
        }
    }

    /**
     * Notes the begin of a pause.
     *
     * @param until its end
     * @param error the time by which the window may end sooner
     */
    void paused(long until, long error) {
        boolean early = trusted > 0 && admitted == 0;
        boolean repeated = admitted == holds;
        length = until - began;
        holds = early ? holds : admitted;
        known = early ? KNOWN_AFTER_MISTAKE : known;
        admitted = 0;
        began = until;
        if (windows < 0 || trusted > 0) {
            trusted = 0;
            start(until);
            return;
        }
        windows++;
        shortest = Math.max(shortest, (until - firstEnd - error) / windows);
        longest = Math.min(longest, (until - firstEnd + error) / windows);
        long whole = longest / SECOND * SECOND;
        if (whole < shortest) {
            known = KNOWN_AFTER_MISTAKE;
            start(until);
        } else if (repeated && holds > 0 && windows >= known && whole >= SHORTEST && whole - SECOND < shortest) {
            trusted = TRUSTED;
            length = whole;
        }
    }

    private void start(long end) {
        firstEnd = end;
        windows = 0;
        shortest = 0;
        longest = Long.MAX_VALUE;
    }

    /** A pause ends at another time than a window. */
    void endsOtherwise(long until) {
        began = until;
        forget();
    }
}
