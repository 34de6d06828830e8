package io.ratelimited.core.internals;

/** Checks numbers of permits, and creates the errors of operations that limits on calls in flight do not support. */
public final class Permits {

    private Permits() {}

    /**
     * Returns the number of permits of a call.
     *
     * @throws IllegalArgumentException when it is below 0
     */
    public static long requireAsked(long permits) {
        if (permits < 0) {
            throw new IllegalArgumentException("permits must be 0 or more: " + permits);
        }
        return permits;
    }

    /**
     * Returns the cost of a call, in permits.
     *
     * @throws IllegalArgumentException when it is below 0
     */
    public static long requireCharge(long permits) {
        if (permits < 0) {
            throw new IllegalArgumentException("settled permits must be 0 or more: " + permits);
        }
        return permits;
    }

    /** Creates the error of settling a call in flight. */
    public static UnsupportedOperationException nothingToCharge(String limit) {
        return new UnsupportedOperationException("limit '" + limit
                + "' counts calls in flight and has nothing to charge; call release() when the call has ended");
    }

    /** Creates the error of taking permits of a limit on calls in flight without a reservation that can be released. */
    public static UnsupportedOperationException nothingToRelease(String limit) {
        return new UnsupportedOperationException("limit '" + limit
                + "' counts calls in flight, which must be released when they end: use execute or reserve instead of"
                + " tryAcquire");
    }
}
