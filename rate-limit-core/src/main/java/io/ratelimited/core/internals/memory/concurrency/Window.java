package io.ratelimited.core.internals.memory.concurrency;

/**
 * What was seen of the calls that ended within a span of time. Immutable.
 *
 * @param nanos the length of the span, more than 0
 * @param answered permits of the calls that ended with an answer, in time or late
 * @param meanNanos the mean time, by permit, of these calls and of the overloaded ones from their admission, 0 without calls
 * @param meanInFlight the mean number of permits in use when they ended, 0 without calls
 * @param most the largest number of permits in use when one of them ended
 * @param late permits of the calls among the answered ones whose answer came too late
 * @param overloaded permits of the calls that ended without an answer, because another service or limit is overloaded
 * @param bound whether the limit has rejected a call or let one wait
 * @param left permits in use at the end of the span
 * @param atCaller those among them of calls that wait for their callers, not for the service
 * @param weight mean permits of the call that a permit belongs to, at least 1: calls of this weight differ by chance as much as
 *     those that ended
 * @param perCall mean permits of a call, at least 1
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
        long atCaller,
        double weight,
        double perCall) {

    /** A window without calls. */
    static final Window NONE = new Window(1, 0, 0, 0, 0, 0, 0, false, 0, 0, 1, 1);

    /** Permits of calls that ended and say something of the load. */
    long ended() {
        return answered + overloaded;
    }

    /** Permits in use at the end of the span of calls that the service works for. */
    long working() {
        return left - atCaller;
    }

    /** Permits of the calls that came too late or met an overloaded service. */
    long bad() {
        return late + overloaded;
    }

    /** The length of the span. */
    double seconds() {
        return nanos / 1e9;
    }

    /** Permits of answered calls per second, in time or late. */
    double perSecond() {
        return answered * 1e9 / nanos;
    }

    /** Permits of calls answered in time per second, and one in the window, so that there is a logarithm. */
    double goodPerSecond() {
        return (answered - late + 1) * 1e9 / nanos;
    }

    /** The share, by permits, of the calls that came too late or met an overloaded service, from 0 to 1. */
    double badShare() {
        return ended() == 0 ? 0 : (double) bad() / ended();
    }
}
