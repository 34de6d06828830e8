package io.ratelimited.core.several;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.internals.several.HeldPermits;
import io.ratelimited.core.internals.several.JointLocks;
import io.ratelimited.core.internals.several.MemoryLimiter;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Several claims on limits in memory: each is asked, then all are taken, and undone if another caller has come between. */
final class MemoryClaims {

    private MemoryClaims() {}

    /** As {@link AllOf#reserve(Claim[])}. */
    static Reservation reserve(Claim[] claims) {
        Reservation[] members = new Reservation[claims.length];
        Reservation refusal = take(claims, members, 0, false);
        return refusal != null ? refusal : TwoSteps.of(claims, members);
    }

    /**
     * As {@link JointRateLimiter#reserveAll}.
     *
     * @param queued whether the call waits for a place that is not among the claims
     */
    static List<Reservation> take(Claim[] claims, long othersWaitNanos, boolean queued) {
        Reservation[] members = new Reservation[claims.length];
        Reservation refusal = take(claims, members, othersWaitNanos, queued);
        return refusal != null ? List.of(refusal) : List.of(members);
    }

    /**
     * Takes all claims or none. The charge that comes last needs no lock unless it {@linkplain #mayComeBack may be given back}
     * because of another limit. If it is refused, another such call may hold its permits for a moment only,
     * so all limits are asked again, and charged under all their locks.
     *
     * @param members receives the reservations, of places also {@link Later}
     * @param othersWaitNanos how long the call has to wait for limits that are not among the claims; 0 for not at all
     * @param queued as of {@link #take(Claim[], long, boolean)}
     * @return null if all have been taken
     */
    private static @Nullable Reservation take(
            Claim[] claims, Reservation[] members, long othersWaitNanos, boolean queued) {
        boolean places = hasPlaces(claims);
        int last = claims.length - 1;
        boolean mayWait = places || othersWaitNanos > 0 || queued || mayWait(claims);
        int locked = places || (mayWait && mayComeBack(claims[last])) ? claims.length : last;
        while (true) {
            @Nullable Decision[] refusals = askAll(claims, members);
            if (refusals != null) {
                return AllOf.refused(claims, refusals);
            }
            int refused = reserveLocked(claims, members, locked, places, mayWait, othersWaitNanos, queued);
            if (refused < 0) {
                return null;
            }
            if (refused < locked) {
                return refusedMeanwhile(claims, refused, members[refused].decision());
            }
            locked = claims.length;
        }
    }

    private static boolean mayWait(Claim[] claims) {
        for (Claim claim : claims) {
            if (claim.maxWaitNanos() > 0) {
                return true;
            }
        }
        return false;
    }

    /** Returns whether a call that may wait waits for the last claim, or for another one while that is {@linkplain #hold held}. */
    private static boolean mayComeBack(Claim last) {
        return last.maxWaitNanos() > 0 || last.limiter().limit().block() != null;
    }

    /** Holds what another limit for which the call waits may have it give back. */
    private static void hold(Reservation[] taken, boolean othersWait) {
        int waits = waits(taken) + (othersWait ? 1 : 0);
        for (int i = 0; waits > 0 && i < taken.length; i++) {
            if (waits > waits(taken[i]) && taken[i] instanceof HeldPermits permits) {
                permits.hold();
            }
        }
    }

    /** Returns for how many limits a call waits that has taken its permits. */
    static int waits(Reservation... taken) {
        int waits = 0;
        for (Reservation one : taken) {
            // In this order: one that waits may be refused in between.
            waits += one.mayWait() || one.isRefused() ? 1 : 0;
        }
        return waits;
    }

    private static boolean hasPlaces(Claim[] claims) {
        for (Claim claim : claims) {
            if (AllOf.isPlace(claim)) {
                return true;
            }
        }
        return false;
    }

