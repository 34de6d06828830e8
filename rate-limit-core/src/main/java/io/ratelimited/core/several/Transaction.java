package io.ratelimited.core.several;

import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.core.Reservation;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.function.BiFunction;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * One call under limits that are not all in memory: asks all, then takes in order, one backend after the other. Within a backend
 * that cannot decide in one step, it is a transaction over the claims of that backend, which takes all of them at the same time.
 * What is taken is kept in {@link #taken} as soon as it is here, and is undone in one place, whatever ends the transaction: a
 * refusal, a failure, or a call of a higher class that takes a seat. Used by one thread at a time.
 */
final class Transaction {

    /** Longest time for which the answers of the other limits to a refused call are reused. */
    private static final Duration LONGEST_KNOWN = Duration.ofSeconds(1);

    private final Claim[] claims;
    /** The claims as of a backend that decides last. */
    private final Claim[] lastClaims;
    /** Asks limits at the same time; the answers may serve again for some nanoseconds. */
    private final BiFunction<List<Claim>, Long, CompletableFuture<List<Decision>>> ask;

    private final Function<Claim, ? extends CompletionStage<Reservation>> take;
    /** Takes the claims of one backend in one step, beside a wait; null where each is taken by itself. */
    private final @Nullable BiFunction<List<Claim>, Long, CompletionStage<List<Reservation>>> takeTogether;

    private final Decision[] asked;
    private final @Nullable Decision[] refusals;
    /** By the number of the claim: whether its refusal was made by a take, whose limiter has judged it. */
    private final boolean[] judged;

    private final Reservation[] taken;
    /** Time for which the call has to wait, as far as that is known. */
    private long wait;
    /** Whether the call waits for a place that it has claimed, or takes one later: it holds none behind that. */
    private boolean queued;

    /** Groups to ask about a call that is refused, so that the refusal names all. */
    private List<Group> unasked = List.of();

    /** @param callbacks null for a caller that blocks: all stages are complete then */
    Transaction(Claim[] claims, @Nullable Callbacks callbacks) {
        this(
                claims,
                0,
                callbacks == null ? Transaction::look : Transaction::lookAsync,
                claim -> callbacks == null ? completed(claim.reserve()) : AllOf.reserveAsync(claim, callbacks),
                (all, wait) -> takeTogether(all, wait, callbacks));
    }

    /** As of {@link AllOf#reserveEach}. */
    Transaction(
            Claim[] claims,
            long othersWaitNanos,
            BiFunction<List<Claim>, Long, CompletableFuture<List<Decision>>> ask,
            Function<Claim, ? extends CompletionStage<Reservation>> take,
            @Nullable BiFunction<List<Claim>, Long, CompletionStage<List<Reservation>>> takeTogether) {
        this.claims = claims;
        this.lastClaims = undecidedIfOthersWait(claims);
        this.wait = othersWaitNanos;
        this.ask = ask;
        this.take = take;
        this.takeTogether = takeTogether;
        this.asked = new Decision[claims.length];
        this.refusals = new Decision[claims.length];
        this.judged = new boolean[claims.length];
        this.taken = new Reservation[claims.length];
    }

    /** Claims that one backend decides together, by their numbers. */
    private record Group(List<Integer> numbers, boolean inMemory) {}

    /** Completes with the reservation of all claims, or with the refusal. */
    CompletableFuture<Reservation> reserve() {
        return unwrapped(all().thenApply(all -> all.size() < claims.length ? all.get(0) : TwoSteps.of(claims, taken)));
    }

    /** Completes with the reservations of the claims, or with a single refused one. */
    CompletableFuture<List<Reservation>> reserveAll() {
        return unwrapped(all());
    }

    private CompletableFuture<List<Reservation>> all() {
        List<Group> inMemory = groups(true);
        List<Group> remote = groups(false);
        List<Group> order = new ArrayList<>(remote);
        order.addAll(inMemory);
        return ask(inMemory, remote)
                .thenCompose(admitted -> admitted && asksFirst(remote) ? ask(remote, List.of()) : completed(admitted))
                .thenCompose(admitted -> admitted ? take(order, 0) : completed(false))
                .whenComplete((admitted, failure) -> {
                    if (failure != null || !admitted) {
                        undo();
                    }
                })
                .thenCompose(admitted -> admitted ? completed(keep()) : refuse());
    }

    /** Fails with what a stage has failed with. */
    private static <T> CompletableFuture<T> unwrapped(CompletableFuture<T> decided) {
        return decided.exceptionallyCompose(failure -> CompletableFuture.failedFuture(
                failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure));
    }

    private void undo() {
        JointReservation.undo(taken);
    }

    /** All have been taken: the call keeps each while it waits for no other one, because of which it may give that back. */
    private List<Reservation> keep() {
        int waits = MemoryClaims.waits(taken);
        try {
            for (int i = 0; i < taken.length; i++) {
                if (waits == MemoryClaims.waits(taken[i]) && !claims[i].isUndecided()) {
                    taken[i].keep();
                }
            }
        } catch (RuntimeException | Error ex) {
            undo();
            throw ex;
        }
        return List.of(taken);
    }

    private static <T> CompletableFuture<T> completed(T value) {
        return CompletableFuture.completedFuture(value);
    }

    /**
     * A single remote group that takes permits is charged first and not asked: it saves a round trip, and the backend judges the
     * call by itself.
     */
    private boolean asksFirst(List<Group> remote) {
        Group taking = null;
        for (Group group : remote) {
            if (takeTogether == null || (taking != null && !takesNothing(first(group)))) {
                return true;
            }
            taking = takesNothing(first(group)) ? taking : group;
        }
        if (taking == null) {
            return false;
        }
        // A call of no permits may have to wait, too: whether a place comes later is known once it is asked.
        boolean placeBeside = remote.size() > 1 && taking.numbers.size() == 1 && AllOf.isPlace(first(taking));
        return placeBeside || AllOf.takesPlaceLater(first(taking), false, wait, false);
    }

    private Claim first(Group group) {
        return claims[group.numbers.get(0)];
    }

    /** Returns whether a claim leaves its limit as it is, whatever becomes of the call. */
    private static boolean takesNothing(Claim claim) {
        return claim.permits() == 0 || claim.limiter().limit().isUnlimited();
    }

    /** Completes with the refusal, once the limits that have not been asked have said whether they would refuse, too. */
    private CompletableFuture<List<Reservation>> refuse() {
        return decisions(unasked, knownNanos()).thenApply(any -> {
            for (int i = 0; i < claims.length; i++) {
                Decision refusal = refusals[i];
                if (refusal != null && !judged[i]) {
                    refusals[i] = claims[i].limiter().refused(claims[i], refusal);
                }
            }
            return List.of(AllOf.refused(refusals));
        });
    }

    /** Returns how long the call is refused in any case, up to {@link #LONGEST_KNOWN}. */
    private long knownNanos() {
        Decision longest = Objects.requireNonNull(refusals[AllOf.decisive(refusals)]);
        Duration retry = longest.retryAfter();
        return retry == null || retry.compareTo(LONGEST_KNOWN) > 0 ? LONGEST_KNOWN.toNanos() : retry.toNanos();
    }

    /** The groups in memory or of other backends: first those that take nothing, and last those of a single place. */
    private List<Group> groups(boolean inMemory) {
        List<Group> groups = new ArrayList<>();
        for (int i = 0; i < claims.length; i++) {
            Claim claim = claims[i];
            if (AllOf.isInMemory(claim) == inMemory) {
                Group group = groups.stream()
                        .filter(each -> inMemory || takeTogether == null || isDecidedWith(first(each), claim))
                        .findFirst()
                        .orElse(null);
                if (group == null) {
                    group = new Group(new ArrayList<>(), inMemory);
                    groups.add(group);
                }
                group.numbers.add(i);
            }
        }
        groups.sort(Comparator.comparingInt(this::order));
        return groups;
    }

    private int order(Group group) {
        Claim first = first(group);
        return takesNothing(first) ? -1 : group.numbers.size() == 1 && AllOf.isPlace(first) ? 1 : 0;
    }

    /** A claim that takes nothing is decided by itself, so that the others are decided in one step. */
    private static boolean isDecidedWith(Claim first, Claim other) {
        return !takesNothing(first)
                && !takesNothing(other)
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
        List<Claim> all = numbers.stream().map(number -> claims[number]).toList();
        return ask.apply(all, knownNanos).thenApply(decisions -> {
            for (int i = 0; i < decisions.size(); i++) {
                Decision decision = decisions.get(i);
                asked[numbers.get(i)] = decision;
                refusals[numbers.get(i)] = decision.admitted() ? null : decision;
                wait = Math.max(wait, decision.waitTime().toNanos());
            }
            return decisions;
        });
    }

    /** Does something for each claim, at the same time. Ends when all have ended, also if one fails. */
    static <C, T> CompletableFuture<List<T>> all(List<C> each, Function<C, ? extends CompletionStage<T>> step) {
        List<CompletableFuture<T>> steps = new ArrayList<>(each.size());
        for (C one : each) {
            try {
                steps.add(step.apply(one).toCompletableFuture());
            } catch (RuntimeException | Error ex) {
                steps.add(CompletableFuture.failedFuture(ex));
            }
        }
        return CompletableFuture.allOf(steps.toArray(CompletableFuture<?>[]::new))
                .thenApply(done -> steps.stream().map(CompletableFuture::join).toList());
    }

    /** Takes one group after the other, until one refuses. Completes with whether all have been taken. */
    private CompletableFuture<Boolean> take(List<Group> groups, int next) {
        if (next == groups.size()) {
            return completed(true);
        }
        Group group = groups.get(next);
        return take(group, next + 1 == groups.size()).thenCompose(decided -> {
            for (int i = 0; i < decided.size(); i++) {
                took(group.numbers.get(i), decided.get(i));
            }
            @Nullable Decision[] own = refusals(decided);
            if (own == null) {
                return take(groups, next + 1);
            }
            for (int i = 0; i < own.length; i++) {
                refusals[group.numbers.get(i)] = own[i];
                judged[group.numbers.get(i)] = own[i] != null;
            }
            // Those before it have admitted the call.
            unasked = groups.subList(next + 1, groups.size());
            return completed(false);
        });
    }

    private void took(int number, Reservation decided) {
        taken[number] = decided;
        wait = Math.max(wait, decided.waitNanos());
        queued |= AllOf.isPlace(claims[number]) && decided.mayWait();
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
            return completed(MemoryClaims.take(all, wait, queued));
        }
        if (all.length > 1 && takeTogether != null) {
            return takeTogether
                    .apply(
                            group.numbers.stream()
                                    .map(number -> stated(number, isLast))
                                    .toList(),
                            wait)
                    .toCompletableFuture();
        }
        List<Integer> rates = group.numbers.stream()
                .filter(number -> !AllOf.isPlace(claims[number]))
                .toList();
        List<Integer> places =
                AllOf.places(all).stream().map(group.numbers::get).toList();
        boolean last = isLast && all.length == 1;
        return all(rates, number -> takeOne(number, last))
                .thenCompose(done -> {
                    for (int i = 0; i < done.size(); i++) {
                        took(rates.get(i), done.get(i));
                    }
                    return takePlaces(places.iterator(), AllOf.holdsPlaceAsleep(claims, wait), last);
                })
                .thenApply(done ->
                        group.numbers.stream().map(number -> taken[number]).toList());
    }

    /** Kept as soon as it is here, to be undone if another one fails. */
    private CompletionStage<Reservation> takeOne(int number, boolean isLast) {
        return take.apply(stated(number, isLast)).thenApply(one -> {
            taken[number] = one;
            return one;
        });
    }

    /** Takes places one after the other, in their order; those behind one for which the call waits, later. */
    private CompletableFuture<?> takePlaces(Iterator<Integer> places, boolean holding, boolean isLast) {
        while (places.hasNext()) {
            int number = places.next();
            Decision decision = asked[number];
            if (decision == null || !AllOf.takesPlaceLater(claims[number], queued, wait, holding)) {
                return takeOne(number, isLast)
                        .thenCompose(one -> {
                            took(number, one);
                            return takePlaces(places, holding, isLast);
                        })
                        .toCompletableFuture();
            }
            taken[number] = Later.of(claims[number], decision);
        }
        return completed(true);
    }

    /** The claim, which says whether other limits decide after it, or may have the call wait. */
    private Claim stated(int number, boolean isLast) {
        return isLast ? lastClaims[number] : StatedClaim.undecided(claims[number]);
    }

    /** Keeping what was undecided costs a command: only where that matters, and the call may wait. */
    private static Claim[] undecidedIfOthersWait(Claim[] claims) {
        long waits = Stream.of(claims).filter(Transaction::mayWait).count();
        return Stream.of(claims)
                .map(claim -> waits > (mayWait(claim) ? 1 : 0)
                                && claim.limiter().limit().block() != null
                        ? StatedClaim.undecided(claim)
                        : claim)
                .toArray(Claim[]::new);
    }

    private static boolean mayWait(Claim claim) {
        return claim.maxWaitNanos() > 0;
    }

    /** Blocks once for the limits of one backend. */
    private static CompletableFuture<List<Decision>> look(List<Claim> claims, long knownNanos) {
        @Nullable Decision[] decisions = new Decision[claims.size()];
        for (int i = 0; i < decisions.length; i++) {
            RateLimiter limiter = claims.get(i).limiter();
            if (decisions[i] == null && limiter instanceof JointRateLimiter joint) {
                int first = i;
                List<Integer> same = IntStream.range(i, decisions.length)
                        .filter(other -> other == first
                                || joint.decidesWith(claims.get(other).limiter()))
                        .boxed()
                        .toList();
                List<Decision> own = joint.look(same.stream().map(claims::get).toList(), knownNanos);
                for (int j = 0; j < own.size(); j++) {
                    decisions[same.get(j)] = own.get(j);
                }
            } else if (decisions[i] == null) {
                decisions[i] = limiter.peek(claims.get(i));
            }
        }
        return completed(Stream.of(decisions).map(Objects::requireNonNull).toList());
    }

    private static CompletableFuture<List<Decision>> lookAsync(List<Claim> claims, long knownNanos) {
        return all(claims, claim -> {
            RateLimiter limiter = claim.limiter();
            if (limiter instanceof JointRateLimiter joint) {
                return joint.lookAsync(claim, knownNanos);
            }
            return AllOf.isInMemory(claim) ? completed(limiter.peek(claim)) : limiter.peekAsync(claim);
        });
    }

    private static CompletionStage<List<Reservation>> takeTogether(
            List<Claim> all, long wait, @Nullable Callbacks callbacks) {
        JointRateLimiter limiter = (JointRateLimiter) all.get(0).limiter();
        return callbacks == null
                ? completed(limiter.reserveAll(all, wait))
                : limiter.reserveAllAsync(all, wait, callbacks);
    }
}
