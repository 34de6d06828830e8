package io.ratelimited.core.several;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.internals.several.JointLocks;
import io.ratelimited.core.internals.several.MemoryLimiter;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Several limits on one call, all or nothing: every limit is checked before any is charged, so that a rejection leaves the
 * others unchanged. The rejection does not depend on the order of the claims: it names every limit that rejects, and its
 * decision has the longest wait time. "Never" is longer than every time, and an unknown time is shorter; a limit whose
 * backend is unavailable has the shortest.
 *
 * <p>If another caller uses permits between the check and the charge, the charged permits are refunded, and all limits are
 * checked once more. In memory, such permits neither reject nor delay a call: a call that they would reject is decided again
 * when they are refunded or kept, a few instructions later ({@link JointLocks}).
 *
 * <p>Limits in memory are checked first and charged last, so that nothing is charged elsewhere if they reject. A {@link
 * JointRateLimiter} checks and charges all limits of its backend together. With limits of several backends, a third caller
 * can be rejected because of permits that one backend has charged, until another one has responded, because no lock is held
 * across a network. That is not a violation of a limit with blocks: {@link io.ratelimited.core.Call#isUndecided}. Permits
 * that are charged for a moment count like those of an admitted call, so no limit admits more than its permits, and they are
 * refunded like those of a cancelled call. Limits on other backends are also checked for a rejected call, but not again while
 * cached decisions reject the same claims: until a retry can succeed, and for at most one second.
 *
 * <p>Claims with the same limit and key are decided as one claim for all of their permits ({@link JoinedReservation}): a call
 * that can never have all of them is rejected without a retry time, and does not wait for itself.
 *
 * <p>Permits for calls in flight are taken last, in one {@linkplain #places order}. A call that waits for other limits takes them
 * after that wait, if its maximum wait for them is as long, or the limit is adaptive; and one that waits for a permit of one limit
 * takes those of the limits behind it later. This is a second step of the same kind, which follows the first ({@link TwoSteps}).
 *
 * <p>If a call ends before it can proceed, all of its permits are refunded before the caller is notified: after a rejection,
 * a failure, an interrupt, or when a call of higher priority takes its queue position. When the caller cancels its future, they
 * are refunded before {@code cancel} returns.
 */
public final class AllOf {

    private AllOf() {}

    /**
     * Takes the permits of all claims; or takes none, and returns the rejection.
     *
     * @param claims one or more
     */
    public static Reservation reserve(List<? extends Claim> claims) {
        return reserve(claims.toArray(Claim[]::new));
    }

    /** {@link #reserve(List)} without lists and streams, because every call under limits uses it. */
    public static Reservation reserve(Claim[] claims) {
        if (!haveSameBudgets(claims)) {
            return reserveApart(claims);
        }
        Claim[] joined = JoinedReservation.join(claims);
        return JoinedReservation.of(claims, joined, reserveApart(joined));
    }

    private static Reservation reserveApart(Claim[] claims) {
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
     * {@link #reserve(Claim[])} for callers that must not block; completes immediately if all limits are in memory. If a
     * caller cancels the future of the stage, the permits are refunded.
     *
     * @param callbacks whether the callbacks of the stage can block
     */
    public static CompletionStage<Reservation> reserveAsync(Claim[] claims, Callbacks callbacks) {
        try {
            if (!haveSameBudgets(claims)) {
                return reserveApartAsync(claims, callbacks);
            }
            Claim[] joined = JoinedReservation.join(claims);
            return WaitingRoom.orGivenBack(
                    reserveApartAsync(joined, callbacks)
                            .thenApply(decided -> JoinedReservation.of(claims, joined, decided))
                            .toCompletableFuture(),
                    Reservation::cancel);
        } catch (RuntimeException | Error ex) {
            return CompletableFuture.failedFuture(ex);
        }
    }

    private static CompletionStage<Reservation> reserveApartAsync(Claim[] claims, Callbacks callbacks) {
        if (claims.length == 1) {
            return reserveAsync(claims[0], callbacks);
        }
        return areInMemory(claims)
                ? CompletableFuture.completedFuture(MemoryClaims.reserve(claims))
                : WaitingRoom.orGivenBack(new Transaction(claims, callbacks).reserve(), Reservation::cancel);
    }

    static CompletionStage<Reservation> reserveAsync(Claim claim, Callbacks callbacks) {
        return claim.limiter().reserveAsync(claim, callbacks);
    }

    /**
     * {@link JointRateLimiter#reserveAllAsync} for a backend that cannot decide the claims in one step: asks all limits at the
     * same time and, if all would admit the call, charges all at the same time.
     *
     * @param ask decides about a claim as {@link JointRateLimiter#look} does; does not block
     * @param take takes the permits of a claim, or rejects it; does not block
     */
    public static CompletableFuture<List<Reservation>> reserveEach(
            List<Claim> claims,
            long othersWaitNanos,
            Function<Claim, CompletableFuture<Decision>> ask,
            Function<Claim, CompletableFuture<Reservation>> take) {
        return new Transaction(
                        claims.toArray(Claim[]::new),
                        othersWaitNanos,
                        (all, knownNanos) -> Transaction.all(all, ask),
                        take,
                        null)
                .reserveAll();
    }

    /**
     * Creates a rejection, without permits.
     *
     * @param refusals rejections by the index of the claim, from 0; null for a claim whose limit would admit the call
     */
    public static Reservation refused(@Nullable Decision[] refusals) {
        return new JointReservation(refusals);
    }

    /** Creates the rejection of a call after the limits that reject it were notified. */
    static Reservation refused(Claim[] claims, @Nullable Decision[] refusals) {
        for (int i = 0; i < claims.length; i++) {
            Decision refusal = refusals[i];
            Claim claim = claims[i];
            refusals[i] = refusal == null ? null : claim.limiter().refused(claim, refusal);
        }
        return refused(refusals);
    }

    /**
     * Returns the rejections of a call, by the index of the claim; null for a claim whose limit would admit the call. If no
     * limit has rejected the call, because its caller gave up while it waited, returns the decision with the longest wait.
     */
    public static @Nullable Decision[] refusals(Reservation reservation) {
        return reservation instanceof JointReservation all ? all.refusals() : new Decision[] {reservation.decision()};
    }

    /**
     * Returns the index of the decisive rejection: that with the longest wait time, or the first name if times are equal.
     *
     * @param refusals one or more of them not null
     */
    public static int decisive(@Nullable Decision[] refusals) {
        return JointReservation.decisive(refusals);
    }

    /** Returns the reservation of a single claim within one of several, by the index of the claim. */
    public static Reservation member(Reservation reservation, int claim) {
        return reservation instanceof JointReservation all ? all.member(claim) : reservation;
    }

    private static boolean haveSameBudgets(Claim[] claims) {
        for (int i = 1; i < claims.length; i++) {
            for (int earlier = 0; earlier < i; earlier++) {
                if (JointReservation.isSameBudget(claims[earlier], claims[i])) {
                    return true;
                }
            }
        }
        return false;
    }

    /**
     * Returns the numbers of the claims for places, in the order in which every call takes them: so no two calls hold places
     * crosswise and wait for each other, whatever their priorities, unless only some calls may wait for a place. Adaptive limits
     * come last, because they would take the wait for another place for the time of the call; else the order is that of names and
     * keys, which is the same on all instances.
     */
    static List<Integer> places(Claim[] claims) {
        List<Integer> places = new ArrayList<>(2);
        for (int i = 0; i < claims.length; i++) {
            if (isPlace(claims[i])) {
                int at = places.size();
                while (at > 0 && isBefore(claims[i], claims[places.get(at - 1)])) {
                    at--;
                }
                places.add(at, i);
            }
        }
        return places;
    }

    /** A comparison by hand, because every call under several limits with places makes it. */
    private static boolean isBefore(Claim one, Claim other) {
        if (findsItsLimit(one) != findsItsLimit(other)) {
            return findsItsLimit(other);
        }
        int names =
                one.limiter().limit().name().compareTo(other.limiter().limit().name());
        return names != 0 ? names < 0 : keyText(one).compareTo(keyText(other)) < 0;
    }

    private static String keyText(Claim claim) {
        return Objects.requireNonNullElse(CanonicalKey.textOrNull(claim.key()), "");
    }

    /**
     * Returns whether a call takes a place after a wait, so that no waiting caller holds it ({@link Later}).
     *
     * @param behind whether the call waits for a place that comes before
     * @param othersWaitNanos how long the call has to wait for limits that count over time
     * @param holding as of {@link #holdsPlaceAsleep}
     */
    static boolean takesPlaceLater(Claim claim, boolean behind, long othersWaitNanos, boolean holding) {
        boolean later = findsItsLimit(claim)
                ? behind || othersWaitNanos > 0
                : claim.maxWaitNanos() > 0
                        && (behind || (othersWaitNanos > 0 && claim.maxWaitNanos() >= othersWaitNanos && !holding));
        return later && isPlace(claim) && (isInMemory(claim) || claim.limiter() instanceof JointRateLimiter);
    }

    /**
     * Returns whether a call may not wait for one of its places as long as for its other limits, so that it takes the place at once.
     * Then it takes all of them at once, for their order; but for those of adaptive limits, which come last.
     */
    static boolean holdsPlaceAsleep(Claim[] claims, long othersWaitNanos) {
        for (Claim claim : claims) {
            if (claim.maxWaitNanos() > 0
                    && claim.maxWaitNanos() < othersWaitNanos
                    && isPlace(claim)
                    && !findsItsLimit(claim)) {
                return true;
            }
        }
        return false;
    }

    static boolean findsItsLimit(Claim claim) {
        return claim.limiter().limit().algorithm().findsItsLimit();
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
