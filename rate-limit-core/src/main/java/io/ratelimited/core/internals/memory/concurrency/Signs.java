package io.ratelimited.core.internals.memory.concurrency;

/**
 * What was counted since calls became slow, or since a phase of the search began. Immutable.
 *
 * @param high the number of calls in flight that the next step of growth is measured by
 * @param latency the latency at the last step of growth, in nanoseconds
 * @param steps steps of growth, or levels that have gained
 * @param steady windows without growth
 * @param pinned windows in which the number in flight stood still at its upper end; short ones count in part
 * @param seconds seconds without growth
 * @param storm windows in a row in which many more calls than usual arrived, or were held
 * @param replaced permits by which calls that replaced late or overloaded ones are more than half of them, since the latter are many
 */
record Signs(
        double high, double latency, int steps, int steady, double pinned, double seconds, int storm, double replaced) {

    static Signs at(double high) {
        return new Signs(high, 0, 0, 0, 0, 0, 0, 0);
    }

    /** After a step of growth. */
    Signs grown(double high, double latency, int steps) {
        return new Signs(high, latency, steps, 0, pinned, 0, 0, replaced);
    }

    /** After a window without growth. */
    Signs steady(int steady, double seconds) {
        return new Signs(high, latency, steps, steady, pinned, seconds, 0, replaced);
    }

    Signs withSteps(int steps) {
        return new Signs(high, latency, steps, steady, pinned, seconds, storm, replaced);
    }

    Signs withPinned(double pinned) {
        return new Signs(high, latency, steps, steady, pinned, seconds, storm, replaced);
    }

    Signs withSeconds(double seconds) {
        return new Signs(high, latency, steps, steady, pinned, seconds, storm, replaced);
    }

    Signs withStorm(int storm) {
        return new Signs(high, latency, steps, steady, pinned, seconds, storm, replaced);
    }

    Signs withReplaced(double replaced) {
        return new Signs(high, latency, steps, steady, pinned, seconds, storm, replaced);
    }
}
