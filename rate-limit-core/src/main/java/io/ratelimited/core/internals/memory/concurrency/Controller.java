package io.ratelimited.core.internals.memory.concurrency;

import io.ratelimited.core.overload.FoundLimitChange.Reason;

/**
 * Finds the number of calls in flight that serves most. A pure step from one {@link Window} to the next: no clock, thread or
 * chance. Immutable. Its constants stand in {@link Tuning}; those that are numbers of answers are of usual calls, which may need
 * several permits each.
 *
 * <p>The limit is a belief about a shortage, and there is none until a sign of one is seen. While nothing is short, up to the
 * upper bound of calls is admitted, and what is usual is learned ({@link Known}). The signs: more and more calls in flight
 * slow calls down and serve no more; arrivals storm in and hardly any call ends; the number in flight stands still, as behind
 * the threads of a server, while calls are slow; many calls are late. Slow calls alone are no sign: a dependency that became
 * slow keeps more calls in flight, but not more and more. Where the usual load is known and far more arrives, no more are let
 * in for a moment, far above what was served well, until it is seen whether those in flight end.
 *
 * <p>A sign leads to a test with fewer: calls of a queue of our own become quicker and as many end, those of a slow dependency
 * take as long and fewer end, and then there is no limit again. Else the limit is sought: from what is known or, where the
 * process has just begun, by doubling from a low number while more are served. It is tracked by steps below and above it,
 * which tell the elasticity of throughput: percent that are served more for one percent more in flight.
 * Where hardly any call ends before a test has shown whose queue it is, there is no limit either: they hang.
 *
 * <p>Invariants, cited by tests:
 *
 * <ul>
 *   <li>O1 The limit and all places are within the bounds.
 *   <li>O2 Without calls that are slow, late or overloaded, nothing is limited, except for a moment in a busy service while
 *       many more calls than usual arrive.
 *   <li>O3 Where nothing is rejected, the limit does not sink.
 * </ul>
 *
 * @param least the lower bound
 * @param most the upper bound
 * @param limit the limit that was found; the upper bound while nothing is limited
 * @param reference the window that the next ones are compared with
 * @param last the last window
 * @param elasticity percent that are served more for one percent more in flight
 * @param cap below the number that stands still, as of threads; none where it does not
 * @param wall a number of calls in flight that did harm; none where none is known
 * @param reason why the limit has last changed
 */
