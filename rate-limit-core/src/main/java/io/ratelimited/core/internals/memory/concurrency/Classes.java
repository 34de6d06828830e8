package io.ratelimited.core.internals.memory.concurrency;

import io.ratelimited.core.Limit;
import java.math.BigDecimal;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The rules by which classes of calls share places. Immutable.
 *
 * <ul>
 *   <li>P1 A class leaves a tenth of the places, at least one, free for each better class (trunk reservation).
 *   <li>P2 A class with a share may use all free places while it has fewer than its share, and all others leave these free.
 *   <li>P3 P1 and P2 leave a place to every class.
 *   <li>P4 Where the limit is stated, a call heavier than its class may ever have is rejected for good; where it is found, it is
 *       admitted when no other is in flight.
 * </ul>
 *
 * @param number of classes, 1 or more
 * @param others the rank of calls that state none
 * @param shares billionths of the places, by rank; 0 for none
 * @param hasShares whether one of them is more than 0
 */
record Classes(int number, int others, List<Long> shares, boolean hasShares) {

    /** As many as {@link Limit#priorities} may have. */
    static final int MOST = 16;

    private static final int BILLION = 1_000_000_000;

    static Classes of(Limit limit) {
        int number = Math.max(1, limit.priorities().size());
        List<Long> shares = new ArrayList<>(Collections.nCopies(number, 0L));
        for (int rank = 0; rank < limit.priorities().size(); rank++) {
            Double share = limit.shares().get(limit.priorities().get(rank));
            shares.set(rank, share == null ? 0 : Math.max(1, billionths(share)));
        }
        return new Classes(
                number,
                limit.rankOfOthers(),
                List.copyOf(shares),
                !limit.shares().isEmpty());
    }

    /** Of the decimal that the number was read from, because 7 % of 100 are 7, and not 7.000000000000001. */
    private static long billionths(double share) {
        return BigDecimal.valueOf(share).movePointRight(9).longValue();
    }

    /** The class of a call that states a rank; that of the others if it is none. */
    int rank(int stated) {
        return stated >= 0 && stated < number ? stated : others;
    }

    /**
     * Returns the number of permits that may be in use when one of a class takes some of them.
     *
     * @param places permits that may be in use by all classes together
     * @param most permits that may be in use when the highest class, or one within its share, takes some: at least as many
     * @param used permits in use by each class; null where there are no shares
     */
    long ceiling(int rank, long permits, long places, long most, int @Nullable [] used) {
        long own = rank == 0 ? most : places;
        if (rank == 0 && used == null) {
            return own;
        }
        if (isWithinShare(rank, permits, places, used)) {
            return most;
        }
        long left = own - rank * ceilDiv(places, 10);
        for (int other = 0; used != null && other < number; other++) {
            left -= other == rank ? 0 : Math.max(0, floor(other, places) - used[other]);
        }
        return Math.max(1, left);
    }

    /** The largest number of permits that a call of the class can have, when no other is in flight. */
    long heaviest(int rank, long places) {
        if (number == 1) {
            return places;
        }
        long left = places - rank * ceilDiv(places, 10);
        for (int other = 0; hasShares && other < number; other++) {
            left -= other == rank ? 0 : floor(other, places);
        }
        return Math.min(places, Math.max(Math.max(1, left), floor(rank, places)));
    }

    /** Returns whether a class may pass better ones that wait. */
    boolean isWithinShare(int rank, long permits, long places, int @Nullable [] used) {
        return used != null && used[rank] + permits <= floor(rank, places);
    }

    /** A call that waits may be of a class that a change of the limit has taken away. */
    private long floor(int rank, long places) {
        return rank >= number ? 0 : ceilDiv(shares.get(rank) * places, BILLION);
    }

    private static long ceilDiv(long number, long by) {
        return (number + by - 1) / by;
    }
}
