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
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * One call under limits that are not all in memory: asks all, then takes in order, one backend after the other. What is taken
 * is kept in {@link #taken} as soon as it is here, and is undone in one place, whatever ends the transaction: a refusal, a
 * failure, or a call of a higher class that takes a seat. Used by one thread at a time.
 */
final class Transaction {

    /** Longest time for which the answers of the other limits to a refused call are reused. */
    private static final Duration LONGEST_KNOWN = Duration.ofSeconds(1);

    private final Claim[] claims;
    /** Null for a caller that blocks: all stages are complete then. */
    private final @Nullable Callbacks callbacks;

    private final Decision[] asked;
    private final @Nullable Decision[] refusals;
    /** By the number of the claim: whether its refusal was made by a take, whose limiter has judged it. */
    private final boolean[] judged;

    private final Reservation[] taken;
    /** Time for which the call has to wait, as far as that is known. */
    private long wait;

    /** Groups to ask about a call that is refused, so that the refusal names all. */
    private List<Group> unasked = List.of();

    Transaction(Claim[] claims, @Nullable Callbacks callbacks) {
        this.claims = claims;
        this.callbacks = callbacks;
        this.asked = new Decision[claims.length];
        this.refusals = new Decision[claims.length];
        this.judged = new boolean[claims.length];
        this.taken = new Reservation[claims.length];
    }

    /** Claims that one backend decides together, by their numbers. */
    private record Group(List<Integer> numbers, boolean inMemory) {}

    /** Completes with the reservation of all claims, or with the refusal. */
    CompletableFuture<Reservation> reserve() {
        List<Group> inMemory = groups(true);
        List<Group> remote = groups(false);
        List<Group> order = new ArrayList<>(remote);
        order.addAll(inMemory);
        CompletableFuture<Reservation> result = new CompletableFuture<>();
        ask(inMemory, remote)
                .thenCompose(admitted -> admitted && asksFirst(remote) ? ask(remote, List.of()) : completed(admitted))
                .thenCompose(admitted -> admitted ? take(order, 0) : completed(false))
                .whenComplete((admitted, failure) -> {
                    if (failure != null || !admitted) {
                        undo();
                    }
                })
                .thenCompose(admitted -> admitted ? completed(keep()) : refuse())
                .whenComplete((decided, failure) -> {
                    if (failure == null) {
                        result.complete(decided);
                    } else {
                        Throwable cause = failure.getCause();
                        result.completeExceptionally(
                                failure instanceof CompletionException && cause != null ? cause : failure);
                    }
                });
        return result;
    }

    private void undo() {
        JointReservation.undo(taken);
    }

    /** All have been taken: the call gives nothing back because of one of them. */
    private Reservation keep() {
        try {
            for (Reservation one : taken) {
                one.keep();
            }
        } catch (RuntimeException | Error ex) {
            undo();
            throw ex;
        }
        return TwoSteps.of(taken);
    }

    private static <T> CompletableFuture<T> completed(T value) {
        return CompletableFuture.completedFuture(value);
    }

    /** A single remote group is charged first and not asked, which saves a round trip. */
    private boolean asksFirst(List<Group> remote) {
        return remote.size() > 1
                || AllOf.mayTakePlaceLater(claims[remote.get(0).numbers.get(0)], wait);
    }

    /** Completes with the refusal, once the limits that have not been asked have said whether they would refuse, too. */
    private CompletableFuture<Reservation> refuse() {
        return decisions(unasked, knownNanos()).thenApply(any -> {
            for (int i = 0; i < claims.length; i++) {
                Decision refusal = refusals[i];
                if (refusal != null && !judged[i]) {
                    refusals[i] = claims[i].limiter().refused(claims[i], refusal);
                }
            }
            return AllOf.refused(refusals);
        });
    }

    /** Returns how long the call is refused in any case, up to {@link #LONGEST_KNOWN}. */
    private long knownNanos() {
        Decision longest = Objects.requireNonNull(refusals[AllOf.decisive(refusals)]);
        Duration retry = longest.retryAfter();
        return retry == null || retry.compareTo(LONGEST_KNOWN) > 0 ? LONGEST_KNOWN.toNanos() : retry.toNanos();
    }

    /** The groups in memory or of other backends; those of a single place last. */
    private List<Group> groups(boolean inMemory) {
        List<Group> groups = new ArrayList<>();
        for (int i = 0; i < claims.length; i++) {
            Claim claim = claims[i];
            if (AllOf.isInMemory(claim) == inMemory) {
                Group group = groups.stream()
                        .filter(each -> inMemory || isDecidedWith(claims[each.numbers.get(0)], claim))
                        .findFirst()
                        .orElse(null);
                if (group == null) {
                    group = new Group(new ArrayList<>(), inMemory);
                    groups.add(group);
                }
                group.numbers.add(i);
            }
        }
        groups.sort(Comparator.comparing(
                group -> group.numbers.size() == 1 && AllOf.isPlace(claims[group.numbers.get(0)])));
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
     * Completes with whether the limits of the groups would admit the call.
     *
     * @param others that are to be asked about the call if it is refused
     */
    private CompletableFuture<Boolean> ask(List<Group> groups, List<Group> others) {
        return decisions(groups, 0).thenApply(all -> {
            boolean admitted = all.stream().allMatch(Decision::admitted);
            unasked = admitted ? unasked : others;
            return admitted;
        });
    }

    /**
     * Asks all limits of the groups at the same time.
     *
     * @param knownNanos how long the answers may serve again, of a call that is refused already; 0 for a call that is not
     */
    private CompletableFuture<List<Decision>> decisions(List<Group> groups, long knownNanos) {
        List<Integer> numbers =
                groups.stream().flatMap(group -> group.numbers.stream()).toList();
        List<CompletableFuture<Decision>> asking = new ArrayList<>();
        try {
            for (int number : numbers) {
                asking.add(peek(claims[number], AllOf.permitsTogether(claims, number), knownNanos)
                        .toCompletableFuture());
            }
        } catch (RuntimeException | Error ex) {
            return CompletableFuture.failedFuture(ex);
        }
        return CompletableFuture.allOf(asking.toArray(CompletableFuture<?>[]::new))
                .thenApply(done -> {
                    List<Decision> decisions =
                            asking.stream().map(CompletableFuture::join).toList();
                    for (int i = 0; i < decisions.size(); i++) {
                        Decision decision = decisions.get(i);
                        asked[numbers.get(i)] = decision;
                        refusals[numbers.get(i)] = decision.admitted() ? null : decision;
                        wait = Math.max(wait, decision.waitTime().toNanos());
                    }
                    return decisions;
                });
    }

    /** Takes one group after the other, until one refuses. Completes with whether all have been taken. */
    private CompletableFuture<Boolean> take(List<Group> groups, int next) {
        if (next == groups.size()) {
            return completed(true);
        }
        Group group = groups.get(next);
        return take(group, next + 1 == groups.size()).thenCompose(decided -> {
            for (int i = 0; i < decided.size(); i++) {
                taken[group.numbers.get(i)] = decided.get(i);
                wait = Math.max(wait, decided.get(i).waitNanos());
            }
            @Nullable Decision[] own = refusals(decided);
            if (own == null) {
                return take(groups, next + 1);
            }
            for (int i = 0; i < own.length; i++) {
                refusals[group.numbers.get(i)] = own[i];
                judged[group.numbers.get(i)] = own[i] != null;
            }
            unasked = groups.stream().filter(each -> !each.equals(group)).toList();
            return completed(false);
        });
    }

    /** By the number in the group; null if it was admitted. One that waits may have been refused after the others. */
    private static @Nullable Decision @Nullable [] refusals(List<Reservation> decided) {
        return decided.get(0) instanceof JointReservation together
                ? together.refusals()
                : JointReservation.refusalsOf(decided.toArray(Reservation[]::new));
    }

    /**
     * The reservations of a group, or a single refused one.
     *
     * @param isLast whether no limit decides after them
     */
    private CompletableFuture<List<Reservation>> take(Group group, boolean isLast) {
        Claim[] all = group.numbers.stream().map(number -> claims[number]).toArray(Claim[]::new);
        if (group.inMemory) {
            return completed(MemoryClaims.take(all, wait));
        }
        for (int i = 0; i < all.length && !isLast; i++) {
            all[i] = new StatedClaim(all[i], all[i].permits(), true);
        }
        Claim first = all[0];
        if (all.length > 1) {
            return takeTogether((JointRateLimiter) first.limiter(), List.of(all));
        }
        Decision decision = asked[group.numbers.get(0)];
        Reservation later = decision == null ? null : AllOf.placeLater(first, wait, decision);
        return later != null ? completed(List.of(later)) : takeOne(first);
    }

    private CompletionStage<Decision> peek(Claim claim, long permits, long knownNanos) {
        RateLimiter limiter = claim.limiter();
        Claim together = AllOf.withPermits(claim, permits);
        if (limiter instanceof JointRateLimiter joint) {
            return callbacks == null
                    ? completed(joint.look(together, knownNanos))
                    : joint.lookAsync(together, knownNanos);
        }
        return callbacks == null || AllOf.isInMemory(claim)
                ? completed(limiter.peek(together))
                : limiter.peekAsync(together);
    }

    private CompletableFuture<List<Reservation>> takeOne(Claim claim) {
        return callbacks == null
                ? completed(List.of(claim.reserve()))
                : AllOf.reserveAsync(claim, callbacks).toCompletableFuture().thenApply(List::of);
    }

    private CompletableFuture<List<Reservation>> takeTogether(JointRateLimiter limiter, List<Claim> all) {
        return callbacks == null
                ? completed(limiter.reserveAll(all, wait))
                : limiter.reserveAllAsync(all, wait, callbacks).toCompletableFuture();
    }
}
