package io.ratelimited.core;

/** The ranges of numbers of permits. */
public final class Permits {

    private Permits() {}

    /**
     * Returns what a call asks for.
     *
     * @throws IllegalArgumentException when it is below 1
     */
    public static long requireAsked(long permits) {
        if (permits < 1) {
            throw new IllegalArgumentException("permits must be at least 1: " + permits);
        }
        return permits;
    }

    /**
     * Returns what a call has cost.
     *
     * @throws IllegalArgumentException when it is below 0
     */
    public static long requireCharge(long permits) {
        if (permits < 0) {
            throw new IllegalArgumentException("settled permits must be 0 or more: " + permits);
        }
        return permits;
    }
}
