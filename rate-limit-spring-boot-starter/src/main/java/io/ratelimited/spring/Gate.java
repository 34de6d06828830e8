package io.ratelimited.spring;

import io.ratelimited.core.AllOf;
import io.ratelimited.core.Claim;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * From the limits that a call is subject to, to the call's going or not: asks them, applies their policies, waits where
 * one says so, and tells observers and the current request. Thread-safe.
 */
final class Gate {

    private final List<DecisionObserver> observers;
    private final Ticker ticker;
    private final LateStart lateStart;

    /** @param lateStart where calls go on that had to wait without a thread */
    Gate(List<DecisionObserver> observers, Ticker ticker, LateStart lateStart) {
        this.observers = List.copyOf(observers);
        this.ticker = ticker;
        this.lateStart = lateStart;
    }

    LateStart lateStart() {
        return lateStart;
    }

    /** Whether nobody wants to know of decisions, so that none has to be described. */
    boolean isUnobserved() {
        return observers.isEmpty();
    }

    /**
     * Returns when the call may go.
     *
     * @throws RateLimitExceededException when it is refused
     * @throws CancellationException when interrupted while it waits: the permits are given back, the flag is set
     */
    Pass enter(List<Ask> asks, @Nullable CurrentRequest request) {
        Pass pass = new Pass(asks, request);
        if (pass.enforced.isEmpty()) {
            return pass.admitted(null, 0);
        }
        pass.requireKeys();
        Reservation reservation = AllOf.reserve(pass.claims());
        long waited = 0;
        try {
            if (reservation.mayWait()) {
                long before = ticker.nanos();
                if (!reservation.await()) {
                    throw pass.refused(reservation.decision());
                }
                waited = ticker.nanos() - before;
            } else if (reservation.isRefused()) {
                throw pass.refused(reservation.decision());
            }
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
            throw interrupted(pass, ex);
        }
        return pass.admitted(reservation, waited);
    }

    private static CancellationException interrupted(Pass pass, InterruptedException cause) {
        CancellationException exception = new CancellationException("interrupted while waiting for rate limit '"
                + pass.enforced.get(0).limit().name() + "'");
        exception.initCause(cause);
        return exception;
    }

    /**
     * {@link #enter} without a thread. The future fails with the exception; cancelling it gives the permits back, also
     * after the call was let in.
     */
    CompletableFuture<Pass> enterAsync(List<Ask> asks, @Nullable CurrentRequest request) {
        Pass pass = new Pass(asks, request);
        if (pass.enforced.isEmpty()) {
            return CompletableFuture.completedFuture(pass.admitted(null, 0));
        }
        CompletableFuture<Pass> entered = new CompletableFuture<>();
        try {
            pass.requireKeys();
        } catch (RateLimitExceededException refusal) {
            return CompletableFuture.failedFuture(refusal);
        }
        AllOf.reserveAsync(pass.claims()).whenComplete((reservation, failure) -> {
            if (failure != null) {
                entered.completeExceptionally(failure);
            } else if (reservation.mayWait()) {
                pass.await(reservation, entered);
            } else {
                pass.decided(reservation, !reservation.isRefused(), 0, entered);
            }
        });
        return entered;
    }

    /** Tells of a decision that was made elsewhere. */
    void tell(NamedLimit limit, Outcome outcome, @Nullable Object key, long waitedNanos, Supplier<Decision> decision) {
        for (DecisionObserver observer : observers) {
            observer.onDecision(limit, outcome, key, waitedNanos, decision);
        }
    }

    /** A call on its way: first the limits it is subject to, then, once it is let in, what has to end with it. */
    final class Pass {

        private final List<Ask> enforced = new ArrayList<>(2);
        private final List<Ask> shadows = new ArrayList<>(0);
        private final List<Reservation> held = new ArrayList<>(1);
        private final @Nullable CurrentRequest request;

        private Pass(List<Ask> asks, @Nullable CurrentRequest request) {
            this.request = request;
            for (Ask ask : asks) {
                (ask.limit().policy() == Policy.SHADOW ? shadows : enforced).add(ask);
            }
        }

