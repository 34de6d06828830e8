package io.ratelimited.core;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * Several limits on one call, all or nothing. Every limit is asked before any is charged, so that a refusal leaves the
 * others as they were. If another caller comes between asking and charging, the charged permits are given back; a {@link
 * JointRateLimiter} does both in one step. The call waits for the last of its limits.
 */
public final class AllOf implements Reservation {

    /** Read in loops, not as streams, because every call under several limits does. */
    private final List<Reservation> members;

    private AllOf(List<Reservation> members) {
        this.members = List.copyOf(members);
    }

    /**
     * Takes all claims, or none and returns the refusal.
     *
     * @param claims one or more
     */
    public static Reservation reserve(List<Claim> claims) {
        if (claims.size() == 1) {
            return claims.get(0).reserve();
        }
        if (claims.get(0).limiter() instanceof JointRateLimiter joint && joint.canJoin(claims)) {
            return of(joint.reserveTogether(claims));
        }
        for (int i = 0; i < claims.size(); i++) {
            Decision decision = claims.get(i).peek();
            if (!decision.admitted()) {
                return new Refused(decision, i);
            }
        }
        List<Reservation> taken = new ArrayList<>(claims.size());
        try {
            for (int i = 0; i < claims.size(); i++) {
                Reservation reservation = claims.get(i).reserve();
                if (reservation.isRefused()) {
                    undo(taken);
                    return new Refused(reservation.decision(), i);
                }
                taken.add(reservation);
            }
        } catch (RuntimeException | Error ex) {
            undo(taken);
            throw ex;
        }
        return new AllOf(taken);
    }

    private static Reservation of(List<Reservation> decided) {
        return decided.size() == 1 ? decided.get(0) : new AllOf(decided);
    }

    /** {@link #reserve} for callers that must not block. */
    public static CompletionStage<Reservation> reserveAsync(List<Claim> claims) {
        if (claims.size() == 1) {
            Claim claim = claims.get(0);
            return claim.limiter().reserveAsync(claim.key(), claim.permits(), claim.maxWaitNanos());
        }
        if (claims.get(0).limiter() instanceof JointRateLimiter joint && joint.canJoin(claims)) {
            return joint.reserveTogetherAsync(claims).thenApply(AllOf::of);
        }
        List<Reservation> taken = new ArrayList<>(claims.size());
        return takeAsync(claims, taken).whenComplete((reservation, failure) -> {
            if (failure != null) {
                undo(taken);
            }
        });
    }

    private static CompletionStage<Reservation> takeAsync(List<Claim> claims, List<Reservation> taken) {
        if (taken.size() == claims.size()) {
            return CompletableFuture.completedFuture(new AllOf(taken));
        }
        return reserveAsync(List.of(claims.get(taken.size()))).thenCompose(reservation -> {
            if (reservation.isRefused()) {
                undo(taken);
                return CompletableFuture.completedFuture(new Refused(reservation.decision(), taken.size()));
            }
            taken.add(reservation);
            return takeAsync(claims, taken);
        });
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
        return reservation instanceof AllOf all ? all.members : List.of(reservation);
    }

    private static void undo(List<Reservation> taken) {
        for (int i = taken.size() - 1; i >= 0; i--) {
            taken.get(i).cancel();
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
        return members.get(decisive()).decision();
    }

    private int decisive() {
        int decisive = 0;
        for (int i = 0; i < members.size(); i++) {
            if (members.get(i).isRefused()) {
                return i;
            }
            if (members.get(i).waitNanos() > members.get(decisive).waitNanos()) {
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
                members.stream().map(Reservation::awaitAsync).toList();
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

    /** {@inheritDoc} Each limit is charged with all the permits. */
    @Override
    public void settle(long permits) {
        members.forEach(member -> member.settle(permits));
    }

    @Override
    public void release() {
        members.forEach(Reservation::release);
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
