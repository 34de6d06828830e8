package io.ratelimited.core.internals.memory.concurrency;

/**
 * What was seen of the calls that ended within a span of time. Immutable.
 *
 * @param nanos the length of the span, more than 0
 * @param answered calls that ended with an answer, in time or late
 * @param meanNanos the mean time of these calls and of the overloaded ones from their admission, 0 without calls
 * @param meanInFlight the mean number of permits in use when they ended, 0 without calls
 * @param most the largest number of permits in use when one of them ended
 * @param late calls among the answered ones whose answer came too late
 * @param overloaded calls that ended without an answer, because another service or limit is overloaded
 * @param bound whether the limit has rejected a call or let one wait
 * @param left permits in use at the end of the span
 * @param atCaller those among them of calls that wait for their callers, not for the service
 */
record Window(
        long nanos,
        long answered,
        double meanNanos,
        double meanInFlight,
        long most,
        long late,
        long overloaded,
        boolean bound,
        long left,
        long atCaller) {

    /** A window without calls. */
    static final Window NONE = new Window(1, 0, 0, 0, 0, 0, 0, false, 0, 0);

    /** Calls that ended and say something of the load. */
    long ended() {
        return answered + overloaded;
    }

    /** Permits in use at the end of the span of calls that the service works for. */
    long working() {
        return left - atCaller;
    }

    /** The length of the span. */
    double seconds() {
        return nanos / 1e9;
    }

    /** Answers per second, in time or late. */
    double perSecond() {
        return answered * 1e9 / nanos;
    }

    /** Answers in time per second, and one in the window, so that there is a logarithm. */
    double goodPerSecond() {
        return (answered - late + 1) * 1e9 / nanos;
    }

    /** The share of the calls that came too late or met an overloaded service, from 0 to 1. */
    double badShare() {
        return ended() == 0 ? 0 : (double) (late + overloaded) / ended();
    }
}
