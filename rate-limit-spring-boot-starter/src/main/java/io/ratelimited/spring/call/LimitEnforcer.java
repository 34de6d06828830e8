package io.ratelimited.spring.call;

import io.ratelimited.core.AllOf;
import io.ratelimited.core.Claim;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.spring.CurrentRequest;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.Outcome;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * Decides whether a call may go: asks its limits, applies their policies, waits where a policy allows it, and reports
 * each decision to the observers and to the current request. Thread-safe.
 */
public final class LimitEnforcer {

    private static final Log LOG = LogFactory.getLog(LimitEnforcer.class);

    private final List<DecisionObserver> observers;
    private final Ticker ticker;
    private final ContextPropagatingExecutor executor;
    /** Names of the limits under WAIT that have refused a call on an event loop. */
    private final Set<String> refusedOnEventLoops = ConcurrentHashMap.newKeySet();

    /**
     * Makes an enforcer.
     *
     * @param executor runs calls that had to wait without a thread
     */
    public LimitEnforcer(List<DecisionObserver> observers, Ticker ticker, ContextPropagatingExecutor executor) {
        this.observers = List.copyOf(observers);
        this.ticker = ticker;
        this.executor = executor;
    }

    /** The time that waits are measured by. */
    public Ticker ticker() {
        return ticker;
    }

    /** Runs calls that had to wait without a thread. */
    ContextPropagatingExecutor executor() {
        return executor;
    }

    /** Whether there are no observers, so that no decision has to be described. */
    public boolean isUnobserved() {
        return observers.isEmpty();
    }

    /**
     * Returns when the call may go. Never sleeps on an event loop: a call that would have to wait there is refused.
     *
     * @throws RateLimitExceededException when it is refused
     * @throws CancellationException when interrupted while it waits; the permits are given back and the flag is set
     */
    public Admission enter(List<LimitRequest> requests, @Nullable CurrentRequest current) {
        Admission admission = new Admission(requests, current);
        if (!admission.enforced.isEmpty()) {
            enter(admission);
        }
        if (!admission.shadows.isEmpty()) {
            admission.reserveShadows(claim -> CompletableFuture.completedFuture(claim.reserve()));
        }
        return admission;
    }

    private void enter(Admission admission) {
        admission.requireKeys();
        boolean maySleep = !admission.waits || !EventLoops.isCurrentThread();
        Reservation reservation = AllOf.reserve(admission.claims(maySleep));
        long waited = 0;
        try {
            if (reservation.mayWait()) {
                long before = ticker.nanos();
                if (!reservation.await()) {
                    throw admission.refused(reservation);
                }
                waited = ticker.nanos() - before;
            } else if (reservation.isRefused()) {
                if (!maySleep) {
                    admission.warnOfEventLoop(reservation.decision());
                }
                throw admission.refused(reservation);
            }
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
            throw interrupted(admission, ex);
        }
        admission.admitted(reservation, waited);
    }

    private static CancellationException interrupted(Admission admission, InterruptedException cause) {
        CancellationException exception = new CancellationException("interrupted while waiting for rate limit '"
                + admission.enforced.get(0).limit().name() + "'");
        exception.initCause(cause);
        return exception;
    }

    /**
     * {@link #enter} without blocking. The future fails with the exception. Cancelling it gives the permits back, even
     * after the call was admitted.
     */
    public CompletableFuture<Admission> enterAsync(List<LimitRequest> requests, @Nullable CurrentRequest current) {
        Admission admission = new Admission(requests, current);
        CompletableFuture<Admission> entered = new CompletableFuture<>();
        if (admission.enforced.isEmpty()) {
            admission.letIn(entered);
            return entered;
        }
        try {
            admission.requireKeys();
        } catch (RateLimitExceededException refusal) {
            return CompletableFuture.failedFuture(refusal);
        }
        AllOf.reserveAsync(admission.claims(true)).whenComplete((reservation, failure) -> {
            if (failure != null) {
                entered.completeExceptionally(failure);
            } else if (reservation.mayWait()) {
                admission.await(reservation, entered);
            } else {
                admission.decided(reservation, !reservation.isRefused(), 0, entered);
            }
        });
        return entered;
    }

