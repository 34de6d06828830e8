package io.ratelimited.core.internals.memory.concurrency;

/**
 * The constants of the {@link Controller}, with the reason of each. They were chosen by simulation
 * ({@code rate-limit-benchmarks/run overload}), on seeds other than those that the figures were measured on.
 */
final class Tuning {

    /** Shortest window, in nanoseconds: the work of a step is nothing beside that of the calls of a window. */
    static final long SHORTEST = 20_000_000L;
    /** Longest window that waits for a few answers, in nanoseconds: slow services need an answer at all. */
    static final double LONGEST = 4e9;
    /** Longest time that a window waits for calls from before it, in nanoseconds: a few calls that take forever tell nothing. */
    static final double PATIENCE = 5e9;

    /** Roots of a mean number of calls by which their number differs by chance. */
    static final double CHANCE = 3;
    /** Places of the highest class, by those of the limit. */
    static final double BEST = 1.3;
    /** Latency in baselines that is counted at most: one call that takes forever must not hide the others. */
    static final double CLIP = 10;

    // While nothing is limited: what is usual.

    /** Answers of the first window of all: the first answers waited for the fewest others. */
    static final int FIRST_ANSWERS = 4;
    /** Answers of a window: fewer are chance, more are late. */
    static final int ANSWERS = 16;
    /** Answers from which on a window says something of the calls. */
    static final int FEW_ANSWERS = 8;
    /** Length of a window in baseline latencies: a queue shows within about one. */
    static final double SPAN = 0.7;
    /** Calm windows after which the baseline is believed; before, an overload may have begun with the process. */
    static final int BELIEVED = 8;
    /** How fast the baseline follows quicker calls before and after it is believed, and slower ones. */
    static final double LEARN = 0.5;

    static final double FOLLOW = 0.1;
    /** How fast the usual rate follows the rate of a window: ten windows. */
    static final double RATE = 0.2;
    /** Latency in baselines (and in deviations of it) from which on calls are slow: below, it is chance or a short queue. */
    static final double SLOW = 1.5;

    /** Latency in baselines up to which calls in flight count as served well. */
    static final double WELL = 1.3;
    /** The usual deviation in baselines, at most: a queue that begins must not pass as noise. */
    static final double NOISE = 0.5;
    /** What is left of the most calls in flight after each calm window. */
    static final double FADE = 0.99;

    // While nothing is limited: signs of a shortage.

    /** Permits in use below which nothing is short, and at which a search without knowledge begins. */
    static final double BEGIN = 20;
    /** More calls in flight, as a factor, that count as a step of growth: chance makes fewer. */
    static final double GROWN = 1.2;
    /** More answers per second, as a factor, that show that growth served more. */
    static final double SERVED = 1.2;

    static final double SERVED_AT_ONCE = 1.25;
    /** Slower calls, as a factor, that make a step of growth a sign. */
    static final double SLOWER = 1.1;
    /** Steps that slowed calls and served no more before a limit is set; more where fewer are served than usual, as by a slow dependency. */
    static final int STEPS = 3;

    static final int STEPS_OF_FEWER = 5;
    static final double FEWER_THAN_USUAL = 0.8;
    /** Calls in flight, in multiples of the most that were served well, below which no growth is a shortage. */
    static final double TWICE = 2;
    /** Windows and latencies for which slow calls are steady, so that they are the new baseline. */
    static final int STEADY = 4;

    static final double STEADY_LATENCIES = 5;
    /** Windows for which the number in flight stands still at one number, as behind the threads of a server. */
    static final int PINNED = 5;
    /** Length of such a window in latencies: in a shorter one hardly any number changes, so that it counts in part or not at all. */
    static final double TELLS = 0.4;
    /** Mean permits in use of a busy service, of whose arrivals something is known. */
    static final double BUSY = 4;
    /** Calls in flight, in multiples of the usual ones, from which on arrivals are watched, each quarter of a baseline. */
    static final double WATCHED = 3;

    static final double WATCH_SPAN = 0.25;
    /** Arrivals, in multiples of the usual ones, and time without answers, in baselines, that are a storm. */
    static final double STORM = 2;

    static final double STORM_SPAN = 1.5;
    /** Windows in a row in which calls storm in, before no more are let in or a limit is set: a burst at one time, or chance, is over after one. */
    static final int STORMY = 2;
    /** Share of calls that are late or meet an overloaded service, in two windows, that is a shortage. */
    static final double BAD = 0.3;
    /** Share of such calls that others must have replaced in flight: of those of a past outage none, of those of a shortage all. */
    static final double REPLACED = 0.5;

    // While nothing is limited: many more calls than usual arrive.

