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
 * From the limits that a call is subject to, to the call's going or not: asks them, applies their policies, waits where
 * one says so, and tells observers and the current request. Thread-safe.
 */
public final class LimitEnforcer {

    private static final Log LOG = LogFactory.getLog(LimitEnforcer.class);

    private final List<DecisionObserver> observers;
    private final Ticker ticker;
    private final ContextPropagatingExecutor lateStart;
    /** Names of the limits under WAIT that have refused a call on an event loop. */
    private final Set<String> refusedOnEventLoops = ConcurrentHashMap.newKeySet();

    /** @param lateStart where calls go on that had to wait without a thread */
    public LimitEnforcer(List<DecisionObserver> observers, Ticker ticker, ContextPropagatingExecutor lateStart) {
        this.observers = List.copyOf(observers);
        this.ticker = ticker;
        this.lateStart = lateStart;
    }

    public Ticker ticker() {
        return ticker;
    }

    ContextPropagatingExecutor lateStart() {
        return lateStart;
    }

    /** Whether nobody wants to know of decisions, so that none has to be described. */
    public boolean isUnobserved() {
        return observers.isEmpty();
    }

    /**
     * Returns when the call may go. Never sleeps on an event loop: what would have to wait there is refused.
     *
     * @throws RateLimitExceededException when it is refused
     * @throws CancellationException when interrupted while it waits: the permits are given back, the flag is set
     */
    public Pass enter(List<LimitRequest> asks, @Nullable CurrentRequest request) {
        Pass pass = new Pass(asks, request);
        if (!pass.enforced.isEmpty()) {
            enter(pass);
        }
        if (!pass.shadows.isEmpty()) {
            pass.askShadows(claim -> CompletableFuture.completedFuture(claim.reserve()));
        }
        return pass;
    }

