package io.ratelimited.core.memory.concurrency;

/**
 * What was seen of the calls that ended within a span of time. Immutable.
 *
 * @param nanos the length of the span, more than 0
 * @param answered calls that ended with an answer, in time or late
 * @param meanNanos the mean time of these calls from their admission, 0 without calls
 * @param meanInFlight the mean number of permits in use when they ended, 0 without calls
 * @param most the largest number of permits in use when one of them ended
 * @param late calls among them whose answer came too late
 * @param overloaded calls that ended without an answer, because another service or limit has too much to do
 * @param bound whether the limit has refused a call or let one wait
 */
record Window(
        long nanos,
        long answered,
        double meanNanos,
        double meanInFlight,
        long most,
        long late,
        long overloaded,
        boolean bound) {

    /** A window without calls. */
    static final Window NONE = new Window(1, 0, 0, 0, 0, 0, 0, false);

    /** Returns whether this is {@link #NONE}, or has seen as little. */
    boolean isNone() {
        return answered == 0 && overloaded == 0;
    }

    /** The length of the span. */
    double seconds() {
        return nanos / 1e9;
    }

    /** Answers a second. */
    double perSecond() {
        return answered * 1e9 / nanos;
    }

    /** Answers in time a second, and one in the window, so that there is a logarithm. */
    double goodPerSecond() {
        return (answered - late + 1) * 1e9 / nanos;
    }

    /** The share of the answers that came too late, from 0 to 1. */
    double lateShare() {
        return answered == 0 ? 0 : (double) late / answered;
    }

    /** Returns whether at least half of the calls were refused by others. */
    boolean isRefusedByOthers() {
        return 2 * overloaded > answered + overloaded;
    }
}
