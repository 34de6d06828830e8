package io.ratelimited.core.memory.concurrency;

import io.ratelimited.core.overload.LimitChange.Reason;

/**
 * Seeks the number of calls in flight that serves most. A pure step from one {@link Window} to the next: no clock, thread or
 * chance. Immutable. Its numbers were chosen by simulation ({@code rate-limit-benchmarks/run overload}).
 *
 * <p>While nothing is refused it learns the base time and keeps the limit well above what it sees. Once calls are refused, it
 * raises the limit while they take little longer than the base time. If that serves no more, the base time was learned in a
 * queue, and is lowered. Then it seeks by steps below and above the limit where more calls in flight stop to serve more.
 * Calls that take {@link #SLOW} base times make it test whose queue that is: it admits fewer. Its own queue then serves as
 * many and takes less time. A dependency that has become slow serves fewer in the same time; that time is the new base, and
 * the limit grows.
 *
 * <p>Invariants, cited by tests:
 *
 * <ul>
 *   <li>O1 The limit and all places are within the bounds.
 *   <li>O2 Without refusals, and without slow calls, the limit does not sink below three times the most that is in flight.
 *   <li>O3 Without a refusal the limit does not rise.
 * </ul>
 */
final class Controller implements Cloneable {

    /** Phases of the search, each a window long. */
    private enum Phase {
        /** Admits the limit. */
        OPEN,
        /** A step below the limit. */
        BELOW,
        /** A step above the limit, after one below. */
        ABOVE,
        /** Calls have become slow; looks once more. */
        SLOW,
        /** Fewer are admitted: do as many end as before? */
        DRAIN,
        /** The limit has changed; waits for calls from before. */
        SETTLE,
        /** Fewer were admitted for a while: do they take as long as before? */
        TEST
    }

    /** The shortest window, in nanoseconds. */
    static final long SHORTEST = 100_000_000L;

    private static final double QUICK = 1.2;
    private static final double SLOW = 2;
    /** Time of a call at the limit when a queue was found to be its own, in base times. */
    private static final double TARGET = 1.75;
    /** Percent that are served more for one percent more in flight, at the limit. */
    private static final double WANTED = 0.08;
    /** Length of a step below and above the limit. */
    private static final double STEP = 0.15;

    private int least;
    private int most;
    private double limit;
    private double base;
    private double peak;
    /** Answers a second when calls were last not slow. */
    private double throughput;

    /** The most answers a second since calls are slow. */
    private double throughputOfSlow;

    private double elasticity = WANTED;
    /** Percent that were served more for one percent more in flight, when the limit grew because calls were quick. */
    private double gain = 1;
    /** Calls in flight at which fewer were served; the limit grows slowly from there. */
    private double wall = Double.MAX_VALUE;

    private double secondsOfWall;
    /** A wall if the next window is slow, too, so that a pause of the process makes none; 0 for none. */
    private double suspectedWall;

    private Phase phase = Phase.OPEN;
    private Window last = Window.NONE;
    /** The window before fewer were admitted for a test. */
    private Window reference = Window.NONE;

    private Reason reason = Reason.START;

    private Controller(int least, int most) {
        this.least = least;
        this.most = most;
        this.limit = most;
    }

    /** Knows nothing, and admits as many as it may. */
    static Controller of(int least, int most) {
        return new Controller(least, most);
    }

    /** The same with other bounds. */
    Controller within(int least, int most) {
        Controller next = copy();
        next.least = least;
        next.most = most;
        next.limit = next.clamp(limit);
        next.reason = Reason.BOUNDS;
        return next;
    }

    /** After one more window. */
    Controller next(Window seen) {
        Controller next = copy();
        next.step(seen);
        next.limit = next.clamp(next.limit);
        next.peak = Math.max((double) seen.most(), peak * 0.99);
        next.secondsOfWall = next.wall == wall ? secondsOfWall + seen.seconds() : 0;
        next.last = seen;
        return next;
    }

    private Controller copy() {
        try {
            return (Controller) clone();
        } catch (CloneNotSupportedException ex) {
            throw new AssertionError(ex);
        }
    }

    /** Returns whether a window of this length has shown enough for a step. */
    boolean isOver(long nanos, long answered) {
        boolean steps = phase == Phase.BELOW || phase == Phase.ABOVE;
        double expected = throughput * nanos / 1e9;
        if (nanos > Math.max(0.5e9, 4 * base) && expected > 20 && answered < expected / 4) {
            return true; // hardly anything ends
        }
        if (base == 0 && answered >= 16) {
            return true; // the first calls tell the base time best: overload may have begun
        }
        double times = steps ? 4 : phase == Phase.OPEN ? (last.bound() ? 1.5 : 0) : 1;
        return nanos >= Math.max(SHORTEST, Math.min(times * last.meanNanos(), Math.min(5e9, 10 * base)))
                && (answered >= (steps ? 150 : 50) || (nanos >= (steps ? 4e9 : 2e9) && answered >= 16));
    }