    /** Roots of the usual arrivals by which those of each window must be more: two in a row are no chance, and holding costs little. */
    static final double HOLD_CHANCE = 1;
    /** Permits in use up to which calls are let in whatever arrives: below, a storm does little harm. */
    static final double HOLD_LEAST = 80;
    /** Calls in flight that are let in, in multiples of the most that were served well. */
    static final double HOLD_PEAK = 3;
    /** Calls in flight that are let in, in multiples of those that are: what came with a burst needs room beside the usual calls. */
    static final double HOLD_MORE = 1.5;
    /** Share of these that calls of lower classes fill: if it is a shortage, all must end before a call of the highest class is admitted. */
    static final double HOLD_LOWER = 0.75;
    /** Length of a window then, in baselines: the sooner ends are seen, the fewer calls are lost where nothing is short. */
    static final double HOLD_SPAN = 0.25;
    /** Windows after which those in flight should have ended, if none waits for another. */
    static final int HOLD_WINDOWS = 5;
    /** Share of the calls that end, of those that do where none waits, which shows that nothing is short. */
    static final double HELD = 0.4;

    // Whose queue is it?

    /** Places, by what the usual rate needs: it has been served. */
    static final double ENOUGH = 1.25;
    /** Share of the calls in flight that the test with fewer admits at most; for a number that stands still. */
    static final double TEST = 0.45;

    static final double TEST_OF_PINNED = 0.55;
    /** Turnovers of the test, so that calls from before have left. */
    static final double TURNOVERS = 1.5;
    /** Calls in flight as a share of those before the test that makes its result clear. */
    static final double CLEARLY_FEWER = 0.6;
    /** Answers a second times latency, in calls in flight, up to which the answers are those of calls of the test. */
    static final double SETTLED = 1.3;
    /** Percent by which calls become quicker for one percent fewer in flight: below, the queue is not ours. */
    static final double NOT_OURS = 0.25;
    /** Share of a number that stands still, as of threads, which a limit may use: the others reject. */
    static final double BELOW_PINNED = 0.9;

    /** Answers, by the usual ones, up to which calls hang: a queue of ours is served, also where a dependency is slow. */
    static final double HANGING = 0.1;

    // Search by gain.

    /** Answers of a level of the search. */
    static final int LEVEL = 40;
    /** Percent that are served more for one percent more in flight: a level has gained, lost, or has served as many. */
    static final double GAINED = 0.5;

    static final double LOST = 0.2;
    static final double AS_MANY = 0.12;
    /** How much more than what the last level served a search may settle for. */
    static final double MARGIN = 1.15;

    static final double MOST_MARGIN = 1.6;
    /** Calls that are as quick with twice as many in flight. */
    static final double AS_QUICK = 1.25;

    // Tracking.

    /** Length of a step below and above the limit: shorter ones are lost in chance, longer ones cost answers. */
    static final double STEP = 0.15;
    /** Answers of a step. */
    static final int STEP_ANSWERS = 150;
    /** Percent that are served more for one percent more in flight, at the limit. */
    static final double WANTED = 0.08;
    /** How fast the elasticity follows a pair of steps. */
    static final double SMOOTH = 0.2;
    /** How fast the logarithm of the limit sinks with what the elasticity lacks. */
    static final double SINK = 0.4;
    /** Places by which the limit grows in a second and for 1 of elasticity: as many for small limits as for large ones, so that instances come to be equal. */
    static final double GROW = 4;
    /** Elasticity beyond the wanted one at which a shortage is over, and the growth then. */
    static final double OVER = 0.4;

    static final double GROW_WHEN_OVER = 1.3;
    /** Latency in baselines below which the limit grows without a step, and by how much; less near a number that did harm. */
    static final double QUICK = 1.2;

    static final double GROW_WHILE_QUICK = 1.25;
    static final double GROW_AT_WALL = 1.02;
    static final double BEFORE_WALL = 0.9;
    /** Latency in baselines up to which the limit grows after a window without a rejection: the demand fits. */
    static final double NOT_SLOW = 2;
    /** Latency in baselines at which half as many are tried. */
    static final double VERY_SLOW = 4;
    /** Share of late calls that lowers the limit. */
    static final double LATE = 0.1;
    /** Share of late calls that ends a window early. */
    static final double MOSTLY_LATE = 0.4;
    /** Fewer answers per second and slower calls, as factors, at one limit: its dependency has changed. */
    static final double CHANGED_RATE = 0.7;

    static final double CHANGED_LATENCY = 1.4;
    static final double SHRINK = 0.8;
    /** Nanoseconds without a rejection after which there is no limit again: the next shortage is found within about a second. */
    static final long FORGET = 15_000_000_000L;

    private Tuning() {}
}