    /** As {@link #reserveAsked}, with the locks of the first claims. */
    private static int reserveLocked(
            Claim[] claims,
            Reservation[] members,
            int locked,
            boolean places,
            boolean mayWait,
            long othersWaitNanos,
            boolean queued) {
        long locks = 0;
        for (int i = 0; i < locked; i++) {
            locks |= 1L << ((MemoryLimiter) claims[i].limiter()).lock(members[i]);
        }
        JointLocks.lock(locks, places);
        try {
            return reserveAsked(claims, members, places, mayWait, othersWaitNanos, queued);
        } finally {
            JointLocks.unlock(locks, places);
        }
    }

    /**
     * Asks every limit.
     *
     * @param members receives the data that {@link #reserveAsked} needs
     * @return null when all limits would admit the call
     */
    private static @Nullable Decision @Nullable [] askAll(Claim[] claims, Reservation[] members) {
        @Nullable Decision[] refusals = null;
        for (int i = 0; i < claims.length; i++) {
            Claim claim = claims[i];
            MemoryLimiter limiter = (MemoryLimiter) claim.limiter();
            members[i] = limiter.ask(claim, i == 0 ? null : members[i - 1]);
            if (members[i].isRefused()) {
                refusals = refusals == null ? new Decision[claims.length] : refusals;
                refusals[i] = members[i].decision();
            }
        }
        return refusals;
    }

    /** Another caller has made one claim impossible, and perhaps others too. */
    private static Reservation refusedMeanwhile(Claim[] claims, int refused, Decision decision) {
        @Nullable Decision[] refusals = askAll(claims, new Reservation[claims.length]);
        if (refusals == null) {
            refusals = new Decision[claims.length];
        }
        if (refusals[refused] == null) {
            refusals[refused] = decision;
        }
        return AllOf.refused(claims, refusals);
    }

    /**
     * Reserves all claims that have been asked for, or none.
     *
     * @param places whether some of them are places for calls in flight, which come last
     * @param mayWait whether the call may wait for one of its limits
     * @return the number of the claim that another caller has made impossible meanwhile; -1 for none
     */
    private static int reserveAsked(
            Claim[] claims,
            Reservation[] members,
            boolean places,
            boolean mayWait,
            long othersWaitNanos,
            boolean queued) {
        int refused = -1;
        boolean decided = false;
        try {
            refused = reserveRates(claims, members, places);
            if (places && refused < 0) {
                long wait = Math.max(othersWaitNanos, longestWait(claims, members));
                refused = reservePlaces(claims, members, wait, queued);
            }
            if (mayWait && refused < 0) {
                hold(members, othersWaitNanos > 0 || queued);
            }
            decided = refused < 0;
            return refused;
        } finally {
            if (!decided) {
                JointReservation.undo(members);
            }
        }
    }

    private static int reserveRates(Claim[] claims, Reservation[] members, boolean places) {
        for (int i = 0; i < claims.length; i++) {
            Claim claim = claims[i];
            if (places && AllOf.isPlace(claim)) {
                continue;
            }
            MemoryLimiter limiter = (MemoryLimiter) claim.limiter();
            members[i] = limiter.reserveAsked(members[i], claim.maxWaitNanos());
            if (members[i].isRefused()) {
                return i;
            }
        }
        return -1;
    }

    private static int reservePlaces(Claim[] claims, Reservation[] members, long othersWaitNanos, boolean queued) {
        boolean behind = queued;
        boolean holding = AllOf.holdsPlaceAsleep(claims, othersWaitNanos);
        for (int i : AllOf.places(claims)) {
            Claim claim = claims[i];
            if (AllOf.takesPlaceLater(claim, behind, othersWaitNanos, holding)) {
                members[i] = Later.of(claim, members[i].decision());
                continue;
            }
            members[i] = ((MemoryLimiter) claim.limiter()).reserveAsked(members[i], claim.maxWaitNanos());
            if (members[i].isRefused()) {
                return i;
            }
            behind |= members[i].mayWait();
        }
        return -1;
    }

    private static long longestWait(Claim[] claims, Reservation[] members) {
        long longest = 0;
        for (int i = 0; i < claims.length; i++) {
            if (!AllOf.isPlace(claims[i])) {
                longest = Math.max(longest, members[i].waitNanos());
            }
        }
        return longest;
    }
}
