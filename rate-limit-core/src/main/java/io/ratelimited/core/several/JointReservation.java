package io.ratelimited.core.several;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.End;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.internals.Permits;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The permits of several limits that one call has taken, or its rejection. It waits for all of them together. If one limit
 * rejects it meanwhile, or the caller gives up, every limit gets its permits back, and then the caller learns it. Thread-safe.
 */
class JointReservation implements Reservation {

    /** "Never" before every time, and an unknown time behind it. */
    private static final Comparator<Decision> LONGEST_FIRST = Comparator.comparing(
                    (Decision refusal) -> !refusal.never())
            .thenComparing(
                    Decision::retryAfter,
                    Comparator.nullsFirst(Comparator.<Duration>naturalOrder()).reversed())
            .thenComparing(refusal -> refusal.source() == Source.UNAVAILABLE)
            .thenComparing(Decision::limit);

    /**
     * The members, or {@link Ended}: one field, because every call under several limits has it. Written before others can know
     * that the call has ended, so it needs no barrier.
     */
    private Object state;

    /** A call that was rejected. */
    private static final class Ended {

        /** None if it was not admitted. */
        private final Reservation[] members;
        /** Found before the permits were given back. */
        private final @Nullable Decision[] refusals;

        private Ended(Reservation[] members, @Nullable Decision[] refusals) {
            this.members = members;
            this.refusals = refusals;
        }
    }

    JointReservation(Reservation... members) {
        this.state = members;
    }

    /** As {@link AllOf#refused(Decision[])}. */
    JointReservation(@Nullable Decision[] refusals) {
        this.state = new Ended(new Reservation[0], refusals);
    }

    private Reservation[] members() {
        Object now = state; // read once
        return now instanceof Ended ended ? ended.members : (Reservation[]) now;
    }

    /** Cancels reservations, newest first, each of them also if another one fails. */
    static void undo(@Nullable Reservation[] taken) {
        RuntimeException failure = null;
        for (int i = taken.length - 1; i >= 0; i--) {
            Reservation one = taken[i];
            try {
                if (one != null) {
                    one.cancel();
                }
            } catch (RuntimeException ex) {
                failure = ex;
            }
        }
        if (failure != null) {
            throw failure;
        }
    }

    /** Confirms all reservations: the call gives nothing back because of one of them. */
    static void keep(Reservation[] taken) {
        for (Reservation one : taken) {
            one.keep();
        }
    }

    /** The decisions of those that are refused; null if none is. */
    static @Nullable Decision @Nullable [] refusalsOf(Reservation[] members) {
        @Nullable Decision[] refusals = null;
        for (int i = 0; i < members.length; i++) {
            if (members[i].isRefused()) {
                refusals = refusals == null ? new Decision[members.length] : refusals;
                refusals[i] = members[i].decision();
            }
        }
        return refusals;
    }

    /** As {@link AllOf#member}. */
    Reservation member(int claim) {
        Reservation[] members = members();
        return members.length == 0 ? this : members[claim];
    }

    /** A member that is refused before the call waits has not ended the call: {@link #await} does, and gives back the others. */
    @Override
    public boolean isRefused() {
        return state instanceof Ended;
    }

    @Override
    public long waitNanos() {
        long longest = 0;
        for (Reservation member : members()) {
            longest = Math.max(longest, member.waitNanos());
        }
        return longest;
    }

    @Override
    public boolean mayWait() {
        if (isRefused()) {
            return false;
        }
        for (Reservation member : members()) {
            // In this order: one that waits may be refused in between.
            if (member.mayWait() || member.isRefused()) {
                return true;
            }
        }
        return false;
    }

    /** Returns whether two claims take permits of one limit and key. */
    static boolean isSameBudget(Claim one, Claim other) {
        return one.limiter().budgets() == other.limiter().budgets() && isSameKey(one.key(), other.key());
    }

    private static boolean isSameKey(@Nullable Object one, @Nullable Object other) {
        return one == other
                || (one != null && other != null && CanonicalKey.text(one).equals(CanonicalKey.text(other)));
    }

    /** As {@link AllOf#refusals}. */
    @Nullable
    Decision[] refusals() {
        if (state instanceof Ended ended) {
            return ended.refusals.clone();
        }
        Reservation[] members = members();
        @Nullable Decision[] decisions = refusalsOf(members);
        if (decisions != null) {
            return decisions;
        }
        int longest = 0;
        for (int i = 1; i < members.length; i++) {
            longest = members[i].waitNanos() > members[longest].waitNanos() ? i : longest;
        }
        decisions = new Decision[members.length];
        decisions[longest] = members[longest].decision();
        return decisions;
    }

    /** The decision of the longest refusal, else of the longest wait. */
    @Override
    public Decision decision() {
        return longest(refusals());
    }

    static Decision longest(@Nullable Decision[] refusals) {
        return Objects.requireNonNull(refusals[decisive(refusals)]);
    }

