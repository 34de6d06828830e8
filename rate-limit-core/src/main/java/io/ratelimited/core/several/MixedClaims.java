package io.ratelimited.core.several;

import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.core.Reservation;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;

/** One call under limits that are not all in memory. Used by one thread at a time. */
final class MixedClaims {

    /** Longest time for which the answers of the other limits to a refused call are reused. */
    private static final Duration LONGEST_KNOWN = Duration.ofSeconds(1);

    private final Claim[] claims;
    /** Null for a caller that blocks: all stages are complete then. */
    private final @Nullable Callbacks callbacks;

    private final Decision[] asked;
    private final @Nullable Decision[] refusals;
    private final Reservation[] taken;
    /** Time for which the call has to wait, as far as that is known. */
    private long wait;

    MixedClaims(Claim[] claims, @Nullable Callbacks callbacks) {
        this.claims = claims;
        this.callbacks = callbacks;
        this.asked = new Decision[claims.length];
        this.refusals = new Decision[claims.length];
        this.taken = new Reservation[claims.length];
    }

    /** Completes with the reservations of all claims, or with the refusal. */
    CompletableFuture<Reservation> reserve() {
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
        boolean asks = remote.size() > 1
                || AllOf.mayTakePlaceLater(claims[remote.get(0).get(0)], wait);
        List<List<Integer>> groups = new ArrayList<>(remote);
        groups.addAll(inMemory);
        return ask(asks ? remote : List.of(), 0)
                .thenCompose(admitted -> admitted
                        ? reserveGroups(groups, 0)
                        : CompletableFuture.completedFuture(AllOf.refused(claims, refusals)));
    }

    /** Refuses the call, once the other limits have said whether they would, too. */
    private CompletableFuture<Reservation> refuse(List<List<Integer>> others) {
        return ask(others, knownNanos()).thenApply(any -> AllOf.refused(claims, refusals));
    }

    /** Returns how long the call is refused in any case, up to {@link #LONGEST_KNOWN}. */
    private long knownNanos() {
        Decision longest = Objects.requireNonNull(refusals[AllOf.decisive(refusals)]);
        Duration retry = longest.retryAfter();
        return retry == null || retry.compareTo(LONGEST_KNOWN) > 0 ? LONGEST_KNOWN.toNanos() : retry.toNanos();
    }

    /** The claims by their numbers, in groups that one backend decides together; groups of a single place last. */
    private List<List<Integer>> groups(boolean inMemory) {
        List<List<Integer>> groups = new ArrayList<>();
        for (int i = 0; i < claims.length; i++) {
            Claim claim = claims[i];
            if (AllOf.isInMemory(claim) == inMemory) {
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
        groups.sort(Comparator.comparing(group -> group.size() == 1 && AllOf.isPlace(claims[group.get(0)])));
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
                .map(number -> peek(claims[number], AllOf.permitsTogether(claims, number), knownNanos)
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
                @Nullable Decision[] own = AllOf.refusals(decided.get(0));
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
        if (AllOf.isInMemory(first)) {
            Reservation taken = MemoryClaims.reserve(all.toArray(Claim[]::new), wait);
            return CompletableFuture.completedFuture(IntStream.range(0, all.size())
                    .mapToObj(i -> AllOf.member(taken, i))
                    .toList());
        }
        if (group.size() > 1) {
            return reserveAll((JointRateLimiter) first.limiter(), all).toCompletableFuture();
        }
        Decision decision = asked[group.get(0)];
        Reservation later = decision == null ? null : AllOf.placeLater(first, wait, decision);
        return later != null
                ? CompletableFuture.completedFuture(List.of(later))
                : reserve(first).thenApply(List::of).toCompletableFuture();
    }

    private CompletionStage<Decision> peek(Claim claim, long permits, long knownNanos) {
        RateLimiter limiter = claim.limiter();
        Claim together = AllOf.withPermits(claim, permits);
        if (knownNanos > 0 && limiter instanceof JointRateLimiter joint) {
            return callbacks == null
                    ? CompletableFuture.completedFuture(joint.look(together, knownNanos))
                    : joint.lookAsync(together, knownNanos);
        }
        return callbacks == null || AllOf.isInMemory(claim)
                ? CompletableFuture.completedFuture(limiter.peek(together))
                : limiter.peekAsync(together);
    }

    private CompletionStage<Reservation> reserve(Claim claim) {
        return callbacks == null
                ? CompletableFuture.completedFuture(claim.reserve())
                : AllOf.reserveAsync(claim, callbacks);
    }

    private CompletionStage<List<Reservation>> reserveAll(JointRateLimiter limiter, List<Claim> all) {
        return callbacks == null
                ? CompletableFuture.completedFuture(limiter.reserveAll(all, wait))
                : limiter.reserveAllAsync(all, wait, callbacks);
    }
}