record Controller(
        int least,
        int most,
        Phase phase,
        double limit,
        Known known,
        Window reference,
        Window last,
        Signs signs,
        double elasticity,
        double cap,
        double wall,
        Reason reason) {

    /** Phases of the search. */
    enum Phase {
        /** Nothing is limited. */
        FREE,
        /** Many more calls than usual arrive: no more are let in until it is seen whether they end. */
        HOLD,
        /** A limit was set; more calls than it allows are still in flight. */
        DRAIN,
        /** Fewer are admitted: do calls become quicker? */
        TEST,
        /** The first level of a search without knowledge. */
        FIRST,
        /** A level of twice as many. */
        UP,
        /** A level of half as many. */
        DOWN,
        /** A step below the limit. */
        BELOW,
        /** A step above the limit, after one below. */
        ABOVE
    }

    private static final double NONE = Double.MAX_VALUE;

    /** Knows nothing, and limits nothing. */
    static Controller of(int least, int most) {
        return new Controller(
                least,
                most,
                Phase.FREE,
                most,
                Known.NOTHING,
                Window.NONE,
                Window.NONE,
                Signs.at(0),
                Tuning.WANTED,
                NONE,
                NONE,
                Reason.START);
    }

    /** The same with other bounds. */
    Controller within(int least, int most) {
        double kept = phase == Phase.FREE ? most : Math.max(least, Math.min(most, limit));
        return new Controller(
                least, most, phase, kept, known, reference, last, signs, elasticity, cap, wall, Reason.BOUNDS);
    }

    /**
     * Returns whether a window of this length has shown enough for a step.
     *
     * @param ended permits of the calls that ended
     * @param bad permits of those among them that were late or met an overloaded service
     * @param used permits in use now
     */
    boolean isOver(long nanos, long ended, long bad, long used) {
        if (nanos < Tuning.SHORTEST) {
            return false;
        }
        double turnover = Math.min(last.meanNanos(), Tuning.PATIENCE);
        return switch (phase) {
            case FREE -> isOverWhileFree(nanos, ended, used);
            case HOLD -> nanos >= Tuning.HOLD_SPAN * base();
            case DRAIN -> used <= placesOfBest() || hangs(nanos, ended);
            case TEST ->
                (ended >= Math.max(permits(Tuning.ANSWERS), Tuning.TURNOVERS * limit) && nanos >= turnover)
                        || (nanos >= Tuning.LONGEST && ended > permits(Tuning.FIRST_ANSWERS))
                        || (ended == 0 && hangs(nanos, ended));
            case FIRST, UP, DOWN ->
                (ended >= Math.max(permits(Tuning.LEVEL), 2 * limit) && nanos >= turnover)
                        || (nanos >= Tuning.LONGEST && ended > permits(Tuning.FEW_ANSWERS));
            case BELOW, ABOVE ->
                (ended >= permits(Tuning.LEVEL) && bad > Tuning.MOSTLY_LATE * ended && nanos >= turnover)
                        || (ended >= permits(Tuning.STEP_ANSWERS)
                                && nanos >= Math.min(2 * last.meanNanos(), Tuning.PATIENCE))
                        || (nanos >= Tuning.LONGEST && ended >= permits(Tuning.ANSWERS));
        };
    }

    /** Returns whether hardly any call ends for so long: a queue of our own would be served. */
    private boolean hangs(long nanos, long ended) {
        return nanos >= Math.max(Tuning.LONGEST, 2 * base())
                && ended <= Math.max(permits(Tuning.FIRST_ANSWERS), Tuning.HANGING * known.rate() * nanos / 1e9);
    }

    private boolean isOverWhileFree(long nanos, long ended, long used) {
        double base = known.base();
        if (base == 0) {
            return ended >= permits(Tuning.FIRST_ANSWERS);
        }
        double half = 0.5 * last.meanNanos();
        return (ended >= permits(Tuning.ANSWERS) && nanos >= Math.max(Tuning.SPAN * base, half))
                || (used >= watched() && nanos >= Tuning.WATCH_SPAN * base)
                || (ended >= permits(Tuning.FEW_ANSWERS)
                        && used >= Math.max(Tuning.BEGIN, Tuning.GROWN * signs.high())
                        && nanos >= Math.max(2 * base, half))
                || (nanos >= Tuning.LONGEST / 2 && ended > 0);
    }

    /** Nanoseconds until a window begins: the calls that end until then were admitted before the step. */
    long settling() {
        double base = known.base();
        double longest = switch (phase) {
            case FREE, HOLD, DRAIN -> 0;
            case TEST, FIRST -> base == 0 ? Tuning.PATIENCE / 50 : 2 * base;
            case UP, DOWN, BELOW, ABOVE -> base == 0 ? Tuning.PATIENCE : 4 * base;
        };
        return (long) Math.min(last.meanNanos(), longest);
    }

    /** Permits in use from which on a call that is admitted may take the step: perhaps hardly any call ends any more. */
    int watched() {
        return phase == Phase.FREE && known.isBelieved() && known.inFlight() >= Tuning.BUSY
                ? (int) Math.max(Tuning.BEGIN, Tuning.WATCHED * known.inFlight())
                : Integer.MAX_VALUE;
    }

    /**
     * Permits that may be in use.
     *
     * @param classes whether there are several: then those for calls of lower ones
     */
    int places(boolean classes) {
        double share = switch (phase) {
            case BELOW -> 1 - Tuning.STEP;
            case ABOVE -> 1 + Tuning.STEP;
            case HOLD -> classes ? Tuning.HOLD_LOWER : 1;
            default -> 1;
        };
        return (int) Math.round(clamp(share * limit));
    }

    /**
     * Permits that may be in use when a call of the highest of several classes takes some: it pays for no step below. It takes
     * those above, or nothing would be learned where all calls are of this class.
     */
    int placesOfBest() {
        double above = phase == Phase.ABOVE ? 1 + Tuning.STEP : 1;
        double best = Math.max(Tuning.BEST * limit, limit + Tuning.CHANCE * known.chance(limit));
        return (int) Math.round(clamp(above * best));
    }

    /** The limit that was found. */
    int found() {
        return (int) Math.round(limit);
    }

    /** The latency of a call that waits for no other, in nanoseconds; 0 while it is unknown. */
    double base() {
        return known.base();
    }

    /** The longest time of a call that is counted in full, in nanoseconds: a few that take forever say little of the others. */
    long longest() {
        return base() == 0 ? Long.MAX_VALUE : (long) (Tuning.CLIP * base());
    }

    /** Permits of so many usual calls. */
    private double permits(double calls) {
        return known.permits(calls);
    }

    private double clamp(double value) {
        return Math.max(least, Math.min(Math.min(most, cap), value));
    }

    /** After one more window. */
    Controller next(Window seen) {
        if (seen.ended() == 0) {
            return switch (phase) {
                case FREE ->
                    isStorm(seen, known)
                            ? shortage(seen, known, Reason.SERVES_NO_MORE)
                            : counted(seen, known, signs).holding(this, seen);
                case HOLD -> held(seen);
                case DRAIN -> drained(seen);
                case TEST -> freed(seen, base());
                default -> this;
            };
        }
        return switch (phase) {
            case FREE -> free(seen).holding(this, seen);
            case HOLD -> held(seen);
            case DRAIN -> drained(seen);
            case TEST -> tested(seen);
            case FIRST -> first(seen);
            case UP -> up(seen);
            case DOWN -> down(seen);
            case BELOW, ABOVE -> track(seen);
        };
    }

    /** Another phase, whose counts begin anew. */
    private Controller become(Phase next, double limit, Window seen, Reason why) {
        double becomes = next == Phase.FREE ? most : clamp(limit);
        Reason changed = Math.round(becomes) == Math.round(this.limit) ? reason : why;
        Signs none = Signs.at(signs.high());
        return new Controller(least, most, next, becomes, known, reference, seen, none, elasticity, cap, wall, changed);
    }

    /** The same phase, with other knowledge and counts. */
    private Controller counted(Window seen, Known known, Signs signs) {
        return new Controller(least, most, phase, limit, known, reference, seen, signs, elasticity, cap, wall, reason);
    }

    private Controller knowing(double base) {
        return new Controller(
                least, most, phase, limit, known.withBase(base), reference, last, signs, elasticity, cap, wall, reason);
    }

    private Controller comparing(Window to, double elasticity) {
        return new Controller(least, most, phase, limit, known, to, last, signs, elasticity, cap, wall, reason);
    }

    private Controller below(double cap, double wall) {
        return new Controller(least, most, phase, limit, known, reference, last, signs, elasticity, cap, wall, reason);
    }

    /** Returns whether anything is limited. */
    boolean isLimited() {
        return phase != Phase.FREE;
    }

    /** After {@link Tuning#FORGET} without a rejection: what was short then tells nothing of now. */
    Controller forgotten(Window seen) {
        return freed(seen, base());
    }

    /** Nothing is limited again. */
    private Controller freed(Window seen, double base) {
        return knowing(base)
                .below(NONE, NONE)
                .comparing(seen, elasticity)
                .counted(seen, known.withBase(base), Signs.at((double) seen.left()))
                .become(Phase.FREE, most, seen, Reason.ROOM);
    }

    /** Lets no more in where many more calls than usual have arrived for two windows, until it is seen whether they end. */
    private Controller holding(Controller before, Window seen) {
        if (phase != Phase.FREE || !before.known.isBelieved()) {
            return this;
        }
        double arrived = seen.left() - before.last.left() + seen.ended();
        double usual = before.known.rate() * seen.seconds();
        boolean storms = seen.working() >= before.watched()
                && seen.nanos() <= 2 * before.known.base()
                && arrived >= Tuning.STORM * usual + Tuning.HOLD_CHANCE * (known.chance(usual) + permits(1))
                && seen.ended() < arrived / 2;
        int windows = storms ? before.signs.storm() + 1 : 0;
        double well = Math.max(Tuning.HOLD_LEAST, Tuning.HOLD_PEAK * before.known.peak());
        double places = Math.max(well, Tuning.HOLD_MORE * seen.left());
        return windows < Tuning.STORMY || places >= most
                ? counted(seen, known, signs.withStorm(windows))
                : become(Phase.HOLD, places, seen, Reason.SERVES_NO_MORE);
    }

    /** Calls that end as they do where none waits show that nothing is short. */
    private Controller held(Window seen) {
        if (!seen.bound()) {
            return become(Phase.FREE, most, seen, Reason.ROOM);
        }
        if (seen.ended() >= Tuning.HELD * last.working() * seen.nanos() / known.base()) {
            return counted(seen, known.served(seen.perSecond()), signs).become(Phase.FREE, most, seen, Reason.ROOM);
        }
        int windows = signs.storm() + 1;
        return windows < Tuning.HOLD_WINDOWS
                ? counted(seen, known, signs.withStorm(windows))
                : shortage(seen, known, Reason.SERVES_NO_MORE);
    }

    private Controller free(Window seen) {
        Known learned = known.weighing(seen).quicker(seen.meanNanos());
        if (known.base() == 0) {
            return comparing(Window.NONE, elasticity).counted(seen, learned, Signs.at((double) seen.left()));
        }
        if (!learned.isSlow(seen.meanNanos())) {
            Window calm = seen.ended() > permits(Tuning.FEW_ANSWERS) ? seen : reference;
            return comparing(calm, elasticity).counted(seen, learned.calm(seen, last), Signs.at((double) seen.left()));
        }
        boolean pinned = seen.most() == last.most()
                && seen.most() >= Tuning.BEGIN
                && seen.meanInFlight() > Tuning.BELOW_PINNED * seen.most();
        // Hardly any number changes in a short window. A busy service has no others while far more is in flight than
        // usual: these count by their length.
        double part = Math.min(1, seen.nanos() / (Tuning.TELLS * seen.meanNanos()));
        boolean tells = part >= 1 || seen.working() >= watched();
        boolean bad = seen.badShare() > Tuning.BAD;
        Signs counts = signs.withPinned(!tells ? signs.pinned() : pinned ? signs.pinned() + part : 0)
                .withReplaced(bad ? signs.replaced() + replaced(seen) : 0);
        boolean late = bad
                && last.badShare() > Tuning.BAD
                && counts.replaced() > Tuning.CHANCE * known.chance(known.inFlight());
        if (counts.pinned() >= Tuning.PINNED) {
            return below(Math.max(least, Tuning.BELOW_PINNED * seen.most()), wall)
                    .comparing(seen, Tuning.WANTED)
                    .become(Phase.DRAIN, Tuning.TEST_OF_PINNED * seen.most(), seen, Reason.SERVES_NO_MORE);
        }
        if (late || (seen.bound() && last.bound()) || isStorm(seen, learned)) {
            return shortage(seen, learned, late ? Reason.LATE : Reason.SERVES_NO_MORE);
        }
        boolean grows = seen.left() > Tuning.GROWN * signs.high();
        if (seen.ended() < permits(Tuning.FEW_ANSWERS)) {
            return counted(seen, learned, counts.withSeconds(grows ? 0 : signs.seconds() + seen.seconds()));
        }
        return grows ? grown(seen, learned, counts) : steady(seen, learned, counts);
    }

    /**
     * Permits of new calls in place of those that were late or met an overloaded service, less half of the latter. In a shortage
     * others take their places; time-outs of a past outage leave them empty.
     */
    private double replaced(Window seen) {
        return seen.left() - last.left() + Tuning.REPLACED * seen.bad();
    }

    /** More are in flight, and calls are slow. */
    private Controller grown(Window seen, Known learned, Signs counts) {
        double rate = seen.perSecond();
        boolean serves =
                rate > Tuning.SERVED * reference.perSecond() || rate > Tuning.SERVED_AT_ONCE * last.perSecond();
        if (signs.steps() == 0 || serves) {
            return comparing(seen, elasticity)
                    .counted(seen, learned, counts.grown((double) seen.left(), seen.meanNanos(), 1));
        }
        boolean slower = seen.meanNanos() >= Tuning.SLOWER * signs.latency();
        int enough = rate < Tuning.FEWER_THAN_USUAL * known.rate() ? Tuning.STEPS_OF_FEWER : Tuning.STEPS;
        if (slower && signs.steps() >= enough && seen.left() >= Math.max(Tuning.BEGIN, Tuning.TWICE * known.peak())) {
            return shortage(seen, learned, Reason.SERVES_NO_MORE);
        }
        int steps = slower ? signs.steps() + 1 : signs.steps();
        return counted(
                seen, learned, counts.grown((double) seen.left(), Math.max(signs.latency(), seen.meanNanos()), steps));
    }

    /** Calls are slow, but not more and more are in flight: after a while that is the new baseline. */
    private Controller steady(Window seen, Known learned, Signs counts) {
        double seconds = signs.seconds() + seen.seconds();
        int windows = signs.steady() + 1;
        boolean forLong = seconds > Tuning.STEADY_LATENCIES * seen.meanNanos() / 1e9;
        if (windows >= Tuning.STEADY && counts.pinned() == 0 && forLong) {
            return comparing(seen, elasticity)
                    .counted(seen, learned.withBase(seen.meanNanos()), Signs.at((double) seen.left()));
        }
        return counted(seen, learned, counts.steady(windows, seconds));
    }

    /** Many more calls than usual have arrived for some windows, and hardly any ends: of so many short windows, one says so by chance. */
    private boolean isStorm(Window seen, Known known) {
        double arrived = seen.left() - last.left() + seen.ended();
        double usual = known.rate() * seen.seconds();
        double waiting = Tuning.STORM_SPAN * known.base() / seen.nanos();
        return signs.storm() + 1 >= Tuning.STORMY
                && seen.working() >= watched()
                && seen.nanos() <= 2 * known.base()
                && arrived >= Tuning.STORM * usual + Tuning.CHANCE * (known.chance(usual) + permits(1))
                && seen.working() >= waiting * arrived
                && seen.ended() < arrived / 2;
    }

    private Controller shortage(Window seen, Known learned, Reason why) {
        boolean believed = known.isBelieved();
        double enough = believed
                ? learned.enough(seen)
                : Math.min(Tuning.BEGIN, Tuning.SHRINK * Math.max((double) seen.left(), seen.meanInFlight()));
        return knowing(believed ? learned.base() : 0)
                .comparing(seen, Tuning.WANTED)
                .become(Phase.DRAIN, Math.min(enough, Tuning.TEST * seen.left()), seen, why);
    }

    /**
     * Calls that do not end although no other is admitted wait for something else than each other, unless those that do end now
     * are slow: then more calls may have made a service collapse.
     */
    private Controller drained(Window seen) {
        if (seen.left() > placesOfBest()) {
            return known.isSlow(seen.meanNanos()) ? this : freed(seen, base());
        }
        Window slower = seen.meanNanos() > reference.meanNanos() ? seen : reference;
        return new Controller(
                        least,
                        most,
                        phase,
                        limit,
                        known,
                        slower,
                        last,
                        Signs.at((double) reference.left()),
                        Tuning.WANTED,
                        cap,
                        wall,
                        reason)
                .become(Phase.TEST, limit, seen, reason);
    }

    /**
     * Whose queue is it? With fewer in flight, a slow dependency takes as long. The test goes on while more end than those in
     * flight explain (Little's law): they were admitted before it, and waited in the queue of then. It goes on once where a
     * number stood still and no clearly fewer were in flight when calls ended: most of these were admitted before it, too.
     */
    private Controller tested(Window seen) {
        double fewer = seen.meanInFlight() / signs.high();
        double quicker = seen.meanNanos() / reference.meanNanos();
        if (fewer < Tuning.CLEARLY_FEWER && Math.log(quicker) > Tuning.NOT_OURS * Math.log(fewer)) {
            boolean settled = seen.perSecond() * seen.meanNanos() / 1e9 < Tuning.SETTLED * seen.meanInFlight();
            return settled ? freed(seen, seen.meanNanos()) : become(Phase.TEST, limit, seen, reason);
        }
        if (cap < NONE && fewer >= Tuning.CLEARLY_FEWER && signs.steps() == 0) {
            return become(Phase.TEST, limit, seen, reason).counted(seen, known, signs.withSteps(1));
        }
        if (cap < NONE) {
            return become(Phase.FIRST, Math.min(Tuning.BEGIN, limit / 2), seen, reason);
        }
        return base() == 0 ? first(seen) : become(Phase.BELOW, limit, seen, reason);
    }

    private Controller first(Window seen) {
        return seen.bound()
                ? comparing(seen, Tuning.WANTED).become(Phase.UP, 2 * limit, seen, Reason.SERVES_MORE)
                : comparing(Window.NONE, Tuning.WANTED).become(Phase.BELOW, limit, seen, reason);
    }

    private static double gain(Window seen, Window than) {
        double inFlight = Math.log(seen.meanInFlight() / than.meanInFlight());
        return Math.abs(inFlight) < 0.05
                ? Tuning.WANTED
                : Math.log(seen.goodPerSecond() / than.goodPerSecond()) / inFlight;
    }

    private Controller up(Window seen) {
        double gain = gain(seen, reference);
        double latency = seen.meanNanos();
        if (gain > Tuning.GAINED) {
            if (limit >= cap && latency < Tuning.AS_QUICK * reference.meanNanos()) {
                return freed(seen, latency);
            }
            if (!seen.bound()) {
                return knowing(latency).become(Phase.BELOW, limit, seen, reason);
            }
            Controller next = knowing(latency)
                    .comparing(seen, Tuning.WANTED)
                    .become(Phase.UP, 2 * limit, seen, Reason.SERVES_MORE);
            return next.counted(seen, next.known, next.signs.withSteps(signs.steps() + 1));
        }
        if (signs.steps() == 0 && gain < Tuning.LOST) {
            return become(Phase.DOWN, limit / 4, seen, Reason.SERVES_NO_MORE);
        }
        double more = Tuning.MARGIN * seen.goodPerSecond() / reference.goodPerSecond();
        double settled = limit / 2 * Math.max(1, Math.min(Tuning.MOST_MARGIN, more));
        return become(Phase.BELOW, settled, seen, Reason.SERVES_NO_MORE);
    }

    private Controller down(Window seen) {
        if (!seen.bound()) {
            return become(Phase.BELOW, limit, seen, reason);
        }
        if (gain(seen, reference) > Tuning.AS_MANY || limit <= least) {
            double more = Tuning.MARGIN * reference.goodPerSecond() / seen.goodPerSecond();
            return knowing(reference.meanNanos() / Tuning.QUICK)
                    .become(Phase.BELOW, limit * Math.max(1, Math.min(2, more)), seen, Reason.SERVES_MORE);
        }
        return knowing(seen.meanNanos())
                .comparing(seen, Tuning.WANTED)
                .become(Phase.DOWN, limit / 2, seen, Reason.SERVES_NO_MORE);
    }

    private Controller track(Window seen) {
        if (!seen.bound()) {
            return become(Phase.BELOW, limit, seen, reason);
        }
        double latency = seen.meanNanos();
        boolean late = seen.badShare() > Tuning.LATE;
        if (!last.bound() && !late && latency < Tuning.NOT_SLOW * base()) {
            return become(Phase.BELOW, roomier(), seen, Reason.ROOM);
        }
        if (late && latency > Tuning.QUICK * base()) {
            return below(cap, limit).become(Phase.BELOW, limit * (1 - seen.badShare() / 2), seen, Reason.LATE);
        }
        if (last.bound()
                && seen.perSecond() < Tuning.CHANGED_RATE * last.perSecond()
                && latency > Tuning.CHANGED_LATENCY * last.meanNanos()) {
            return phase == Phase.BELOW
                    ? knowing(latency).become(Phase.FIRST, limit, seen, reason)
                    : below(cap, limit).become(Phase.BELOW, Tuning.SHRINK * limit, seen, Reason.SERVES_NO_MORE);
        }
        if (phase == Phase.BELOW) {
            return latency < Tuning.QUICK * base() && seen.badShare() < Tuning.LATE
                    ? become(Phase.BELOW, roomier(), seen, Reason.ROOM)
                    : become(Phase.ABOVE, limit, seen, reason);
        }
        return latency > Tuning.VERY_SLOW * base()
                ? comparing(seen, elasticity).become(Phase.DOWN, limit / 2, seen, Reason.SERVES_NO_MORE)
                : compared(seen);
    }

    /** The limit after growth without a step: slowly beyond a number that did harm. */
    private double roomier() {
        double before = Tuning.BEFORE_WALL * wall;
        return limit < before
                ? Math.min(Tuning.GROW_WHILE_QUICK * limit, Math.max(before, Tuning.GROW_AT_WALL * limit))
                : Tuning.GROW_AT_WALL * limit;
    }

    /** Compares a step above with the one below. */
    private Controller compared(Window seen) {
        double gain = Math.max(-2, Math.min(2, gain(seen, last)));
        double found = elasticity + Tuning.SMOOTH * (gain - elasticity);
        if (found > Tuning.GAINED) {
            return comparing(seen, Tuning.WANTED).become(Phase.UP, 2 * limit, seen, Reason.SERVES_MORE);
        }
        double excess = found - Tuning.WANTED;
        Controller known = comparing(reference, found);
        if (excess <= 0) {
            return known.become(Phase.BELOW, limit * Math.exp(Tuning.SINK * excess), seen, Reason.SERVES_NO_MORE);
        }
        double seconds = Math.max(1, Math.min(8, seen.seconds() + last.seconds()));
        double grown = Math.max(
                limit + Tuning.GROW * seconds * excess, excess > Tuning.OVER ? Tuning.GROW_WHEN_OVER * limit : 0);
        return known.become(Phase.BELOW, grown, seen, Reason.SERVES_MORE);
    }
}
