package io.ratelimited.core.memory.concurrency;

/** A call that was admitted at once by a limit that learns from its time. */
final class TimedReservation extends ConcurrencyReservation {

    private final long start;

    TimedReservation(ConcurrencyCell cell, long permits, int rank, long start) {
        super(cell, permits, rank, ADMITTED);
        this.start = start;
    }

    @Override
    long start() {
        return start;
    }
}