    /** Nanoseconds until a window begins: the calls that end until then were admitted before the step. */
    long settling() {
        return phase == Phase.BELOW || phase == Phase.ABOVE ? (long) Math.min(5e9, last.meanNanos()) : 0;
    }

    /** Permits that may be in use. */
    int places() {
        double step = phase == Phase.BELOW ? -STEP : phase == Phase.ABOVE ? STEP : 0;
        return (int) Math.round(clamp(limit * (1 + step)));
    }

    /** Permits that may be in use when a call of the best of several classes takes some: it pays for no step below. */
    int placesOfBest() {
        // Calls that come by chance are as many as their mean and two or three times its root.
        return (int) Math.round(clamp(Math.max(1.3 * limit, limit + 3 * Math.sqrt(limit))));
    }

    /** The limit that was found. */
    int limit() {
        return (int) Math.round(limit);
    }

    /** The lower bound. */
    int least() {
        return least;
    }

    /** The upper bound. */
    int most() {
        return most;
    }

    /** The time of a call that waits for no other, in nanoseconds; 0 while it is unknown. */
    double base() {
        return base;
    }

    /** The longest time of a call that is counted in full, in nanoseconds: a few that take for ever say little of the others. */
    long longest() {
        return base == 0 ? Long.MAX_VALUE : (long) (10 * base);
    }

    /** The reason why the limit has last changed. */
    Reason reason() {
        return reason;
    }

    private double clamp(double value) {
        return Math.max(least, Math.min(most, value));
    }

    private void become(double limit, Phase phase, Reason reason) {
        this.limit = limit;
        this.phase = phase;
        this.reason = reason;
    }

    private void step(Window seen) {
        base = base == 0 ? seen.meanNanos() : base;
        if (suspectedWall > 0 && (seen.answered() == 0 || seen.meanNanos() > SLOW * base)) {
            wall = suspectedWall;
        }
        suspectedWall = 0;
        if (seen.isRefusedByOthers()) {
            become(limit * 0.9, Phase.OPEN, Reason.LATE);
        } else if (seen.answered() == 0) {
            if (seen.bound() && last.answered() > 0) {
                become(limit * 0.6, Phase.SETTLE, Reason.SERVES_NO_MORE);
            }
        } else if (phase == Phase.SETTLE) {
            phase = reference.isNone() ? Phase.OPEN : Phase.TEST;
        } else if (!seen.bound()) {
            unbound(seen);
        } else if (seen.meanNanos() > SLOW * base) {
            slow(seen);
        } else {
            bound(seen);
        }
    }

    private void unbound(Window seen) {
        double time = seen.meanNanos();
        if (time > SLOW * base) {
            become(Math.min(limit, (double) seen.most()), Phase.OPEN, Reason.SERVES_NO_MORE);
            return;
        }
        // While more and more are in flight, a longer time is that of a queue which begins.
        base += (time < base ? 0.3 : seen.most() <= peak ? 0.1 : 0) * (time - base);
        throughput = Math.max(seen.perSecond(), throughput * 0.95);
        reference = Window.NONE;
        double enough = 3 * Math.max(peak, (double) seen.most());
        become(Math.min(limit, Math.sqrt(limit * enough)), Phase.OPEN, Reason.ROOM);
    }

    private void bound(Window seen) {
        reference = Window.NONE;
        base = Math.min(base, base + 0.3 * (seen.meanNanos() - base));
        if (last.bound() && reason == Reason.ROOM && phase == Phase.OPEN) {
            learnGain(seen);
        }
        boolean quick = seen.meanNanos() < QUICK * base;
        boolean late = seen.lateShare() > 0.1;
        if (quick == late && phase == Phase.ABOVE) {
            seek(seen);
        } else if (quick == late && phase == Phase.BELOW) {
            phase = Phase.ABOVE;
        } else {
            throughput = Math.max(seen.perSecond(), 0.8 * throughput + 0.2 * seen.perSecond());
            if (quick && (!late || (phase == Phase.OPEN && seen.lateShare() <= last.lateShare()))) {
                become(grown(seen.seconds()), Phase.OPEN, Reason.ROOM);
            } else if (late && !quick) {
                become(limit * (1 - seen.lateShare() / 2), Phase.SETTLE, Reason.LATE);
            } else {
                phase = Phase.BELOW;
            }
        }
    }

    /** Does growth serve more? If not, the base time was learned in a queue. */
    private void learnGain(Window seen) {
        double inFlight = Math.log(seen.meanInFlight() / last.meanInFlight());
        if (inFlight > 0.05) {
            double served = Math.log(seen.goodPerSecond() / last.goodPerSecond());
            gain += 0.2 * (Math.max(-1, Math.min(2, served / inFlight)) - gain);
            if (gain < 0.15) {
                base *= 0.9;
            }
        }
    }

