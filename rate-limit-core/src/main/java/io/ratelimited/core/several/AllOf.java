package io.ratelimited.core.several;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.several.JointReservation.LaterPlace;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/**
 * Several limits on one call, all or nothing: every limit is asked before any is charged, so that a refusal leaves the
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
 * network. It can only refuse: permits that are charged for a moment count like those of a call that goes, so no limit ever
 * admits more than its permits, and they are given back like those of a cancelled call. Limits elsewhere are asked about a
 * refused call, too, but not again while known answers refuse the same claims: until a retry, and one second at the most.
 *
 * <p>Claims on one budget are asked for together: a call that could never have all of them at once is refused for
 * ever, and does not wait for itself.
 *
 * <p>Places for calls in flight are taken last. A call that has to wait for other limits takes its place when they let it
 * go, if the longest wait for a place is as long; see {@link #placeLater}.
 */
public final class AllOf {

    /** Longest time for which the answers of the other limits to a refused call are reused. */
    private static final Duration LONGEST_KNOWN = Duration.ofSeconds(1);

    private static final Comparator<Decision> LONGEST_FIRST = Comparator.comparing(
                    (Decision refusal) -> !refusal.never())
            .thenComparing(
                    Decision::retryAfter,
                    Comparator.nullsFirst(Comparator.<Duration>naturalOrder()).reversed())
            .thenComparing(refusal -> refusal.source() == Source.UNAVAILABLE)
            .thenComparing(Decision::limit);

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
            return MemoryClaims.reserve(claims, 0);
        }
        try {
            return new Joint(claims, null).reserve().join();
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
                    ? CompletableFuture.completedFuture(MemoryClaims.reserve(claims, 0))
                    : WaitingRoom.orGivenBack(new Joint(claims, callbacks).reserve(), Reservation::cancel);
        } catch (RuntimeException | Error ex) {
            return CompletableFuture.failedFuture(ex);
        }
    }

    private static CompletionStage<Reservation> reserveAsync(Claim claim, Callbacks callbacks) {
        return claim.limiter()
                .reserveAsync(claim.key(), claim.permits(), claim.maxWaitNanos(), callbacks, claim.rank());
    }

    /**
     * A refusal, with nothing taken.
     *
     * @param refusals by the number of the claim, counted from 0; null for a claim whose limit would admit the call
     */
    public static Reservation refused(@Nullable Decision[] refusals) {
        return JointReservation.refused(refusals);
    }

    /**
     * Returns the refusals of a call, by the number of the claim; null for a claim whose limit would admit the call. If no
     * limit has refused the call, because it was given up while it waited, returns the decision with the longest wait.
     */
    public static @Nullable Decision[] refusals(Reservation reservation) {
        return reservation instanceof JointReservation all ? all.refusals() : new Decision[] {reservation.decision()};
    }

    /**
     * The number of the refusal that decides, whatever the order: of the longest time; of the first name if times are equal.
     *
     * @param refusals at least one of them not null
     */
    public static int decisive(@Nullable Decision[] refusals) {
        int decisive = -1;
        for (int i = 0; i < refusals.length; i++) {
            Decision refusal = refusals[i];
            Decision longest = decisive < 0 ? null : refusals[decisive];
            if (refusal != null && (longest == null || LONGEST_FIRST.compare(refusal, longest) < 0)) {
                decisive = i;
            }
        }
        return decisive;
    }

    /** The reservation of a single claim behind one of several, by the number of the claim. */
    public static Reservation member(Reservation reservation, int claim) {
        return reservation instanceof JointReservation all ? all.member(claim) : reservation;
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
            if (claim.limiter() == last.limiter() && isSameKey(claim.key(), last.key())) {
                long sum = permits + claim.permits();
                permits = sum < permits ? Long.MAX_VALUE : sum;
            }
        }
        return permits;
    }

    /**
     * The reservation of a place that is asked for when the other limits of the call let it go, so that no sleeping caller
     * holds a place. The longest wait for the place counts from the decision.
     *
     * @param claim whose limiter is in memory, or does not block
     * @param othersWaitNanos how long the call has to wait for its other limits
     * @param asked the decision about the claim when it was asked
     * @return null when the claim has to be reserved at once: it is no place, the call need not wait, or may wait for a place
     *     for less than for the others
     */
    public static @Nullable Reservation placeLater(Claim claim, long othersWaitNanos, Decision asked) {
        return mayTakePlaceLater(claim, othersWaitNanos)
                ? new LaterPlace(claim, claim.maxWaitNanos() - othersWaitNanos, asked)
                : null;
    }

    private static boolean mayTakePlaceLater(Claim claim, long othersWaitNanos) {
        return othersWaitNanos > 0
                && claim.maxWaitNanos() >= othersWaitNanos
                && isPlace(claim)
                && (isInMemory(claim) || claim.limiter() instanceof JointRateLimiter);
    }

    private static boolean isSameKey(@Nullable Object one, @Nullable Object other) {
        return one == other
                || (one != null && other != null && CanonicalKey.text(one).equals(CanonicalKey.text(other)));
    }

    static boolean isPlace(Claim claim) {
        return claim.limiter().limit().algorithm().countsCallsInFlight();
    }

    private static boolean isInMemory(Claim claim) {
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

    /** One call under limits that are not all in memory. Used by one thread at a time. */
    private static final class Joint {

        private final Claim[] claims;
        /** Null for a caller that blocks: all stages are complete then. */
        private final @Nullable Callbacks callbacks;

        private final Decision[] asked;
        private final @Nullable Decision[] refusals;
        private final Reservation[] taken;
        /** Time for which the call has to wait, as far as that is known. */
        private long wait;

        private Joint(Claim[] claims, @Nullable Callbacks callbacks) {
            this.claims = claims;
            this.callbacks = callbacks;
            this.asked = new Decision[claims.length];
            this.refusals = new Decision[claims.length];
            this.taken = new Reservation[claims.length];
        }

        private CompletableFuture<Reservation> reserve() {
            try {
                List<List<Integer>> remote = groups(false);
                List<List<Integer>> inMemory = groups(true);
                return ask(inMemory, 0)
                        .thenCompose(admitted -> admitted ? reserve(remote, inMemory) : refuse(remote))
                        .whenComplete((decided, failure) -> {
                            if (failure != null) {
                                JointReservation.undo(taken);
                            }
                        });
            } catch (RuntimeException | Error ex) {
                JointReservation.undo(taken);
                throw ex;
            }
        }

        /** A single remote group is charged first and not asked, which saves a round trip. */
        private CompletableFuture<Reservation> reserve(List<List<Integer>> remote, List<List<Integer>> inMemory) {
            boolean asks =
                    remote.size() > 1 || mayTakePlaceLater(claims[remote.get(0).get(0)], wait);
            List<List<Integer>> groups = new ArrayList<>(remote);
            groups.addAll(inMemory);
            return ask(asks ? remote : List.of(), 0)
                    .thenCompose(admitted -> admitted
                            ? reserveGroups(groups, 0)
                            : CompletableFuture.completedFuture(JointReservation.refused(refusals)));
        }

        /** Refuses the call, once the other limits have said whether they would, too. */
        private CompletableFuture<Reservation> refuse(List<List<Integer>> others) {
            return ask(others, knownNanos()).thenApply(any -> JointReservation.refused(refusals));
        }

        /** Returns how long the call is refused in any case, up to {@link #LONGEST_KNOWN}. */
        private long knownNanos() {
            Decision longest = Objects.requireNonNull(refusals[decisive(refusals)]);
            Duration retry = longest.retryAfter();
            return retry == null || retry.compareTo(LONGEST_KNOWN) > 0 ? LONGEST_KNOWN.toNanos() : retry.toNanos();
        }

        /** The claims by their numbers, in groups that one backend decides together; groups of a single place last. */
        private List<List<Integer>> groups(boolean inMemory) {
            List<List<Integer>> groups = new ArrayList<>();
            for (int i = 0; i < claims.length; i++) {
                Claim claim = claims[i];
                if (isInMemory(claim) == inMemory) {
                    List<Integer> group = groups.stream()
                            .filter(each -> inMemory || isDecidedWith(claims[each.get(0)], claim))
                            .findFirst()
                            .orElse(null);
                    if (group == null) {
                        group = new ArrayList<>();
                        groups.add(group);
                    }
                    group.add(i);
                }
            }
            groups.sort(Comparator.comparing(group -> group.size() == 1 && isPlace(claims[group.get(0)])));
            return groups;
        }

        /** A claim that asks for nothing is decided by itself. */
        private static boolean isDecidedWith(Claim first, Claim other) {
            return first.permits() > 0
                    && other.permits() > 0
                    && first.limiter() instanceof JointRateLimiter joint
                    && joint.decidesWith(other.limiter());
        }

        /**
         * Asks all limits of the groups at the same time. Completes with whether they would admit the call.
         *
         * @param knownNanos how long the answers may serve again, of a call that is refused already; 0 for a call that is not
         */
        private CompletableFuture<Boolean> ask(List<List<Integer>> groups, long knownNanos) {
            List<Integer> numbers = groups.stream().flatMap(List::stream).toList();
            List<CompletableFuture<Decision>> decisions = numbers.stream()
                    .map(number -> peek(claims[number], permitsTogether(claims, number), knownNanos)
                            .toCompletableFuture())
                    .toList();
            return CompletableFuture.allOf(decisions.toArray(CompletableFuture<?>[]::new))
                    .thenApply(done -> {
                        boolean admitted = true;
                        for (int i = 0; i < numbers.size(); i++) {
                            Decision decision = decisions.get(i).join();
                            asked[numbers.get(i)] = decision;
                            refusals[numbers.get(i)] = decision.admitted() ? null : decision;
                            wait = Math.max(wait, decision.waitTime().toNanos());
                            admitted &= decision.admitted();
                        }
                        return admitted;
                    });
        }

        /** Reserves one group after the other, until one refuses. */
        private CompletableFuture<Reservation> reserveGroups(List<List<Integer>> groups, int next) {
            if (next == groups.size()) {
                return CompletableFuture.completedFuture(new JointReservation(taken));
            }
            List<Integer> group = groups.get(next);
            return reserveGroup(group).thenCompose(decided -> {
                if (decided.get(0).isRefused()) {
                    JointReservation.undo(taken);
                    @Nullable Decision[] own = refusals(decided.get(0));
                    for (int i = 0; i < own.length; i++) {
                        refusals[group.get(i)] = own[i];
                    }
                    return refuse(groups.stream().filter(each -> each != group).toList());
                }
                for (int i = 0; i < decided.size(); i++) {
                    taken[group.get(i)] = decided.get(i);
                    wait = Math.max(wait, decided.get(i).waitNanos());
                }
                return reserveGroups(groups, next + 1);
            });
        }

        /** The reservations of a group, or a single refused one. */
        private CompletableFuture<List<Reservation>> reserveGroup(List<Integer> group) {
            Claim first = claims[group.get(0)];
            List<Claim> all = group.stream().map(number -> claims[number]).toList();
            if (isInMemory(first)) {
                Reservation taken = MemoryClaims.reserve(all.toArray(Claim[]::new), wait);
                return CompletableFuture.completedFuture(IntStream.range(0, all.size())
                        .mapToObj(i -> member(taken, i))
                        .toList());
            }
            if (group.size() > 1) {
                return reserveAll((JointRateLimiter) first.limiter(), all).toCompletableFuture();
            }
            Decision decision = asked[group.get(0)];
            Reservation later = decision == null ? null : placeLater(first, wait, decision);
            return later != null
                    ? CompletableFuture.completedFuture(List.of(later))
                    : reserve(first).thenApply(List::of).toCompletableFuture();
        }

        private CompletionStage<Decision> peek(Claim claim, long permits, long knownNanos) {
            RateLimiter limiter = claim.limiter();
            if (knownNanos > 0 && limiter instanceof JointRateLimiter joint) {
                return callbacks == null
                        ? CompletableFuture.completedFuture(
                                joint.look(claim.key(), permits, claim.maxWaitNanos(), knownNanos))
                        : joint.lookAsync(claim.key(), permits, claim.maxWaitNanos(), knownNanos);
            }
            return callbacks == null
                    ? CompletableFuture.completedFuture(
                            limiter.peek(claim.key(), permits, claim.maxWaitNanos(), claim.rank()))
                    : limiter.peekAsync(claim.key(), permits, claim.maxWaitNanos());
        }

        private CompletionStage<Reservation> reserve(Claim claim) {
            return callbacks == null
                    ? CompletableFuture.completedFuture(claim.reserve())
                    : reserveAsync(claim, callbacks);
        }

        private CompletionStage<List<Reservation>> reserveAll(JointRateLimiter limiter, List<Claim> all) {
            return callbacks == null
                    ? CompletableFuture.completedFuture(limiter.reserveAll(all, wait))
                    : limiter.reserveAllAsync(all, wait, callbacks);
        }
    }
}