        /** Refuses a call without a key that a limit demands. */
        private void requireKeys() {
            for (Ask ask : enforced) {
                if (ask.denied()) {
                    throw refused(new Decision(
                            ask.limit().name(),
                            false,
                            Duration.ZERO,
                            null,
                            true,
                            0,
                            Duration.ZERO,
                            Decision.Source.MEMORY));
                }
            }
        }

        private List<Claim> claims() {
            List<Claim> claims = new ArrayList<>(enforced.size());
            for (Ask ask : enforced) {
                claims.add(ask.claim());
            }
            return claims;
        }

        private void await(Reservation reservation, CompletableFuture<Pass> entered) {
            long before = ticker.nanos();
            CompletableFuture<Boolean> turn = reservation.awaitAsync();
            entered.whenComplete((ignored, cancellation) -> {
                if (cancellation != null) {
                    turn.cancel(false);
                    reservation.cancel();
                }
            });
            turn.whenComplete((admitted, interruption) -> {
                if (interruption != null) {
                    entered.completeExceptionally(interruption);
                } else {
                    decided(reservation, admitted, ticker.nanos() - before, entered);
                }
            });
        }

        private void decided(
                Reservation reservation, boolean admitted, long waitedNanos, CompletableFuture<Pass> entered) {
            if (entered.isCancelled()) {
                reservation.cancel();
            } else if (!admitted) {
                entered.completeExceptionally(refused(reservation.decision()));
            } else if (!entered.complete(admitted(reservation, waitedNanos))) {
                cancel();
            }
        }

        private Pass admitted(@Nullable Reservation reservation, long waitedNanos) {
            if (reservation != null) {
                held.add(reservation);
                List<Reservation> members = AllOf.members(reservation);
                for (int i = 0; i < members.size(); i++) {
                    Reservation member = members.get(i);
                    boolean delayed = member.waitNanos() > 0 || (waitedNanos > 0 && member.mayWait());
                    tellOf(
                            enforced.get(i),
                            delayed ? Outcome.DELAYED : Outcome.ADMITTED,
                            delayed ? waitedNanos : 0,
                            member::decision);
                }
            }
            for (Ask shadow : shadows) {
                Reservation member = shadow.limiter().reserve(shadow.key(), shadow.permits(), 0);
                held.add(member);
                tellOf(shadow, member.isRefused() ? Outcome.SHADOWED : Outcome.ADMITTED, 0, member::decision);
            }
            return this;
        }

        private RateLimitExceededException refused(Decision decision) {
            boolean told = false;
            for (Ask ask : enforced) {
                if (!told && ask.limiter().limit().name().equals(decision.limit())) {
                    tellOf(ask, Outcome.REJECTED, 0, () -> decision);
                    told = true;
                } else if (request != null) {
                    request.applies(ask.limit(), ask.limiter().limit());
                }
            }
            return new RateLimitExceededException(decision);
        }

        private void tellOf(Ask ask, Outcome outcome, long waitedNanos, Supplier<Decision> decision) {
            tell(ask.limit(), outcome, ask.key(), waitedNanos, decision);
            if (request != null) {
                request.decided(ask.limit(), ask.limiter().limit(), outcome, decision);
            }
        }

        /** The call has ended: calls in flight no longer count. */
        void end() {
            held.forEach(Reservation::release);
        }

        /** The call has returned: it ends now, or with the stage that it returned. */
        void endWith(@Nullable Object result) {
            if (result instanceof CompletionStage<?> stage && countsInFlight()) {
                stage.whenComplete((value, failure) -> end());
            } else {
                end();
            }
        }

        boolean countsInFlight() {
            return Stream.concat(enforced.stream(), shadows.stream())
                    .anyMatch(ask -> ask.limit().countsInFlight());
        }

        /** The call will not be made: gives back what can be given back. */
        void cancel() {
            held.forEach(Reservation::cancel);
        }
    }
}
