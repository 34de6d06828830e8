package io.ratelimited.core.overload;

import io.ratelimited.core.overload.LimitChange.Reason;

public final class Controller implements Cloneable {

    public enum Mode { OPEN, DOWN, UP, DRAIN, WATCH, SETTLE, TEST }

    public static final long SHORTEST = 100_000_000L;

    static final double QUICK = 1.2, SLOW = 2, TARGET = 1.75, WANTED = .08, GAIN = .4, GROWTH = 1.5, STEP = .15;

    private int least;
    private int most;
    private double limit;
    private double base;
    private double factor = 1;
    private double peak;
    private double throughput;
    private double elasticity = WANTED;
    /** In flight at which it went wrong, and the time since. */
    private double wall = Double.MAX_VALUE;
    private double wallAge;
    private Mode mode = Mode.OPEN;
    private Window last = new Window(1, 0, 0, 0, 0, 0, 0, false);
    private Window reference = last;
    private Reason reason = Reason.START;

    private Controller(int least, int most) {
        this.least = least;
        this.most = most;
        this.limit = most;
    }

    public static Controller of(int least, int most) {
        return new Controller(least, most);
    }

    public Controller within(int least, int most) {
        Controller next = copy();
        next.least = least;
        next.most = most;
        next.limit = next.clamp(limit);
        next.reason = Reason.BOUNDS;
        return next;
    }

    private Controller copy() {
        try {
            return (Controller) clone();
        } catch (CloneNotSupportedException ex) {
            throw new AssertionError(ex);
        }
    }

    public int least() { return least; }
    public int most() { return most; }
    public double base() { return base; }
    public Reason reason() { return reason; }

    public boolean isOver(long nanos, long ended) {
        boolean gradient = mode == Mode.DOWN || mode == Mode.UP;
        double times = gradient ? 4 : mode == Mode.OPEN ? (last.bound() ? 1.5 : 0) : 1;
        double expected = throughput * nanos / 1e9;
        if (nanos >= 500_000_000L && nanos > 4 * base && expected > 20 && ended < .25 * expected) {
            return true;
        }
        if (nanos < Math.max(SHORTEST, Math.min(times * last.meanNanos(), Math.min(5e9, 10 * base)))) {
            return false;
        }
        return ended >= (gradient ? 150 : 50) || (nanos >= (gradient ? 4_000_000_000L : 2_000_000_000L) && ended >= 16);
    }

    public long longest() {
        return base == 0 ? Long.MAX_VALUE : (long) (10 * base);
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
        Controller next = copy();
        next.step(seen);
        next.limit = next.clamp(next.limit);
        next.factor = next.mode == Mode.DOWN ? 1 - STEP : next.mode == Mode.UP ? 1 + STEP : 1;
        next.peak = Math.max(seen.most(), peak * .99);
        next.wallAge = next.wall == wall ? wallAge + seen.nanos() / 1e9 : 0;
        next.last = seen;
        return next;
    }

    private void step(Window seen) {
        double time = seen.meanNanos();
        double x = seen.perSecond();
        if (base == 0) {
            base = time;
        }
        if (2 * seen.overloaded() > seen.answered() + seen.overloaded()) {
            become(limit * .9, Mode.OPEN, Reason.LATE);
        } else if (seen.answered() == 0) {
            return;
        } else if (mode == Mode.SETTLE) {
            mode = reference.answered() > 0 ? Mode.TEST : Mode.OPEN;
        } else if (!seen.bound()) {
            open(seen);
        } else if (time > SLOW * base) {
            slow(seen);
        } else {
            reference = new Window(1, 0, 0, 0, 0, 0, 0, false);
            base = Math.min(base, base + .3 * (time - base));
            if (seen.lateShare() > .1) {
                throughput = x;
                become(time < QUICK * base ? limit : limit * (1 - .5 * seen.lateShare()), Mode.SETTLE, Reason.LATE);
            } else if (time < QUICK * base) {
                throughput = x;
                become(limit < wall ? Math.min(limit * 1.25, Math.max(wall, 1.02 * limit)) : limit * (1 + Math.min(.25, .003 * wallAge)), Mode.OPEN, Reason.ROOM);
            } else if (mode == Mode.DOWN) {
                mode = Mode.UP;
            } else if (mode == Mode.UP) {
                gradient(seen);
            } else {
                throughput = x;
                mode = Mode.DOWN;
            }
        }
    }

