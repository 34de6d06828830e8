package io.ratelimited.core.several;

import io.ratelimited.core.Decision;
import io.ratelimited.core.End;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.core.Reservation;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * A call that takes its places after a wait, so that no sleeper holds them: a transaction over the limits for which it waits,
 * then one over all of the places. They are taken in one step, as by a call that need not wait: so no two calls hold places
 * crosswise and wait for each other. Thread-safe.
 */
final class TwoSteps implements Joint {

    /** {@link Later} where the second transaction decides. */
    private final Reservation[] members;

    private final JointReservation first;
    /** What the second transaction has decided. Guarded by this. */
    private @Nullable Reservation second;
    /** Whether the call has ended: what is decided afterwards is given back. Guarded by this. */
    private boolean over;

    private TwoSteps(Reservation[] members) {
        this.members = members;
        this.first = new JointReservation(Arrays.stream(members)
                .filter(member -> !(member instanceof Later))
                .toArray(Reservation[]::new));
    }

    /** The reservation of a call that has taken its permits. */
    static Reservation of(Reservation[] members) {
        for (Reservation member : members) {
            if (member instanceof Later) {
                return new TwoSteps(members);
            }
        }
        return new JointReservation(members);
    }

    private Claim[] claims() {
        return Arrays.stream(members)
                .filter(Later.class::isInstance)
                .map(later -> ((Later) later).claim())
                .toArray(Claim[]::new);
    }

    private synchronized @Nullable Reservation second() {
        return second;
    }

    /** Keeps what the second transaction has decided; false if the call has ended, and all was given back. */
    private boolean keeps(Reservation decided) {
        synchronized (this) {
            if (!over) {
                second = decided;
                return true;
            }
        }
        decided.cancel();
        return false;
    }

    /** Ends the call, and returns what the second transaction has taken. */
    private synchronized @Nullable Reservation end() {
        over = true;
        return second;
    }

    @Override
    public boolean await() throws InterruptedException {
        boolean admitted = false;
        try {
            if (first.await()) {
                Reservation places = AllOf.reserve(claims());
                admitted = keeps(places) && places.await();
            }
            return admitted;
        } finally {
            if (!admitted) {
                cancel();
            }
        }
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        CompletableFuture<Boolean> answer = new CompletableFuture<>();
        answer.whenComplete((admitted, cancellation) -> {
            if (cancellation != null) {
                cancel();
            }
        });
        follow(
                first.awaitAsync(),
                answer,
                () -> AllOf.reserveAsync(claims(), Callbacks.MAY_BLOCK).whenComplete((places, failure) -> {
                    if (failure != null || !keeps(places)) {
                        fail(answer, failure);
                        return;
                    }
                    try {
                        follow(places.awaitAsync(), answer, () -> answer.complete(true));
                    } catch (RuntimeException | Error ex) {
                        fail(answer, ex);
                    }
                }));
        return answer;
    }

    /** Runs the next step when the call may go. */
    private void follow(CompletableFuture<Boolean> wait, CompletableFuture<Boolean> answer, Runnable next) {
        answer.whenComplete((admitted, cancellation) -> wait.cancel(false));
        wait.whenComplete((admitted, failure) -> {
            if (failure == null && admitted) {
                next.run();
            } else {
                fail(answer, failure);
            }
        });
    }

    /** Gives everything back, and then reports the refusal or the failure. */
    private void fail(CompletableFuture<Boolean> answer, @Nullable Throwable failure) {
        cancel();
        if (failure == null) {
            answer.complete(false);
        } else {
            answer.completeExceptionally(failure);
        }
    }

    @Override
    public void cancel() {
        JointReservation.undo(new @Nullable Reservation[] {first, end()});
    }

    @Override
    public void release(End end) {
        Reservation places = end();
        first.release(end);
        if (places != null) {
            places.release(end);
        }
    }

    /** Of the limits that a call waits for in two steps, those with places learn from its time. */
    @Override
    public void awaitCaller() {
        Reservation places = second();
        if (places != null) {
            places.awaitCaller();
        }
    }

    @Override
    public void callerCame(long nanos) {
        Reservation places = second();
        if (places != null) {
            places.callerCame(nanos);
        }
    }

    /** {@inheritDoc} Places cost nothing. */
    @Override
    public void settle(long permits) {
        first.settle(permits);
    }

    @Override
    public void settle(long permits, boolean mayBlock) {
        first.settle(permits, mayBlock);
    }

    @Override
    public Reservation member(int claim) {
        Reservation member = members[claim];
        Reservation places = member instanceof Later ? second() : null;
        return places == null ? member : AllOf.member(places, laterBefore(claim));
    }

    private int laterBefore(int claim) {
        int before = 0;
        for (int i = 0; i < claim; i++) {
            before += members[i] instanceof Later ? 1 : 0;
        }
        return before;
    }

    @Override
    public @Nullable Decision[] refusals() {
        Reservation places = second();
        @Nullable Decision[] own = AllOf.refusals(places == null ? first : places);
        @Nullable Decision[] all = new Decision[members.length];
        int next = 0;
        for (int i = 0; i < members.length; i++) {
            if (members[i] instanceof Later == (places != null)) {
                all[i] = own[next++];
            }
        }
        return all;
    }

    @Override
    public boolean isRefused() {
        Reservation places = second();
        return places == null ? first.isRefused() : places.isRefused();
    }

    @Override
    public long waitNanos() {
        return first.waitNanos();
    }

    @Override
    public boolean mayWait() {
        return !isRefused();
    }

    /** {@inheritDoc} Before the places are decided, that of the limit for which the call waits. */
    @Override
    public Decision decision() {
        return isRefused() ? Joint.super.decision() : first.decision();
    }
}
