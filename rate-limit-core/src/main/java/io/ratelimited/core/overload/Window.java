package io.ratelimited.core.overload;

/**
 * What was seen of the calls that ended within a span of time. Immutable.
 *
 * @param nanos the length of the span, more than 0
 * @param answered calls that ended with an answer, in time or late
 * @param meanNanos the mean time of these calls from their admission, 0 without calls
 * @param meanInFlight the mean number of calls in flight when they ended, 0 without calls
 * @param most the largest number of calls in flight when one of them ended
 * @param late calls among them whose answer came too late
 * @param overloaded calls that ended without an answer, because another service or limit has too much to do
 * @param bound whether the limit has refused a call or let one wait
 */
public record Window(long nanos, long answered, double meanNanos, double meanInFlight, long most, long late, long overloaded, boolean bound) {

    /** Answers in time, and one, so that there is a logarithm. */
    double good() {
        return (answered - late + 1) * 1e9 / nanos;
    }

    double lateShare() {
        return answered == 0 ? 0 : (double) late / answered;
    }

    /** Answers, each second. */
    double perSecond() {
        return answered * 1e9 / nanos;
    }
}
