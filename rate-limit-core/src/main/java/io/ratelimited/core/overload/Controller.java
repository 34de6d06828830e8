package io.ratelimited.core.overload;

import io.ratelimited.core.overload.LimitChange.Reason;

public record Controller(
        int least,
        int most,
        double limit,
        double base,
        Mode mode,
        double factor,
        double peak,
        double throughput,
        double seenThroughput,
        double seenInFlight,
        double elasticity,
        double time,
        boolean wasBound,
        Reason reason) {

    public enum Mode { OPEN, DOWN, UP, TEST, SETTLE }

    public static final long SHORTEST = 100_000_000L;

    static final double QUICK = 1.2, SLOW = 2, TARGET = 1.75, WANTED = .15, GAIN = .3;

    public static Controller of(int least, int most) {
        return new Controller(least, most, most, 0, Mode.OPEN, 1, 0, 0, 0, 0, WANTED, 0, false, Reason.START);
    }

    public Controller within(int least, int most) {
        return new Controller(least, most, Math.max(least, Math.min(most, limit)), base, mode, factor, peak, throughput, seenThroughput, seenInFlight, elasticity, time, wasBound, Reason.BOUNDS);
    }

    public boolean isOver(long nanos, long ended) {
        double times = mode == Mode.DOWN || mode == Mode.UP ? 4 : mode == Mode.OPEN ? 0 : mode == Mode.SETTLE ? 1 : 2;
        return nanos >= Math.max(SHORTEST, Math.min(times * time, 5e9)) && (ended >= 50 || (nanos >= 2_000_000_000L && ended >= 16));
    }

    public int places() {
        return (int) Math.round(clamp(limit * factor));
    }

    public int placesOfBest() {
        return (int) Math.round(clamp(limit * 1.3));
    }

    public int rounded() {
        return (int) Math.round(limit);
    }

    private double clamp(double value) {
        return Math.max(least, Math.min(most, value));
    }

    public Controller next(Window seen) {
        if (seen.answered() == 0) {
            return seen.overloaded() > 0 ? to(limit * .7, base, Mode.OPEN, 1, 0, seen, Reason.LATE) : this;
        }
        double time = seen.meanNanos();
        double x = seen.answered() * 1e9 / seen.nanos();
        double n = seen.meanInFlight();
        double known = base == 0 ? time : base;
        if (mode == Mode.SETTLE) {
            return to(limit, known, Mode.OPEN, 1, x, seen, reason);
        }
        if (!seen.bound()) {
            if (time < SLOW * known) {
                double learned = known + (time < known ? .3 : .1) * (time - known);
                double next = Math.max(Math.min(limit, 4 * Math.max(peak, seen.most())), limit * .9);
                return to(next, learned, Mode.OPEN, 1, Math.max(x, throughput * .95), seen, Reason.ROOM);
            }
            return to(Math.min(limit, seen.most()), known, Mode.OPEN, 1, throughput, seen, Reason.SERVES_NO_MORE);
        }
        if (time < known) {
            known += .3 * (time - known);
        }
        if (2 * seen.overloaded() > seen.answered() + seen.overloaded()) {
            return to(limit * .7, known, Mode.OPEN, 1, x, seen, Reason.LATE);
        }
        if (mode == Mode.TEST) {
            double e = elasticity(x, n, -.1);
            if (e < .4) {
                return to(TARGET * x * known / 1e9, known, Mode.SETTLE, 1, x, seen, Reason.SERVES_NO_MORE);
            }
            return to(limit * 1.25, Math.max(known, .8 * time), Mode.SETTLE, 1, x, seen, Reason.SERVES_MORE);
        }
        if (time < QUICK * known) {
            return to(limit * 1.25, known, Mode.OPEN, 1, x, seen, Reason.ROOM);
        }
        if (time > SLOW * known) {
            if (wasBound && x > .8 * throughput) {
                return to(Math.min(limit, TARGET * x * known / 1e9), known, Mode.SETTLE, 1, x, seen, Reason.SERVES_NO_MORE);
            }
            return to(Math.min(limit, n), known, Mode.TEST, .6, throughput, seen, reason);
        }
        if (mode != Mode.DOWN && mode != Mode.UP) {
            return to(limit, known, Mode.DOWN, .87, x, seen, reason);
        }
        if (mode == Mode.DOWN) {
            return to(limit, known, Mode.UP, 1.15, x, seen, reason);
        }
        double e = .8 * elasticity + .2 * elasticity(x, n, .05);
        Controller next = to(limit * Math.exp(GAIN * (e - WANTED)), e > .6 ? known * 1.05 : known, Mode.DOWN, .87, x, seen, e > WANTED ? Reason.SERVES_MORE : Reason.SERVES_NO_MORE);
        return next.withElasticity(e);
    }

    private double elasticity(double x, double n, double least) {
        double change = Math.log(n / seenInFlight);
        if (Math.abs(change) < Math.abs(least)) {
            return WANTED;
        }
        return Math.max(-1, Math.min(1, Math.log(x / seenThroughput) / change));
    }

    private Controller withElasticity(double e) {
        return new Controller(least, most, limit, base, mode, factor, peak, throughput, seenThroughput, seenInFlight, e, time, wasBound, reason);
    }

    private Controller to(double limit, double base, Mode mode, double factor, double throughput, Window seen, Reason reason) {
        double x = seen.answered() * 1e9 / seen.nanos();
        return new Controller(least, most, clamp(limit), base, mode, factor, Math.max(seen.most(), peak * .99), throughput, x, seen.meanInFlight(), elasticity, seen.answered() == 0 ? time : seen.meanNanos(), seen.bound(), reason);
    }
}
