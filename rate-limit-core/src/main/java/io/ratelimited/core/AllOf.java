package io.ratelimited.core;

import io.ratelimited.core.JointReservation.LaterPlace;
import io.ratelimited.core.JointReservation.Refused;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * Several limits on one call, all or nothing: every limit is asked before any is charged, so that a refusal leaves the
 * others as they were. If another caller comes between asking and charging, the charged permits are given back. Limits in
 * memory are asked first, so that nothing is sent where they refuse. A {@link JointRateLimiter} asks and charges all limits
 * of its backend together.
 *
 * <p>Places for calls in flight are taken last. A call that has to wait for other limits takes its place when they let it
 * go, if the longest wait for a place is as long; see {@link #placeLater}.
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

    /** {@link #reserve(List)}, which every call under limits does: no lists, no streams, and no decision but a refusal. */
    public static Reservation reserve(Claim[] claims) {
        if (claims.length == 1) {
            return claims[0].reserve();
        }
        if (areInMemory(claims)) {
            return reserveInMemory(claims);
        }
        try {
            return new Joint(claims, Mode.BLOCKING).reserve().join();
        } catch (CompletionException ex) {
            if (ex.getCause() instanceof Error error) {
                throw error;
            }
            throw ex.getCause() instanceof RuntimeException failure ? failure : ex;
        }
    }

    /** {@link #reserve(List)} for callers that must not block. */
    public static CompletionStage<Reservation> reserveAsync(List<? extends Claim> claims) {
        return reserveAsync(claims.toArray(Claim[]::new));
    }

    /**
     * {@link #reserve(Claim[])} for callers that must not block; done at once where all limits are in memory. A caller who
     * cancels the stage's future holds nothing.
     */
    public static CompletionStage<Reservation> reserveAsync(Claim[] claims) {
        if (claims.length == 1) {
            return Mode.ASYNCHRONOUS.reserve(claims[0]);
        }
        try {
            return areInMemory(claims)
                    ? CompletableFuture.completedFuture(reserveInMemory(claims))
                    : WaitingRoom.orGivenBack(new Joint(claims, Mode.ASYNCHRONOUS).reserve(), Reservation::cancel);
        } catch (RuntimeException | Error ex) {
            return CompletableFuture.failedFuture(ex);
        }
    }

    /** The refusal of a {@link JointRateLimiter}, with the number of the refused claim. */
    public static Reservation refused(Decision decision, int claim) {
        return new Refused(decision, claim);
    }

    /** The number of the claim that was refused, counted from 0; the limit alone does not identify it. */
    public static int refusedClaim(Reservation reservation) {
        if (reservation instanceof Refused refused) {
            return refused.claim();
        }
        return reservation instanceof JointReservation all ? all.decisive() : 0;
    }

    /** The reservations of the single limits behind one, in the order of the claims. */
    public static List<Reservation> members(Reservation reservation) {
        return reservation instanceof JointReservation all ? all.members() : List.of(reservation);
    }

    /** One of the {@link #members}, without a list of them. */
    public static Reservation member(Reservation reservation, int claim) {
        return reservation instanceof JointReservation all ? all.member(claim) : reservation;
    }

    /**
     * The reservation of a place that is asked for when the other limits of the call let it go. So nobody holds a place
     * asleep, except where a place later is no longer possible: the longest wait for a place counts from the decision.
     *
     * @param claim whose limiter is in memory, or does not block
     * @param othersWaitNanos how long the call has to wait for its other limits
     * @param asked what was decided about the claim when it was asked
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

    private static boolean isPlace(Claim claim) {
        return claim.limiter().limit().algorithm().countsCallsInFlight();
    }

    private static boolean isInMemory(Claim claim) {
        return claim.limiter() instanceof InMemoryRateLimiter;
    }

    private static boolean areInMemory(Claim[] claims) {
        for (Claim claim : claims) {
            if (!isInMemory(claim)) {
                return false;
            }
        }
        return true;
    }

    private static Reservation reserveInMemory(Claim[] claims) {
        Reservation[] members = new Reservation[claims.length];
        int places = 0;
        for (int i = 0; i < claims.length; i++) {
            Claim claim = claims[i];
            InMemoryRateLimiter limiter = (InMemoryRateLimiter) claim.limiter();
            members[i] =
                    limiter.ask(claim.key(), claim.permits(), claim.maxWaitNanos(), i == 0 ? null : members[i - 1]);
            if (members[i].isRefused()) {
                return new Refused(members[i].decision(), i);
            }
            places += limiter.countsCallsInFlight() ? 1 : 0;
        }
        try {
            int refused = takeInMemory(claims, members, false, 0);
            if (refused < 0 && places > 0) {
                refused = takeInMemory(claims, members, true, longestWait(claims, members));
            }
            if (refused < 0) {
                return new JointReservation(members);
            }
            JointReservation.undo(members);
            return new Refused(members[refused].decision(), refused);
        } catch (RuntimeException | Error ex) {
            JointReservation.undo(members);
            throw ex;
        }
    }

    /**
     * Takes what has been asked for.
     *
     * @param places the places for calls in flight, or all others
     * @return the number of the claim that was refused after all; -1 for none
     */
    private static int takeInMemory(Claim[] claims, Reservation[] members, boolean places, long othersWaitNanos) {
        for (int i = 0; i < claims.length; i++) {
            Claim claim = claims[i];
            InMemoryRateLimiter limiter = (InMemoryRateLimiter) claim.limiter();
            if (limiter.countsCallsInFlight() != places) {
                continue;
            }
            Reservation later = othersWaitNanos > 0 ? placeLater(claim, othersWaitNanos, members[i].decision()) : null;
            members[i] = later != null ? later : limiter.take(members[i], claim.maxWaitNanos());
            if (members[i].isRefused()) {
                return i;
            }
        }
        return -1;
    }

    private static long longestWait(Claim[] claims, Reservation[] members) {
        long longest = 0;
        for (int i = 0; i < claims.length; i++) {
            if (!((InMemoryRateLimiter) claims[i].limiter()).countsCallsInFlight()) {
                longest = Math.max(longest, members[i].waitNanos());
            }
        }
        return longest;
    }

    /** How a limiter is asked. The stages of calls that may block are done. */
    private enum Mode {
        BLOCKING {
            @Override
            CompletionStage<Decision> peek(Claim claim) {
                return CompletableFuture.completedFuture(claim.peek());
            }

            @Override
            CompletionStage<Reservation> reserve(Claim claim) {
                return CompletableFuture.completedFuture(claim.reserve());
            }

            @Override
            CompletionStage<List<Reservation>> reserveAll(JointRateLimiter limiter, List<Claim> claims, long wait) {
                return CompletableFuture.completedFuture(limiter.reserveAll(claims, wait));
            }
        },
        ASYNCHRONOUS {
            @Override
            CompletionStage<Decision> peek(Claim claim) {
                return claim.limiter().peekAsync(claim.key(), claim.permits(), claim.maxWaitNanos());
            }

            @Override
            CompletionStage<Reservation> reserve(Claim claim) {
                return claim.limiter().reserveAsync(claim.key(), claim.permits(), claim.maxWaitNanos());
            }

            @Override
            CompletionStage<List<Reservation>> reserveAll(JointRateLimiter limiter, List<Claim> claims, long wait) {
                return limiter.reserveAllAsync(claims, wait);
            }
        };

        abstract CompletionStage<Decision> peek(Claim claim);

        abstract CompletionStage<Reservation> reserve(Claim claim);

        abstract CompletionStage<List<Reservation>> reserveAll(JointRateLimiter limiter, List<Claim> claims, long wait);
    }

    /** One call under limits that are not all in memory. Used by one thread at a time. */
    private static final class Joint {

        private final Claim[] claims;
        private final Mode mode;
        private final Decision[] asked;
        private final Reservation[] taken;
        /** How long the call has to wait, as far as that is known. */
        private long wait;

        private Joint(Claim[] claims, Mode mode) {
            this.claims = claims;
            this.mode = mode;
            this.asked = new Decision[claims.length];
            this.taken = new Reservation[claims.length];
        }

        private CompletableFuture<Reservation> reserve() {
            try {
                List<List<Integer>> far = far();
                List<List<Integer>> near = near();
                List<Integer> toAsk = new ArrayList<>();
                near.forEach(toAsk::addAll);
                return ask(toAsk)
                        .thenCompose(refused -> refused != null ? done(refused) : reserve(far, near))
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

        /** A single backend that has to be asked over a network need not be asked twice: it is charged first. */
        private CompletableFuture<Reservation> reserve(List<List<Integer>> far, List<List<Integer>> near) {
            List<Integer> toAsk = new ArrayList<>();
            if (far.size() > 1 || mayTakePlaceLater(claims[far.get(0).get(0)], wait)) {
                far.forEach(toAsk::addAll);
            }
            List<List<Integer>> steps = new ArrayList<>(far);
            steps.addAll(near);
            return ask(toAsk).thenCompose(refused -> refused != null ? done(refused) : take(steps, 0));
        }

        private static CompletableFuture<Reservation> done(Reservation refused) {
            return CompletableFuture.completedFuture(refused);
        }

        /** Those in memory, each by itself, the places last. */
        private List<List<Integer>> near() {
            List<List<Integer>> near = new ArrayList<>();
            for (int i = 0; i < claims.length; i++) {
                if (isInMemory(claims[i])) {
                    near.add(List.of(i));
                }
            }
            near.sort(Comparator.comparing(numbers -> isPlace(claims[numbers.get(0)])));
            return near;
        }

        /** The others, together where one backend decides them together, single places last. */
        private List<List<Integer>> far() {
            List<List<Integer>> far = new ArrayList<>();
            for (int i = 0; i < claims.length; i++) {
                if (!isInMemory(claims[i])) {
                    Claim claim = claims[i];
                    far.stream()
                            .filter(numbers -> claims[numbers.get(0)].limiter() instanceof JointRateLimiter first
                                    && first.decidesWith(claim.limiter()))
                            .findFirst()
                            .orElseGet(() -> {
                                List<Integer> numbers = new ArrayList<>();
                                far.add(numbers);
                                return numbers;
                            })
                            .add(i);
                }
            }
            far.sort(Comparator.comparing(numbers -> numbers.size() == 1 && isPlace(claims[numbers.get(0)])));
            return far;
        }

        /** Asks limits at the same time; returns the refusal, by the number of its claim. */
        private CompletableFuture<@Nullable Reservation> ask(List<Integer> numbers) {
            List<CompletableFuture<Decision>> decisions = numbers.stream()
                    .map(number -> mode.peek(claims[number]).toCompletableFuture())
                    .toList();
            return CompletableFuture.allOf(decisions.toArray(CompletableFuture<?>[]::new))
                    .thenApply(done -> {
                        Reservation refused = null;
                        for (int i = 0; i < numbers.size() && refused == null; i++) {
                            Decision decision = decisions.get(i).join();
                            asked[numbers.get(i)] = decision;
                            wait = Math.max(wait, decision.waitTime().toNanos());
                            refused = decision.admitted() ? null : new Refused(decision, numbers.get(i));
                        }
                        return refused;
                    });
        }

        private CompletableFuture<Reservation> take(List<List<Integer>> steps, int next) {
            if (next == steps.size()) {
                return done(new JointReservation(taken));
            }
            List<Integer> numbers = steps.get(next);
            return reserve(numbers).thenCompose(decided -> {
                if (decided.get(0).isRefused()) {
                    Reservation refused = decided.get(0);
                    JointReservation.undo(taken);
                    return done(new Refused(refused.decision(), numbers.get(refusedClaim(refused))));
                }
                for (int i = 0; i < decided.size(); i++) {
                    taken[numbers.get(i)] = decided.get(i);
                    wait = Math.max(wait, decided.get(i).waitNanos());
                }
                return take(steps, next + 1);
            });
        }

        /** The reservations of some claims, or a single refused one. */
        private CompletableFuture<List<Reservation>> reserve(List<Integer> numbers) {
            Claim first = claims[numbers.get(0)];
            if (numbers.size() > 1) {
                List<Claim> all = numbers.stream().map(number -> claims[number]).toList();
                return mode.reserveAll((JointRateLimiter) first.limiter(), all, wait)
                        .toCompletableFuture();
            }
            Decision decision = asked[numbers.get(0)];
            Reservation later = decision == null ? null : placeLater(first, wait, decision);
            return later != null
                    ? CompletableFuture.completedFuture(List.of(later))
                    : mode.reserve(first).thenApply(List::of).toCompletableFuture();
        }
    }
}