    @Override
    public String toString() {
        return String.format("%s limit %.0f base %.1f thr %.0f wall %.0f e %.2f", mode, limit, base / 1e6, throughput, wall, elasticity);
    }

    private void become(double limit, Mode mode, Reason reason) {
        this.limit = limit;
        this.mode = mode;
        this.reason = reason;
    }

    private void open(Window seen) {
        double time = seen.meanNanos();
        if (time < SLOW * base) {
            base += (time < base ? .3 : .1) * (time - base);
            throughput = Math.max(seen.perSecond(), throughput * .95);
            reference = new Window(1, 0, 0, 0, 0, 0, 0, false);
            become(Math.min(limit, Math.sqrt(limit * 3 * Math.max(peak, seen.most()))), Mode.OPEN, Reason.ROOM);
        } else {
            become(Math.min(limit, seen.most()), Mode.OPEN, Reason.SERVES_NO_MORE);
        }
    }

    private void gradient(Window seen) {
        double x = Math.log(seen.good() / last.good());
        double n = Math.log(seen.meanInFlight() / last.meanInFlight());
        if (n > .05) {
            elasticity += .2 * (Math.max(-.5, Math.min(.5, x)) / n - elasticity);
        }
        double excess = elasticity - WANTED;
        throughput = (seen.perSecond() + last.perSecond()) / 2;
        base *= Math.exp(.05 * Math.min(0, excess) + .1 * Math.max(0, elasticity - .85));
        become(excess > 0 ? limit + GROWTH * Math.sqrt(limit) * excess : limit * Math.exp(GAIN * excess), Mode.DOWN, excess > 0 ? Reason.SERVES_MORE : Reason.SERVES_NO_MORE);
    }

    private void slow(Window seen) {
        double x = seen.perSecond();
        double n = seen.meanInFlight();
        boolean same = x > .8 * throughput;
        if (last.bound() && n > 1.05 * last.meanInFlight() && x < .95 * last.perSecond() && last.meanNanos() < SLOW * base) {
            wall = .93 * (mode == Mode.UP ? limit : last.meanInFlight());
            become(.85 * wall, Mode.SETTLE, Reason.SERVES_NO_MORE);
        } else if (mode != Mode.WATCH && mode != Mode.DRAIN && mode != Mode.TEST && 2 * seen.late() < seen.answered()) {
            mode = Mode.WATCH;
        } else if (mode == Mode.DRAIN) {
            if (x > .85 * last.perSecond()) {
                throughput = x;
                ours(seen);
            } else {
                mode = Mode.SETTLE;
            }
        } else if (reference.answered() > 0 && n < .8 * reference.meanInFlight()) {
            double change = Math.log(n / reference.meanInFlight());
            double e = Math.min(1 - Math.log(seen.meanNanos() / reference.meanNanos()) / change, Math.log(x / reference.perSecond()) / change);
            if (e < .7 || same) {
                ours(seen);
            } else {
                base = Math.max(base, seen.meanNanos());
                wall = Double.MAX_VALUE;
                become(Math.max(limit, Math.min(3 * reference.meanInFlight(), 1.2 * throughput * base / 1e9)), Mode.SETTLE, Reason.SERVES_MORE);
                reference = new Window(1, 0, 0, 0, 0, 0, 0, false);
            }
        } else if (same && last.bound()) {
            throughput = x;
            ours(seen);
        } else if (same) {
            reference = seen;
            become(.6 * Math.min(limit, n), Mode.DRAIN, Reason.SERVES_NO_MORE);
        } else if (2 * seen.late() < seen.answered() && seen.meanNanos() > 1.15 * last.meanNanos()) {
            mode = Mode.WATCH;
        } else {
            reference = seen;
            become(.6 * Math.min(limit, n), Mode.SETTLE, Reason.SERVES_NO_MORE);
        }
    }

    private void ours(Window seen) {
        become(Math.min(limit, Math.max(.4 * limit, TARGET * seen.perSecond() * base / 1e9)), Mode.SETTLE, Reason.SERVES_NO_MORE);
    }
}
