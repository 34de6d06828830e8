package io.ratelimited.core.internals.memory.concurrency;

/**
 * What is known of the calls of a service while nothing was short. Immutable.
 *
 * @param base the latency of a call that waits for no other, in nanoseconds; 0 while it is unknown
 * @param deviation the usual deviation of a window's latency from it, in nanoseconds
 * @param rate the permits of the usual calls per second
 * @param peak the most permits in use that were served well; it fades
 * @param windows calm windows in a row without a rejection
 * @param weight the mean permits of the call that a permit belongs to
 * @param perCall the mean permits of a call
 */
record Known(double base, double deviation, double rate, double peak, int windows, double weight, double perCall) {

    static final Known NOTHING = new Known(0, 0, 0, 0, 0, 1, 1);

    boolean isBelieved() {
        return windows >= Tuning.BELIEVED;
    }

    /** Whether calls of this latency wait for others. */
    boolean isSlow(double latency) {
        return latency > Tuning.SLOW * base + deviation;
    }

    /** Permits of so many calls: a rare one of many permits changes hardly anything. */
    double permits(double calls) {
        return perCall * calls;
    }

    /** Permits that are usually in use. */
    double inFlight() {
        return rate * base / 1e9;
    }

    /** Permits by which so many differ by chance: the root of a number of calls. */
    double chance(double permits) {
        return Math.sqrt(weight * permits);
    }

    /** Follows the weight of calls. */
    Known weighing(Window seen) {
        double follows = base == 0 ? 1 : Tuning.FOLLOW;
        return new Known(
                base,
                deviation,
                rate,
                peak,
                windows,
                weight + follows * (seen.weight() - weight),
                perCall + follows * (seen.perCall() - perCall));
    }

    Known withBase(double base) {
        return new Known(base, deviation, rate, peak, windows, weight, perCall);
    }

    /** After more permits a second than usual, which were served well. */
    Known served(double perSecond) {
        return new Known(base, deviation, Math.max(rate, perSecond), peak, windows, weight, perCall);
    }

    /** Follows quicker calls: slower ones may be those of a queue. */
    Known quicker(double latency) {
        if (base == 0) {
            return withBase(latency);
        }
        double weight = isBelieved() ? Tuning.FOLLOW : Tuning.LEARN;
        return latency < base ? withBase(base + weight * (latency - base)) : this;
    }

    /** After a window in which calls were not slow, and another one before it. */
    Known calm(Window seen, Window last) {
        double latency = seen.meanNanos();
        boolean well = latency <= Tuning.WELL * base;
        boolean grows = seen.meanInFlight() > peak;
        double slower = latency > base && well && !grows ? Tuning.FOLLOW * (latency - base) : 0;
        double differs = deviation + Tuning.FOLLOW * (Math.abs(latency - base) - deviation);
        // Arrivals, since those of calls that become slow have not ended yet.
        double arrived = Math.max(0, (seen.left() - last.left() + seen.ended()) / seen.seconds());
        double fading = peak * Tuning.FADE;
        // A storm begins with a window in which calls are still quick.
        double possible = windows == 0 ? seen.meanInFlight() : Math.max(Tuning.BEGIN, Tuning.GROWN * peak);
        return new Known(
                base + slower,
                windows == 0 ? 0 : Math.min(Tuning.NOISE * base, differs),
                rate == 0 ? seen.perSecond() : rate + Tuning.RATE * (Math.min(arrived, Tuning.STORM * rate) - rate),
                well ? Math.max(Math.min(seen.meanInFlight(), possible), fading) : fading,
                seen.bound() ? 0 : windows + 1,
                weight,
                perCall);
    }

    /** Permits that what was served needs. */
    double enough(Window seen) {
        return Tuning.ENOUGH * Math.max(Math.max(rate, seen.perSecond()) * base / 1e9, peak);
    }
}