    private double grown(double seconds) {
        return limit < wall
                ? Math.min(1.25 * limit, Math.max(wall, 1.02 * limit))
                : limit * (1 + Math.min(0.25, 0.001 * secondsOfWall * seconds));
    }

    /** Compares a step above with the one below. */
    private void seek(Window seen) {
        double inFlight = Math.log(seen.meanInFlight() / last.meanInFlight());
        if (inFlight > 0.05) {
            double served = Math.log(seen.goodPerSecond() / last.goodPerSecond());
            elasticity += 0.2 * (Math.max(-2, Math.min(2, served / inFlight)) - elasticity);
        }
        double excess = elasticity - WANTED;
        throughput = (seen.perSecond() + last.perSecond()) / 2;
        base *= Math.exp(0.05 * Math.min(0, excess) + 0.1 * Math.max(0, elasticity - 0.85));
        if (excess > 0) {
            // As many a second for small limits as for large ones, so that instances with one dependency come to have
            // equal limits.
            double seconds = Math.max(1, Math.min(8, seen.seconds() + last.seconds()));
            become(limit + 4 * seconds * excess, Phase.BELOW, Reason.SERVES_MORE);
        } else {
            become(limit * Math.exp(0.4 * excess), Phase.BELOW, Reason.SERVES_NO_MORE);
        }
    }

    private void slow(Window seen) {
        double answers = seen.perSecond();
        throughputOfSlow = last.meanNanos() > SLOW * base ? Math.max(throughputOfSlow, answers) : answers;
        boolean asMany = answers > 0.8 * throughput;
        boolean mostlyLate = seen.lateShare() >= 0.5;
        boolean looking = phase == Phase.SLOW || phase == Phase.DRAIN || phase == Phase.TEST;
        if (hasGrownInto(seen)) {
            double before = 0.93 * (phase == Phase.ABOVE ? limit : last.meanInFlight());
            suspectedWall = seen.meanInFlight() < 1.6 * last.meanInFlight() ? before : 0;
            become(0.85 * before, Phase.SETTLE, Reason.SERVES_NO_MORE);
        } else if (phase == Phase.ABOVE && !mostlyLate && seen.goodPerSecond() < 1.05 * last.goodPerSecond()) {
            seek(seen);
        } else if (!looking && !mostlyLate) {
            phase = Phase.SLOW;
        } else if (phase == Phase.DRAIN) {
            if (answers > 0.85 * last.perSecond()) {
                throughput = answers;
                drain(seen);
            } else {
                phase = Phase.SETTLE;
            }
        } else if (limit == least) {
            base *= 1.05; // fewer cannot be tried
            phase = Phase.OPEN;
        } else if (!reference.isNone() && seen.meanInFlight() < 0.8 * reference.meanInFlight()) {
            judge(seen, asMany);
        } else if (asMany && last.bound()) {
            throughput = answers;
            drain(seen);
        } else if (!asMany && !mostlyLate && seen.meanNanos() > 1.15 * last.meanNanos()) {
            phase = Phase.SLOW;
        } else {
            reference = seen;
            Phase next = asMany ? Phase.DRAIN : Phase.SETTLE;
            become(0.6 * Math.min(limit, seen.meanInFlight()), next, Reason.SERVES_NO_MORE);
        }
    }

    /** Returns whether calls have become slow, and fewer end, just because more were admitted. */
    private boolean hasGrownInto(Window seen) {
        return last.bound()
                && seen.meanInFlight() > 1.05 * last.meanInFlight()
                && seen.perSecond() < 0.95 * last.perSecond()
                && last.meanNanos() < SLOW * base;
    }

    /** Whose queue is it? With fewer in flight, a slow dependency takes as long and answers fewer. */
    private void judge(Window seen, boolean asMany) {
        double inFlight = Math.log(seen.meanInFlight() / reference.meanInFlight());
        double byTime = 1 - Math.log(seen.meanNanos() / reference.meanNanos()) / inFlight;
        double byAnswers = Math.log(seen.perSecond() / reference.perSecond()) / inFlight;
        if (asMany || Math.min(byTime, byAnswers) < 0.7) {
            reference = seen;
            drain(seen);
            return;
        }
        base = Math.max(base, seen.meanNanos());
        wall = Double.MAX_VALUE;
        double enough = Math.min(3 * reference.meanInFlight(), 2 * throughputOfSlow * base / 1e9);
        reference = Window.NONE;
        become(Math.max(limit, enough), Phase.SETTLE, Reason.SERVES_MORE);
    }

    private void drain(Window seen) {
        double enough = TARGET * seen.perSecond() * base / 1e9;
        become(Math.min(limit, Math.max(0.4 * limit, enough)), Phase.SETTLE, Reason.SERVES_NO_MORE);
    }
}
