package io.ratelimited.core;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Several limits on one call, all or nothing. Every limit is asked before any is charged, so that a refusal leaves the
 * others as they were. If another caller comes between asking and charging, the charged permits are given back. A {@link
 * JointRateLimiter} does both in one step: after the others have been asked, so that nothing is sent where memory refuses,
 * and before they are charged. The call waits for the last of its limits.
 */
public final class AllOf implements Reservation {

    private final Reservation[] members;

    private AllOf(Reservation[] members) {
        this.members = members;
    }

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
        for (Claim claim : claims) {
            if (!(claim.limiter() instanceof TwoStepRateLimiter)) {
                return reserveElsewhere(List.of(claims));
            }
        }
        return reserveInTwoSteps(claims);
    }

    private static Reservation reserveInTwoSteps(Claim[] claims) {
        Reservation[] members = new Reservation[claims.length];
        for (int i = 0; i < claims.length; i++) {
            Claim claim = claims[i];
            TwoStepRateLimiter limiter = (TwoStepRateLimiter) claim.limiter();
            members[i] =
                    limiter.ask(claim.key(), claim.permits(), claim.maxWaitNanos(), i == 0 ? null : members[i - 1]);
            if (members[i].isRefused()) {
                return new Refused(members[i].decision(), i);
            }
        }
        try {
            for (int i = 0; i < claims.length; i++) {
                TwoStepRateLimiter limiter = (TwoStepRateLimiter) claims[i].limiter();
                members[i] = limiter.take(members[i], claims[i].maxWaitNanos());
                if (members[i].isRefused()) {
                    undo(members);
                    return new Refused(members[i].decision(), i);
                }
            }
            return new AllOf(members);
        } catch (RuntimeException | Error ex) {
            undo(members);
            throw ex;
        }
    }

    private static Reservation reserveElsewhere(List<Claim> claims) {
        List<Integer> joint = joint(claims);
        if (isAll(joint, claims)) {
            return of(joint(claims.get(0)).reserveTogether(claims));
        }
        for (int i = 0; i < claims.size(); i++) {
            if (!joint.contains(i)) {
                Decision decision = claims.get(i).peek();
                if (!decision.admitted()) {
                    return new Refused(decision, i);
                }
            }
        }
        Reservation[] taken = new Reservation[claims.size()];
        try {
            Reservation refused = joint.isEmpty() ? null : keep(taken, joint, reserve(claims(claims, joint)));
            for (int i = 0; i < taken.length && refused == null; i++) {
                if (taken[i] == null) {
                    refused = keep(taken, List.of(i), claims.get(i).reserve());
                }
            }
            return refused == null ? new AllOf(taken) : refused;
        } catch (RuntimeException | Error ex) {
            undo(taken);
            throw ex;
        }
    }

    private static Reservation of(List<Reservation> decided) {
        return decided.size() == 1 ? decided.get(0) : new AllOf(decided.toArray(Reservation[]::new));
    }

    /** {@link #reserve(List)} for callers that must not block. */
    public static CompletionStage<Reservation> reserveAsync(List<? extends Claim> claims) {
        return reserveAsync(claims.toArray(Claim[]::new));
    }

    /** {@link #reserve(Claim[])} for callers that must not block. A caller who cancels the stage's future holds nothing. */
    public static CompletionStage<Reservation> reserveAsync(Claim[] of) {
        return of.length == 1
                ? of[0].limiter().reserveAsync(of[0].key(), of[0].permits(), of[0].maxWaitNanos())
                : WaitingRoom.orGivenBack(takeAsync(List.of(of)).toCompletableFuture(), Reservation::cancel);
    }

    private static CompletionStage<Reservation> takeAsync(List<Claim> claims) {
        List<Integer> joint = joint(claims);
        if (isAll(joint, claims)) {
            return joint(claims.get(0)).reserveTogetherAsync(claims).thenApply(AllOf::of);
        }
        for (int i = 0; i < claims.size() && !joint.isEmpty(); i++) {
            // The peek of another limiter might block.
            if (claims.get(i).limiter() instanceof InMemoryRateLimiter) {
                Decision decision = claims.get(i).peek();
                if (!decision.admitted()) {
                    return CompletableFuture.completedFuture(new Refused(decision, i));
                }
            }
        }
        List<List<Integer>> steps = new ArrayList<>();
        if (!joint.isEmpty()) {
            steps.add(joint);
        }
        for (int i = 0; i < claims.size(); i++) {
            if (!joint.contains(i)) {
                steps.add(List.of(i));
            }
        }
        Reservation[] taken = new Reservation[claims.size()];
        return takeAsync(claims, steps, taken).whenComplete((reservation, failure) -> {
            if (failure != null) {
                undo(taken);
            }
        });
    }

    private static CompletionStage<Reservation> takeAsync(
            List<Claim> claims, List<List<Integer>> steps, Reservation[] taken) {
        if (steps.isEmpty()) {
            return CompletableFuture.completedFuture(new AllOf(taken));
        }
        return reserveAsync(claims(claims, steps.get(0))).thenCompose(reservation -> {
            Reservation refused = keep(taken, steps.get(0), reservation);
            return refused == null
                    ? takeAsync(claims, steps.subList(1, steps.size()), taken)
                    : CompletableFuture.completedFuture(refused);
        });
    }

    /**
     * The numbers of the claims that one backend decides in one step, beginning with one whose limiter does. It is asked
     * after the others, and charged before them.
     */
    private static List<Integer> joint(List<Claim> claims) {
        for (int first = 0; first < claims.size(); first++) {
            if (claims.get(first).limiter() instanceof JointRateLimiter limiter) {
                List<Integer> joint = new ArrayList<>(claims.size());
                joint.add(first);
                for (int i = 0; i < claims.size(); i++) {
                    if (i != first && limiter.canJoin(List.of(claims.get(first), claims.get(i)))) {
                        joint.add(i);
                    }
                }
                return joint;
            }
        }
        return List.of();
    }

    /** All claims, in their order, are decided in one step. */
    private static boolean isAll(List<Integer> joint, List<Claim> claims) {
        return joint.size() == claims.size() && joint.get(0) == 0;
    }

    private static JointRateLimiter joint(Claim claim) {
        return (JointRateLimiter) claim.limiter();
    }

    private static List<Claim> claims(List<Claim> all, List<Integer> numbers) {
        return numbers.stream().map(all::get).toList();
    }

    /**
     * Puts what was decided about some claims to what was taken; gives all of that back when it is a refusal.
     *
     * @return the refusal, by the number of its claim among all; null if there is none
     */
    private static @Nullable Reservation keep(Reservation[] taken, List<Integer> numbers, Reservation decided) {
        if (decided.isRefused()) {
            undo(taken);
            return new Refused(decided.decision(), numbers.get(refusedClaim(decided)));
        }
        List<Reservation> members = members(decided);
        for (int i = 0; i < members.size(); i++) {
            taken[numbers.get(i)] = members.get(i);
        }
        return null;
    }

    /** The refusal of a {@link JointRateLimiter}, with the number of the refused claim. */
    public static Reservation refused(Decision decision, int claim) {
        return new Refused(decision, claim);
    }

    /** The number of the claim that was refused, counted from 0; the limit alone does not identify it. */
    public static int refusedClaim(Reservation reservation) {
        if (reservation instanceof Refused refused) {
            return refused.claim;
        }
        return reservation instanceof AllOf all ? all.decisive() : 0;
    }

    /** The reservations of the single limits behind one, in the order of the claims. */
    public static List<Reservation> members(Reservation reservation) {
        return reservation instanceof AllOf all ? List.of(all.members) : List.of(reservation);
    }

    /** One of the {@link #members}, without a list of them. */
    public static Reservation member(Reservation reservation, int claim) {
        return reservation instanceof AllOf all ? all.members[claim] : reservation;
    }

    /** What was only asked for has taken nothing, and gives nothing back. */
    private static void undo(Reservation[] taken) {
        for (int i = taken.length - 1; i >= 0; i--) {
            if (taken[i] != null) {
                taken[i].cancel();
            }
        }
    }

    @Override
    public boolean isRefused() {
        for (Reservation member : members) {
            if (member.isRefused()) {
                return true;
            }
        }
        return false;
    }

    @Override
    public long waitNanos() {
        long longest = 0;
        for (Reservation member : members) {
            longest = Math.max(longest, member.waitNanos());
        }
        return longest;
    }

    @Override
    public boolean mayWait() {
        for (Reservation member : members) {
            if (member.mayWait()) {
                return true;
            }
        }
        return false;
    }

    /** The decision of the first member that refused, else of the one that waits longest. */
    @Override
    public Decision decision() {
        return members[decisive()].decision();
    }

    private int decisive() {
        int decisive = 0;
        for (int i = 0; i < members.length; i++) {
            if (members[i].isRefused()) {
                return i;
            }
            if (members[i].waitNanos() > members[decisive].waitNanos()) {
                decisive = i;
            }
        }
        return decisive;
    }

    @Override
    public boolean await() throws InterruptedException {
        boolean admitted = false;
        try {
            for (Reservation member : members) {
                if (!member.await()) {
                    return false;
                }
            }
            admitted = true;
            return true;
        } finally {
            if (!admitted) {
                cancel();
            }
        }
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        List<CompletableFuture<Boolean>> waits =
                Stream.of(members).map(Reservation::awaitAsync).toList();
        CompletableFuture<Boolean> all = CompletableFuture.allOf(waits.toArray(CompletableFuture<?>[]::new))
                .thenApply(done -> waits.stream().allMatch(CompletableFuture::join));
        CompletableFuture<Boolean> result = all.copy();
        result.whenComplete((admitted, failure) -> {
            if (failure != null || !admitted) {
                waits.forEach(wait -> wait.cancel(false));
                cancel();
            }
        });
        return result;
    }

    @Override
    public void cancel() {
        undo(members);
    }

    /** {@inheritDoc} Each limit that counts over time is charged with all the permits. */
    @Override
    public void settle(long permits) {
        UnsupportedOperationException refusal = null;
        int settled = 0;
        for (Reservation member : members) {
            try {
                member.settle(permits);
                settled++;
            } catch (UnsupportedOperationException ex) {
                refusal = ex;
            }
        }
        if (settled == 0 && refusal != null) {
            throw refusal;
        }
    }

    @Override
    public void release() {
        for (Reservation member : members) {
            member.release();
        }
    }

    /** Refused, with nothing taken. */
    private record Refused(Decision decision, int claim) implements Reservation {

        @Override
        public boolean isRefused() {
            return true;
        }

        @Override
        public long waitNanos() {
            return 0;
        }

        @Override
        public boolean mayWait() {
            return false;
        }

        @Override
        public boolean await() {
            return false;
        }

        @Override
        public CompletableFuture<Boolean> awaitAsync() {
            return CompletableFuture.completedFuture(false);
        }

        @Override
        public void cancel() {
            // Nothing was taken.
        }

        @Override
        public void settle(long permits) {
            Permits.requireCharge(permits);
        }

        @Override
        public void release() {
            // Nothing is in flight.
        }
    }
}