    /** Reports the refusal of a call outside a web request, and makes its exception. */
    public RateLimitExceededException refused(LimitRequest request, Decision decision) {
        report(request.limit(), Outcome.REJECTED, request.key(), 0, () -> decision);
        return new RateLimitExceededException(decision);
    }

    /** {@link #enterAsync} with another result. */
    public <T> CompletableFuture<T> enterAsync(
            List<LimitRequest> requests, @Nullable CurrentRequest current, Function<Admission, ? extends T> result) {
        CompletableFuture<Admission> entered = enterAsync(requests, current);
        CompletableFuture<T> mapped = new CompletableFuture<>();
        entered.whenComplete((admission, refusal) -> {
            if (refusal != null) {
                mapped.completeExceptionally(refusal);
            } else if (!mapped.complete(result.apply(admission))) {
                admission.cancel();
            }
        });
        mapped.whenComplete((ignored, cancellation) -> {
            if (cancellation != null) {
                entered.cancel(false);
            }
        });
        return mapped;
    }

    /** Reports a decision to the observers. The failure of an observer is logged and does not fail the call. */
    public void report(
            NamedLimit limit, Outcome outcome, @Nullable Object key, long waitedNanos, Supplier<Decision> decision) {
        for (DecisionObserver observer : observers) {
            try {
                observer.onDecision(limit, outcome, key, waitedNanos, decision);
            } catch (RuntimeException ex) {
                LOG.warn(
                        "Rate limit '" + limit.name() + "': "
                                + observer.getClass().getName() + " failed",
                        ex);
            }
        }
    }

    /** The admission of one call: holds its reservations until the call ends. */
    public final class Admission {

        private final List<LimitRequest> enforced = new ArrayList<>(2);
        private final List<LimitRequest> shadows = new ArrayList<>(0);
        private final List<Reservation> held = new ArrayList<>(1);
        private final @Nullable CurrentRequest current;
        private boolean countsInFlight;
        private boolean waits;

        private Admission(List<LimitRequest> requests, @Nullable CurrentRequest current) {
            this.current = current;
            for (LimitRequest request : requests) {
                (request.limit().policy() == Policy.SHADOW ? shadows : enforced).add(request);
                countsInFlight |= request.limit().countsInFlight();
                waits |= request.limit().policy() == Policy.WAIT;
            }
        }

        /** Refuses a call without a key if a limit denies such calls. */
        private void requireKeys() {
            for (int i = 0; i < enforced.size(); i++) {
                if (enforced.get(i).denied()) {
                    throw refused(i, enforced.get(i).denial());
                }
            }
        }

        private List<Claim> claims(boolean maySleep) {
            List<Claim> claims = new ArrayList<>(enforced.size());
            for (LimitRequest request : enforced) {
                claims.add(maySleep ? request.claim() : request.claimAtOnce());
            }
            return claims;
        }

        /** Warns once for each limit that WAIT cannot apply on an event loop. */
        private void warnOfEventLoop(Decision decision) {
            for (LimitRequest request : enforced) {
                NamedLimit limit = request.limit();
                if (limit.name().equals(decision.limit())
                        && limit.policy() == Policy.WAIT
                        && refusedOnEventLoops.add(limit.name())) {
                    LOG.warn(
                            "Rate limit '" + limit.name() + "' (" + limit.place() + ") has the policy WAIT, but thread "
                                    + Thread.currentThread().getName()
                                    + " is an event loop and must not sleep: its calls over the limit are refused at once."
                                    + " Return a Mono, a Flux or a CompletableFuture from the limited method, or call it on"
                                    + " Schedulers.boundedElastic(), or use the policy REJECT.");
                }
            }
        }

        private void await(Reservation reservation, CompletableFuture<Admission> entered) {
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
                Reservation reservation, boolean admitted, long waitedNanos, CompletableFuture<Admission> entered) {
            if (entered.isCancelled()) {
                reservation.cancel();
            } else if (!admitted) {
                entered.completeExceptionally(refused(reservation));
            } else {
                admitted(reservation, waitedNanos);
                letIn(entered);
            }
        }

