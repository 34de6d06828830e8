package io.ratelimited.core.several;

import io.ratelimited.core.Decision;
import io.ratelimited.core.End;
import io.ratelimited.core.Permits;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.core.Reservation;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The reservations of several limits for one call, which waits for all of them together. If one limit refuses the call or is
 * cancelled, every limit gets its permits back, and the caller learns it at once. Places that are asked for
 * {@link LaterPlace later} come last. Thread-safe.
 */
class JointReservation implements Reservation {

    private final Reservation[] members;

    JointReservation(Reservation... members) {
        this.members = members;
    }

    /** As {@link AllOf#refused}. A class of its own, so that an admitted call has no fields that it never needs. */
    static JointReservation refused(@Nullable Decision[] refusals) {
        return new JointReservation() {
            @Override
            @Nullable
            Decision @Nullable [] refused() {
                return refusals;
            }
        };
    }

    /** Refusals of a call that has taken nothing; null if the call was admitted. */
    @Nullable
    Decision @Nullable [] refused() {
        return null;
    }

    Reservation member(int claim) {
        return refused() == null ? members[claim] : this;
    }

    /** Cancels the reservations, newest first. */
    static void undo(@Nullable Reservation[] taken) {
        for (int i = taken.length - 1; i >= 0; i--) {
            Reservation one = taken[i];
            if (one != null) {
                one.cancel();
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
        return refused() != null;
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

    /** The decision of the longest refusal, else of the longest wait. */
    @Override
    public Decision decision() {
        @Nullable Decision[] decisions = refusals();
        return Objects.requireNonNull(decisions[AllOf.decisive(decisions)]);
    }

    /** As {@link AllOf#refusals}. */
    @Nullable
    Decision[] refusals() {
        @Nullable Decision[] refusals = refused();
        if (refusals != null) {
            return refusals.clone();
        }
        @Nullable Decision[] decisions = new Decision[members.length];
        int longest = 0;
        for (int i = 0; i < members.length; i++) {
            decisions[i] = members[i].isRefused() ? members[i].decision() : null;
            longest = members[i].waitNanos() > members[longest].waitNanos() ? i : longest;
        }
        if (!isRefused()) {
            decisions[longest] = members[longest].decision();
        }
        return decisions;
    }

    @Override
    public boolean await() throws InterruptedException {
        if (refused() != null) {
            return false;
        }
        boolean admitted = false;
        try {
            admitted = await(false);
            if (admitted && hasLaterPlaces()) {
                decided(AllOf.reserve(laterClaims()));
                admitted = await(true);
            }
            return admitted;
        } finally {
            if (!admitted) {
                cancel();
            }
        }
    }

    /** A single wait sleeps in the thread of the caller. Several begin together, so that the first refusal ends all. */
    private boolean await(boolean later) throws InterruptedException {
        Reservation waiting = null;
        boolean several = false;
        for (Reservation member : members) {
            if (member instanceof LaterPlace != later) {
                continue;
            }
            if (!member.mayWait()) {
                if (!member.await()) {
                    return false;
                }
            } else {
                several = waiting != null;
                waiting = member;
            }
        }
        return waiting == null || (several ? awaitTogether(later) : waiting.await());
    }

    private boolean awaitTogether(boolean later) throws InterruptedException {
        Waits waits = new Waits(members, later);
        try {
            return waits.outcome.get();
        } catch (ExecutionException ex) {
            if (ex.getCause() instanceof RuntimeException failure) {
                throw failure;
            }
            throw new IllegalStateException(ex.getCause());
        } finally {
            waits.stop();
        }
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        if (refused() != null) {
            return CompletableFuture.completedFuture(false);
        }
        CompletableFuture<Boolean> answer = new CompletableFuture<>();
        awaitAsync(false, answer);
        answer.whenComplete((admitted, cancellation) -> {
            if (cancellation != null) {
                cancel();
            }
        });
        return answer;
    }

    private void awaitAsync(boolean later, CompletableFuture<Boolean> answer) {
        Waits waits = new Waits(members, later);
        answer.whenComplete((admitted, cancellation) -> waits.stop());
        waits.outcome.whenComplete((admitted, failure) -> {
            if (failure != null || !admitted) {
                waits.stop();
                end(answer, failure);
            } else if (later || !hasLaterPlaces()) {
                answer.complete(true);
            } else {
                takePlaces(answer);
            }
        });
    }

    private void takePlaces(CompletableFuture<Boolean> answer) {
        AllOf.reserveAsync(laterClaims(), Callbacks.MAY_BLOCK).whenComplete((places, failed) -> {
            if (failed == null) {
                decided(places);
                awaitAsync(true, answer);
            } else {
                end(answer, failed);
            }
        });
    }

    /**
     * The claims to all later places. They are taken in one step, as by a call that need not wait: so no two calls hold
     * places crosswise and wait for each other.
     */
    private Claim[] laterClaims() {
        return Arrays.stream(members)
                .filter(LaterPlace.class::isInstance)
                .map(place -> ((LaterPlace) place).claim())
                .toArray(Claim[]::new);
    }

    /** @param places the reservation of {@link #laterClaims} */
    private void decided(Reservation places) {
        @Nullable Decision[] refusals = places.isRefused() ? AllOf.refusals(places) : null;
        int next = 0;
        for (Reservation member : members) {
            if (member instanceof LaterPlace place) {
                int claim = next++;
                if (refusals == null) {
                    place.decided(AllOf.member(places, claim));
                } else if (refusals[claim] != null) {
                    place.decided(refused(new Decision[] {refusals[claim]}));
                }
            }
        }
    }

    private boolean hasLaterPlaces() {
        for (Reservation member : members) {
            if (member instanceof LaterPlace) {
                return true;
            }
        }
        return false;
    }

    /** Gives everything back, and then reports the refusal or the failure. */
    private void end(CompletableFuture<Boolean> answer, @Nullable Throwable failure) {
        cancel();
        if (failure != null) {
            answer.completeExceptionally(failure);
        } else {
            answer.complete(false);
        }
    }

    @Override
    public void cancel() {
        undo(members);
    }

    /** {@inheritDoc} Each limit that counts over time is charged with all the permits. */
    @Override
    public void settle(long permits) {
        settle(permits, true);
    }

    @Override
    public void settle(long permits, boolean mayBlock) {
        Permits.requireCharge(permits);
        UnsupportedOperationException refusal = null;
        int settled = 0;
        for (Reservation member : members) {
            try {
                member.settle(permits, mayBlock);
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
        release(End.ANSWERED);
    }

    @Override
    public void release(End end) {
        for (Reservation member : members) {
            member.release(end);
        }
    }

    /** The waits of all later places or of all other members, started together. */
    private static final class Waits {

        /** Completes when the last wait has ended, or with the first that refuses the call or fails. */
        private final CompletableFuture<Boolean> outcome = new CompletableFuture<>();

        private final List<CompletableFuture<Boolean>> started = new ArrayList<>();
        private final AtomicInteger left = new AtomicInteger(1);

        /** Waits without a known end begin first: the time of a test, which a timed wait may move, must not pass their ends. */
        private Waits(Reservation[] members, boolean later) {
            start(members, later, false);
            start(members, later, true);
            ended(true, null);
        }

        private void start(Reservation[] members, boolean later, boolean timed) {
            for (Reservation member : members) {
                if (member instanceof LaterPlace == later && member.waitNanos() > 0 == timed && !outcome.isDone()) {
                    left.incrementAndGet();
                    try {
                        CompletableFuture<Boolean> wait = member.awaitAsync();
                        started.add(wait);
                        wait.whenComplete(this::ended);
                    } catch (RuntimeException | Error ex) {
                        ended(false, ex);
                    }
                }
            }
        }

        private void ended(@Nullable Boolean admitted, @Nullable Throwable failure) {
            if (failure != null) {
                outcome.completeExceptionally(failure);
            } else if (!Boolean.TRUE.equals(admitted)) {
                outcome.complete(false);
            } else if (left.decrementAndGet() == 0) {
                outcome.complete(true);
            }
        }

        private void stop() {
            started.forEach(wait -> wait.cancel(false));
        }
    }
}