    private void enter(Pass pass) {
        pass.requireKeys();
        boolean maySleep = !pass.waits || !EventLoops.isCurrentThread();
        Reservation reservation = AllOf.reserve(pass.claims(maySleep));
        long waited = 0;
        try {
            if (reservation.mayWait()) {
                long before = ticker.nanos();
                if (!reservation.await()) {
                    throw pass.refused(reservation);
                }
                waited = ticker.nanos() - before;
            } else if (reservation.isRefused()) {
                if (!maySleep) {
                    pass.warnOfEventLoop(reservation.decision());
                }
                throw pass.refused(reservation);
            }
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
            throw interrupted(pass, ex);
        }
        pass.admitted(reservation, waited);
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
    public CompletableFuture<Pass> enterAsync(List<LimitRequest> asks, @Nullable CurrentRequest request) {
        Pass pass = new Pass(asks, request);
        CompletableFuture<Pass> entered = new CompletableFuture<>();
        if (pass.enforced.isEmpty()) {
            pass.letIn(entered);
            return entered;
        }
        try {
            pass.requireKeys();
        } catch (RateLimitExceededException refusal) {
            return CompletableFuture.failedFuture(refusal);
        }
        AllOf.reserveAsync(pass.claims(true)).whenComplete((reservation, failure) -> {
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

    /** The refusal of a call that was decided elsewhere and has no request. */
    public RateLimitExceededException refused(LimitRequest ask, Decision decision) {
        tell(ask.limit(), Outcome.REJECTED, ask.key(), 0, () -> decision);
        return new RateLimitExceededException(decision);
    }

    /** {@link #enterAsync} for a caller that makes something else of the pass. */
    public <T> CompletableFuture<T> enterAsync(
            List<LimitRequest> asks, @Nullable CurrentRequest request, Function<Pass, ? extends T> result) {
        CompletableFuture<Pass> entered = enterAsync(asks, request);
        CompletableFuture<T> mapped = new CompletableFuture<>();
        entered.whenComplete((pass, refusal) -> {
            if (refusal != null) {
                mapped.completeExceptionally(refusal);
            } else if (!mapped.complete(result.apply(pass))) {
                pass.cancel();
            }
        });
        mapped.whenComplete((ignored, cancellation) -> {
            if (cancellation != null) {
                entered.cancel(false);
            }
        });
        return mapped;
    }

    /** Tells of a decision that was made elsewhere. An observer that fails is none of the call's business. */
    public void tell(
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

    /** A call on its way: first the limits it is subject to, then, once it is let in, what has to end with it. */
    public final class Pass {

        private final List<LimitRequest> enforced = new ArrayList<>(2);
        private final List<LimitRequest> shadows = new ArrayList<>(0);
        private final List<Reservation> held = new ArrayList<>(1);
        private final @Nullable CurrentRequest request;
        private boolean countsInFlight;
        private boolean waits;

        private Pass(List<LimitRequest> asks, @Nullable CurrentRequest request) {
            this.request = request;
            for (LimitRequest ask : asks) {
                (ask.limit().policy() == Policy.SHADOW ? shadows : enforced).add(ask);
                countsInFlight |= ask.limit().countsInFlight();
                waits |= ask.limit().policy() == Policy.WAIT;
            }
        }

        /** Refuses a call without a key that a limit demands. */
        private void requireKeys() {
            for (int i = 0; i < enforced.size(); i++) {
                if (enforced.get(i).denied()) {
                    throw refused(i, enforced.get(i).denial());
                }
            }
        }

        private List<Claim> claims(boolean maySleep) {
            List<Claim> claims = new ArrayList<>(enforced.size());
            for (LimitRequest ask : enforced) {
                claims.add(maySleep ? ask.claim() : ask.claimAtOnce());
            }
            return claims;
        }

        /** Reports, once a limit, that its policy cannot be kept where the call comes from. */
        private void warnOfEventLoop(Decision decision) {
            for (LimitRequest ask : enforced) {
                NamedLimit limit = ask.limit();
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
                entered.completeExceptionally(refused(reservation));
            } else {
                admitted(reservation, waitedNanos);
                letIn(entered);
            }
        }

        /** Without a thread that waits for the backend of a limit that only counts. */
        private void letIn(CompletableFuture<Pass> entered) {
            askShadows(claim -> AllOf.reserveAsync(List.of(claim))).thenAccept(pass -> {
                if (!entered.complete(pass)) {
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
                tellOf(
                        enforced.get(i),
                        delayed ? Outcome.DELAYED : Outcome.ADMITTED,
                        delayed ? waitedNanos : 0,
                        member::decision);
            }
        }

        /** Asks the limits that only count, one after the other, for a call that goes whatever they say. */
        private CompletionStage<Pass> askShadows(Function<Claim, CompletionStage<Reservation>> asking) {
            CompletionStage<Pass> asked = CompletableFuture.completedFuture(this);
            for (LimitRequest shadow : shadows) {
                asked = shadow.denied()
                        ? asked.whenComplete((pass, none) -> tellOf(shadow, Outcome.SHADOWED, 0, shadow::denial))
                        : asked.thenCompose(pass -> asking.apply(shadow.claim()))
                                .handle((member, failure) -> {
                                    shadowed(shadow, member, failure);
                                    return this;
                                });
            }
            return asked;
        }

        private void shadowed(LimitRequest shadow, @Nullable Reservation member, @Nullable Throwable failure) {
            if (member == null) {
                LOG.warn("Rate limit '" + shadow.limit().name() + "' could not count a call: " + failure);
                return;
            }
            held.add(member);
            tellOf(shadow, member.isRefused() ? Outcome.SHADOWED : Outcome.ADMITTED, 0, member::decision);
        }

        private RateLimitExceededException refused(Reservation reservation) {
            return refused(AllOf.refusedClaim(reservation), reservation.decision());
        }

        /** @param position of the limit that refuses; a limit may be asked for several keys */
        private RateLimitExceededException refused(int position, Decision decision) {
            for (int i = 0; i < enforced.size(); i++) {
                LimitRequest ask = enforced.get(i);
                if (i == position) {
                    tellOf(ask, Outcome.REJECTED, 0, () -> decision);
                } else if (request != null) {
                    request.applies(ask.limit(), ask.limiter().limit());
                }
            }
            return new RateLimitExceededException(decision);
        }

        private void tellOf(LimitRequest ask, Outcome outcome, long waitedNanos, Supplier<Decision> decision) {
            tell(ask.limit(), outcome, ask.key(), waitedNanos, decision);
            if (request != null) {
                report(request, ask, outcome, decision);
                String once = ask.once();
                if (once != null && outcome != Outcome.REJECTED) {
                    request.charged(once);
                }
            }
        }

        /** A request that cannot be written to is none of the call's business. */
        private static void report(
                CurrentRequest request, LimitRequest ask, Outcome outcome, Supplier<Decision> decision) {
            try {
                request.decided(ask.limit(), ask.limiter().limit(), outcome, decision);
            } catch (RuntimeException ex) {
                LOG.warn("Rate limit '" + ask.limit().name() + "': the request was not informed of a decision", ex);
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
            } else if (request == null || !request.endsWith(result, this::end)) {
                end();
            }
        }

        public boolean countsInFlight() {
            return countsInFlight;
        }

        /** The call will not be made: gives back what can be given back. */
        public void cancel() {
            held.forEach(Reservation::cancel);
        }
    }
}