    /** As {@link AllOf#decisive}. */
    static int decisive(@Nullable Decision[] refusals) {
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

    @Override
    public boolean await() throws InterruptedException {
        boolean admitted = false;
        try {
            admitted = !isRefused() && awaitAll() && awaitNext();
            return admitted;
        } finally {
            if (!admitted) {
                end();
            }
        }
    }

    /** What follows the wait; true if nothing does. */
    boolean awaitNext() throws InterruptedException {
        return true;
    }

    /** A single wait sleeps in the thread of the caller. Several begin together, so that the first refusal ends all. */
    private boolean awaitAll() throws InterruptedException {
        Reservation waiting = null;
        int waits = 0;
        for (Reservation member : members()) {
            if (member.mayWait()) {
                waiting = member;
                waits++;
            } else if (!member.await()) {
                return false;
            }
        }
        if (waiting == null) {
            return true;
        }
        boolean admitted = waits == 1 ? waiting.await() : awaitTogether();
        if (admitted) {
            waited();
        }
        return admitted;
    }

    /** The wait has let the call go. */
    void waited() {
        keep(members());
    }

    private boolean awaitTogether() throws InterruptedException {
        Waits waits = new Waits(members());
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
        if (isRefused()) {
            return CompletableFuture.completedFuture(false);
        }
        CompletableFuture<Boolean> answer = new CompletableFuture<>();
        answer.whenComplete((admitted, cancellation) -> {
            if (cancellation != null) {
                cancel();
            }
        });
        Waits waits = new Waits(members());
        follow(waits.outcome, waits::stop, answer, () -> goOn(answer));
        return answer;
    }

    /** {@link #awaitNext} without blocking a thread: completes the answer. */
    void goOn(CompletableFuture<Boolean> answer) {
        try {
            keep(members());
            answer.complete(true);
        } catch (RuntimeException | Error ex) {
            fail(answer, ex);
        }
    }

    /** Runs the next step when a wait lets the call go; else gives everything back, and then reports the refusal or failure. */
    final void follow(
            CompletableFuture<Boolean> wait, Runnable stop, CompletableFuture<Boolean> answer, Runnable next) {
        answer.whenComplete((admitted, cancellation) -> stop.run());
        wait.whenComplete((admitted, failure) -> {
            if (failure == null && admitted) {
                next.run();
            } else {
                stop.run();
                fail(answer, failure);
            }
        });
    }

    final void fail(CompletableFuture<Boolean> answer, @Nullable Throwable failure) {
        end();
        if (failure == null) {
            answer.complete(false);
        } else {
            answer.completeExceptionally(failure);
        }
    }

    /** Notes why the call was refused, if it was, and gives everything back. */
    private void end() {
        if (state instanceof Reservation[] members) {
            @Nullable Decision[] refusals = refusalsOf(members);
            if (refusals != null) {
                state = new Ended(members, refusals);
            }
        }
        cancel();
    }

    @Override
    public void cancel() {
        undo(members());
    }

    /** {@inheritDoc} Each limit that counts over time is charged with all the permits. */
    @Override
    public void settle(long permits) {
        settle(permits, true);
    }

    @Override
    public void settle(long permits, boolean mayBlock) {
        settle(members(), permits, mayBlock);
    }

    static void settle(Reservation[] members, long permits, boolean mayBlock) {
        Permits.requireCharge(permits);
        UnsupportedOperationException refusal = null;
        int settled = 0;
        // The newest first, since permits come back while none are reserved behind them.
        for (int i = members.length - 1; i >= 0; i--) {
            try {
                members[i].settle(permits, mayBlock);
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
    public final void release() {
        release(End.ANSWERED);
    }

    @Override
    public void release(End end) {
        RuntimeException failure = null;
        for (Reservation member : members()) {
            try {
                member.release(end);
            } catch (RuntimeException ex) {
                failure = ex;
            }
        }
        if (failure != null) {
            throw failure;
        }
    }

    @Override
    public void awaitCaller() {
        for (Reservation member : members()) {
            member.awaitCaller();
        }
    }

    @Override
    public void callerCame(long nanos) {
        for (Reservation member : members()) {
            member.callerCame(nanos);
        }
    }

    /** The waits of all members, started together. */
    private static final class Waits {

        /** Completes when the last wait has ended, or with the first that refuses the call or fails. */
        private final CompletableFuture<Boolean> outcome = new CompletableFuture<>();

        private final List<CompletableFuture<Boolean>> started = new ArrayList<>();
        private final AtomicInteger left = new AtomicInteger(1);

        /** Waits without a known end begin first: the time of a test, which a timed wait may move, must not pass their ends. */
        private Waits(Reservation[] members) {
            start(members, false);
            start(members, true);
            ended(true, null);
        }

        private void start(Reservation[] members, boolean timed) {
            for (Reservation member : members) {
                if (member.waitNanos() > 0 == timed && !outcome.isDone()) {
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