        /** Asks the shadow limits without blocking, then completes the future. */
        private void letIn(CompletableFuture<Admission> entered) {
            reserveShadows(claim -> AllOf.reserveAsync(List.of(claim))).thenAccept(admission -> {
                if (!entered.complete(admission)) {
                    cancel();
                }
            });
        }

        private void admitted(Reservation reservation, long waitedNanos) {
            held.add(reservation);
            List<Reservation> members = AllOf.members(reservation);
            for (int i = 0; i < members.size(); i++) {
                Reservation member = members.get(i);
                boolean delayed = member.waitNanos() > 0 || (waitedNanos > 0 && member.mayWait());
                reportOf(
                        enforced.get(i),
                        delayed ? Outcome.DELAYED : Outcome.ADMITTED,
                        delayed ? waitedNanos : 0,
                        member::decision);
            }
        }

        /** Asks the shadow limits one after the other; the call goes whatever they decide. */
        private CompletionStage<Admission> reserveShadows(Function<Claim, CompletionStage<Reservation>> reserving) {
            CompletionStage<Admission> reserved = CompletableFuture.completedFuture(this);
            for (LimitRequest shadow : shadows) {
                reserved = shadow.denied()
                        ? reserved.whenComplete(
                                (admission, none) -> reportOf(shadow, Outcome.SHADOWED, 0, shadow::denial))
                        : reserved.thenCompose(admission -> reserving.apply(shadow.claim()))
                                .handle((member, failure) -> {
                                    shadowed(shadow, member, failure);
                                    return this;
                                });
            }
            return reserved;
        }

        private void shadowed(LimitRequest shadow, @Nullable Reservation member, @Nullable Throwable failure) {
            if (member == null) {
                LOG.warn("Rate limit '" + shadow.limit().name() + "' could not count a call: " + failure);
                return;
            }
            held.add(member);
            reportOf(shadow, member.isRefused() ? Outcome.SHADOWED : Outcome.ADMITTED, 0, member::decision);
        }

        private RateLimitExceededException refused(Reservation reservation) {
            return refused(AllOf.refusedClaim(reservation), reservation.decision());
        }

        /** @param position of the request that was refused: one limit may be asked for several keys */
        private RateLimitExceededException refused(int position, Decision decision) {
            for (int i = 0; i < enforced.size(); i++) {
                LimitRequest request = enforced.get(i);
                if (i == position) {
                    reportOf(request, Outcome.REJECTED, 0, () -> decision);
                } else if (current != null) {
                    current.applies(request.limit(), request.limiter().limit());
                }
            }
            return new RateLimitExceededException(decision);
        }

        private void reportOf(LimitRequest request, Outcome outcome, long waitedNanos, Supplier<Decision> decision) {
            LimitEnforcer.this.report(request.limit(), outcome, request.key(), waitedNanos, decision);
            if (current != null) {
                reportTo(current, request, outcome, decision);
                String once = request.once();
                if (once != null && outcome != Outcome.REJECTED) {
                    current.charged(once);
                }
            }
        }

        /** A failure to report to the request is logged and does not fail the call. */
        private static void reportTo(
                CurrentRequest current, LimitRequest request, Outcome outcome, Supplier<Decision> decision) {
            try {
                current.decided(request.limit(), request.limiter().limit(), outcome, decision);
            } catch (RuntimeException ex) {
                LOG.warn(
                        "Rate limit '" + request.limit().name() + "': a decision could not be reported to the request",
                        ex);
            }
        }

        /** The call has ended: calls in flight no longer count. */
        public void end() {
            held.forEach(Reservation::release);
        }

        /** The call has returned: it ends now, or with the stage or the response that its result is for. */
        public void endWith(@Nullable Object result) {
            if (!countsInFlight || result == null) {
                end();
            } else if (result instanceof CompletionStage<?> stage) {
                stage.whenComplete((value, failure) -> endWith(value));
            } else if (current == null || !current.endsWith(result, this::end)) {
                end();
            }
        }

        /** Whether the call counts as long as it is in flight. */
        public boolean countsInFlight() {
            return countsInFlight;
        }

        /** The call is not made: gives its permits back. */
        public void cancel() {
            held.forEach(Reservation::cancel);
        }
    }
}
