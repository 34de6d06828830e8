package io.ratelimited.core.several;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.internals.several.JointLocks;
import io.ratelimited.core.internals.several.MemoryLimiter;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * Several limits on one call, all or nothing: every limit is asked before any is charged, so that a rejection leaves the
 * others as they were. The refusal does not depend on the order of the claims: it names every limit that refuses, and its
 * decision is that of the longest time. "Never" is longer than every time, and an unknown time is shorter; a limit
 * that nobody can decide refuses for the shortest of all.
 *
 * <p>If another caller comes between asking and charging, the charged permits are given back, and all limits are asked once
 * more. In memory such permits refuse no call and delay none: a call that they would refuse is decided again when they are
 * given back or kept, a few instructions later ({@link JointLocks}).
 *
 * <p>Limits in memory are asked first, and charged last, so that nothing is charged elsewhere where they refuse. A {@link
 * JointRateLimiter} asks and charges all limits of its backend together. Where limits of several backends decide, a third
 * caller may be refused by permits that one of them has charged, until another one has answered: no lock is held across a
 * network. That is no violation of a limit with blocks: {@link io.ratelimited.core.Call#isUndecided}. It can only refuse: permits that are charged for a moment count like those of a call that goes, so no limit ever
 * admits more than its permits, and they are given back like those of a cancelled call. Limits elsewhere are asked about a
 * refused call, too, but not again while known answers refuse the same claims: until a retry, and one second at the most.
 *
 * <p>Claims on one budget are asked for together: a call that could never have all of them at once is refused for
 * ever, and does not wait for itself.
 *
 * <p>Places for calls in flight are taken last. A call that has to wait for other limits takes its places when they let it
 * go, if the longest wait for a place is as long, or the limit seeks itself; see {@link #placeLater}. That is a second call of
 * the same kind, which follows the first ({@link TwoSteps}).
 *
 * <p>Whatever ends a call before it goes gives back all that it has taken, before the caller hears of it: a refusal, a failure, an
 * interrupt, a cancelled future, or a call of a higher class that takes its seat.
 */
public final class AllOf {

    private AllOf() {}

    /**
     * Takes all claims, or none and returns the refusal.
     *
     * @param claims one or more
     */
    public static Reservation reserve(List<? extends Claim> claims) {
        return reserve(claims.toArray(Claim[]::new));
    }

    /** {@link #reserve(List)} without lists and streams, since every call under limits runs it. */
    public static Reservation reserve(Claim[] claims) {
        if (claims.length == 1) {
            return claims[0].reserve();
        }
        if (areInMemory(claims)) {
            return MemoryClaims.reserve(claims);
        }
        try {
            return new Transaction(claims, null).reserve().join();
        } catch (CompletionException ex) {
            if (ex.getCause() instanceof Error error) {
                throw error;
            }
            throw ex.getCause() instanceof RuntimeException failure ? failure : ex;
        }
    }

    /** {@link #reserve(List)} for callers that must not block. */
    public static CompletionStage<Reservation> reserveAsync(List<? extends Claim> claims) {
        return reserveAsync(claims.toArray(Claim[]::new), Callbacks.MAY_BLOCK);
    }

    /**
     * {@link #reserve(Claim[])} for callers that must not block; done at once where all limits are in memory. A caller who
     * cancels the stage's future holds nothing.
     *
     * @param callbacks the kind of code that the caller attaches to the stage
     */
    public static CompletionStage<Reservation> reserveAsync(Claim[] claims, Callbacks callbacks) {
        try {
            if (claims.length == 1) {
                return reserveAsync(claims[0], callbacks);
            }
            return areInMemory(claims)
                    ? CompletableFuture.completedFuture(MemoryClaims.reserve(claims))
                    : WaitingRoom.orGivenBack(new Transaction(claims, callbacks).reserve(), Reservation::cancel);
        } catch (RuntimeException | Error ex) {
            return CompletableFuture.failedFuture(ex);
        }
    }

    static CompletionStage<Reservation> reserveAsync(Claim claim, Callbacks callbacks) {
        return claim.limiter().reserveAsync(claim, callbacks);
    }

    /**
     * A refusal, with nothing taken.
     *
     * @param refusals by the number of the claim, counted from 0; null for a claim whose limit would admit the call
     */
    public static Reservation refused(@Nullable Decision[] refusals) {
        return new Rejection(refusals);
    }

    /** The refusal of a call, of which the limits that refuse it have heard by now. */
    static Reservation refused(Claim[] claims, @Nullable Decision[] refusals) {
        for (int i = 0; i < claims.length; i++) {
            Decision refusal = refusals[i];
            Claim claim = claims[i];
            refusals[i] = refusal == null ? null : claim.limiter().refused(claim, refusal);
        }
        return refused(refusals);
    }

    /**
     * Returns the refusals of a call, by the number of the claim; null for a claim whose limit would admit the call. If no
     * limit has refused the call, because it was given up while it waited, returns the decision with the longest wait.
     */
    public static @Nullable Decision[] refusals(Reservation reservation) {
        return reservation instanceof Joint all ? all.refusals() : new Decision[] {reservation.decision()};
    }

    /**
     * The number of the refusal that decides, whatever the order: of the longest time; of the first name if times are equal.
     *
     * @param refusals at least one of them not null
     */
    public static int decisive(@Nullable Decision[] refusals) {
        return Joint.decisive(refusals);
    }

    /** The reservation of a single claim behind one of several, by the number of the claim. */
    public static Reservation member(Reservation reservation, int claim) {
        return reservation instanceof Joint all ? all.member(claim) : reservation;
    }

    /**
     * The permits of a claim and of those before it on the same budget, or 0 if it asks for nothing: what a limiter is asked for,
     * since one that has each of them may never have them all.
     *
     * @param number of the claim, counted from 0
     */
    public static long permitsTogether(Claim[] claims, int number) {
        Claim last = claims[number];
        long permits = last.permits();
        for (int i = 0; permits > 0 && i < number; i++) {
            Claim claim = claims[i];
            if (claim.limiter().budgets() == last.limiter().budgets() && isSameKey(claim.key(), last.key())) {
                long sum = permits + claim.permits();
                permits = sum < permits ? Long.MAX_VALUE : sum;
            }
        }
        return permits;
    }

    /** The claim of a call whose other limits decide after it. */
    static Claim undecided(Claim claim) {
        record Undecided(
                RateLimiter limiter,
                @Nullable Object key,
                long permits,
                long maxWaitNanos,
                int rank,
                long patienceNanos,
                boolean isExemptFromBlocks)
                implements Claim {

            @Override
            public boolean isUndecided() {
                return true;
            }
        }
        return new Undecided(
                claim.limiter(),
                claim.key(),
                claim.permits(),
                claim.maxWaitNanos(),
                claim.rank(),
                claim.patienceNanos(),
                claim.isExemptFromBlocks());
    }

    /** The claim on another number of permits. */
    static Claim withPermits(Claim claim, long permits) {
        return permits == claim.permits()
                ? claim
                : Claim.of(
                        claim.limiter(),
                        claim.key(),
                        permits,
                        claim.maxWaitNanos(),
                        claim.rank(),
                        claim.patienceNanos(),
                        claim.isExemptFromBlocks());
    }

    /**
     * Stands for a place that is asked for when the other limits of the call let it go, so that no sleeping caller holds a
     * place. The longest wait for the place counts from the decision.
     *
     * @param claim whose limiter is in memory, or does not block
     * @param othersWaitNanos how long the call has to wait for its other limits
     * @param asked the decision about the claim when it was asked
     * @return a reservation that holds nothing, for the caller of {@link JointRateLimiter#reserveAll}; null when the claim has to
     *     be reserved at once: it is no place, the call need not wait, or may wait for a place for less than for the others and
     *     its limit learns nothing from the time of a call
     */
    public static @Nullable Reservation placeLater(Claim claim, long othersWaitNanos, Decision asked) {
        return mayTakePlaceLater(claim, othersWaitNanos)
                ? new Later(
                        Claim.of(
                                claim.limiter(),
                                claim.key(),
                                claim.permits(),
                                Math.max(0, claim.maxWaitNanos() - othersWaitNanos),
                                claim.rank()),
                        asked)
                : null;
    }

    static boolean mayTakePlaceLater(Claim claim, long othersWaitNanos) {
        return othersWaitNanos > 0
                && isPlace(claim)
                // A limit that seeks itself would take the sleep for the time of the call.
                && (claim.maxWaitNanos() >= othersWaitNanos || findsItsLimit(claim))
                && (isInMemory(claim) || claim.limiter() instanceof JointRateLimiter);
    }

    private static boolean findsItsLimit(Claim claim) {
        return claim.limiter().limit().algorithm().findsItsLimit();
    }

    private static boolean isSameKey(@Nullable Object one, @Nullable Object other) {
        return one == other
                || (one != null && other != null && CanonicalKey.text(one).equals(CanonicalKey.text(other)));
    }

    static boolean isPlace(Claim claim) {
        return claim.limiter().limit().algorithm().countsCallsInFlight();
    }

    static boolean isInMemory(Claim claim) {
        return claim.limiter() instanceof MemoryLimiter;
    }

    private static boolean areInMemory(Claim[] claims) {
        for (Claim claim : claims) {
            if (!isInMemory(claim)) {
                return false;
            }
        }
        return true;
    }
}
