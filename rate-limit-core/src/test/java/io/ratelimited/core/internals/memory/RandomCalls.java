package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Limit;
import io.ratelimited.core.internals.memory.Cell.Grant;
import java.util.Random;

/** Calls that come at telling times: at once, an instant before and at a retry-after, within an interval, after a rest. */
final class RandomCalls {

    private final Limit limit;
    private final Random random;
    private long hint;

    RandomCalls(Limit limit, Random random) {
        this.limit = limit;
        this.random = random;
    }

    /** The outcome of a cell: the next calls may come at its retry-after. */
    void refused(long outcome) {
        if (outcome < 0 && outcome > Cell.UNKNOWN) {
            hint = ~outcome;
        }
    }

    /** Gives back a reservation; returns the cell that goes on. */
    static Cell cancel(Cell cell, Grant reservation, long now) {
        return giveBack(cell, reservation, reservation.permits(), now);
    }

    /** Gives back a part of a reservation; returns the cell that goes on. */
    static Cell giveBack(Cell cell, Grant reservation, long permits, long now) {
        if (cell.giveBack(reservation, permits, now)) {
            return cell;
        }
        Cell next = cell.divide(now);
        next.giveBack(reservation, permits, now);
        return next;
    }

    /** Charges permits; returns the cell that goes on. */
    static Cell charge(Cell cell, long permits, long now) {
        if (cell.charge(permits, now)) {
            return cell;
        }
        Cell next = cell.divide(now);
        next.charge(permits, now);
        return next;
    }

    long step() {
        double interval = Math.max(
                1, (double) limit.rate().period().toNanos() / limit.rate().permits());
        return switch (random.nextInt(8)) {
            case 0, 1 -> 0;
            case 2 -> 1;
            case 3 -> hint;
            case 4 -> Math.max(0, hint - 1);
            case 5 -> -random.nextInt((int) Math.min(1_000, interval));
            case 6 -> (long) (random.nextDouble() * interval * 3);
            default ->
                random.nextInt(10) == 0
                        ? (long) (random.nextDouble() * interval * limit.rate().permits() % 1e17 * 3)
                        : (long) (random.nextDouble() * interval);
        };
    }

    long permits() {
        long most = limit.capacity() == Long.MAX_VALUE ? 20 : limit.capacity();
        return switch (random.nextInt(6)) {
            case 0 -> 1 + random.nextInt((int) most);
            case 1 -> random.nextInt(10) == 0 ? most + 1 : most;
            default -> 1;
        };
    }

    long maxWait() {
        double interval = Math.max(
                1, (double) limit.rate().period().toNanos() / limit.rate().permits());
        return switch (random.nextInt(4)) {
            case 0 -> (long) (random.nextDouble() * interval * 4);
            case 1 -> random.nextInt(4) == 0 ? (long) (interval * 20) : hint;
            default -> 0;
        };
    }
}
