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
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;
import org.springframework.util.ClassUtils;

/**
 * Decides whether a call may go: asks its limits, applies their policies, waits where a policy allows it, and reports
 * each decision to the observers and to the current request. Thread-safe.
 */
public final class LimitEnforcer {

    private static final Log LOG = LogFactory.getLog(LimitEnforcer.class);
    private static final long MINUTE = TimeUnit.MINUTES.toNanos(1);

    /** A runtime image may leave the module jdk.jfr out. */
    private static final boolean FLIGHT_RECORDER = ClassUtils.isPresent("jdk.jfr.Event", null);

    private final List<DecisionObserver> observers;
    private final Ticker ticker;
    private final ContextPropagatingExecutor executor;
    /** Names of the limits under WAIT that have refused a call on an event loop. */
    private final Set<String> refusedOnEventLoops = ConcurrentHashMap.newKeySet();
    /** When a failed charge was logged last, by limit: {@link Ticker#nanos}. */
    private final Map<String, Long> failedCharges = new ConcurrentHashMap<>();

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
    public Admission enter(LimitRequest[] requests, @Nullable CurrentRequest current) {
        Admission admission = new Admission(this, requests, current);
        if (admission.enforced().length > 0) {
            enter(admission);
        }
        if (admission.hasShadows()) {
            admission.reserveShadows(claim -> CompletableFuture.completedFuture(claim.reserve()));
        }
        return admission;
    }

    private void enter(Admission admission) {
        admission.requireKeys();
        long waitedForThread = admission.takeWaitedNanos();
        admission.requireTime(waitedForThread);
        boolean maySleep = !admission.waits() || !EventLoops.isCurrentThread();
        Reservation reservation = AllOf.reserve(admission.claims(maySleep, waitedForThread));
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
                    warnOfEventLoop(admission, reservation.decision());
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
                + admission.enforced()[0].limit().name() + "'");
        exception.initCause(cause);
        return exception;
    }

    /** Warns once for each limit that WAIT cannot apply on an event loop. */
    private void warnOfEventLoop(Admission admission, Decision decision) {
        for (LimitRequest request : admission.enforced()) {
            NamedLimit limit = request.limit();
            if (limit.name().equals(decision.limit())
                    && request.policy() == Policy.WAIT
                    && refusedOnEventLoops.add(limit.name())) {
                LOG.warn("Rate limit '" + limit.name() + "' (" + limit.place() + ") has the policy WAIT, but thread "
                        + Thread.currentThread().getName()
                        + " is an event loop and must not sleep: its calls over the limit are refused at once."
                        + " Return a Mono, a Flux or a CompletableFuture from the limited method, or call it on"
                        + " Schedulers.boundedElastic(), or use the policy REJECT.");
            }
        }
    }

    /**
     * {@link #enter} without blocking. The future fails with the exception. Cancelling it gives the permits back, even
     * after the call was admitted.
     */
    public CompletableFuture<Admission> enterAsync(LimitRequest[] requests, @Nullable CurrentRequest current) {
        Admission admission = new Admission(this, requests, current);
        CompletableFuture<Admission> entered = new CompletableFuture<>();
        if (admission.enforced().length == 0) {
            letIn(admission, entered);
            return entered;
        }
        try {
            admission.requireKeys();
        } catch (RateLimitExceededException refusal) {
            return CompletableFuture.failedFuture(refusal);
        }
        AllOf.reserveAsync(admission.claims(true, 0)).whenComplete((reservation, failure) -> {
            if (failure != null) {
                entered.completeExceptionally(failure);
            } else if (reservation.mayWait()) {
                await(admission, reservation, entered);
            } else {
                decided(admission, reservation, !reservation.isRefused(), 0, entered);
            }
        });
        return entered;
    }

    private void await(Admission admission, Reservation reservation, CompletableFuture<Admission> entered) {
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
                decided(admission, reservation, admitted, ticker.nanos() - before, entered);
            }
        });
    }

    private static void decided(
            Admission admission,
            Reservation reservation,
            boolean admitted,
            long waitedNanos,
            CompletableFuture<Admission> entered) {
        if (entered.isCancelled()) {
            reservation.cancel();
        } else if (!admitted) {
            entered.completeExceptionally(admission.refused(reservation));
        } else {
            admission.admitted(reservation, waitedNanos);
            letIn(admission, entered);
        }
    }

    /** Asks the shadow limits without blocking, then completes the future. */
    private static void letIn(Admission admission, CompletableFuture<Admission> entered) {
        admission
                .reserveShadows(claim -> AllOf.reserveAsync(new Claim[] {claim}))
                .thenAccept(admitted -> {
                    if (!entered.complete(admitted)) {
                        admitted.cancel();
                    }
                });
    }

    /** Reports the refusal of a call outside a web request, and makes its exception. */
    public RateLimitExceededException refused(LimitRequest request, Decision decision) {
        report(request.limit(), Outcome.REJECTED, request.key(), 0, () -> decision);
        return new RateLimitExceededException(decision);
    }

    /** {@link #enterAsync} with another result. */
    public <T> CompletableFuture<T> enterAsync(
            LimitRequest[] requests, @Nullable CurrentRequest current, Function<Admission, ? extends T> result) {
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

    /** Reports a decision to the observers, and to the flight recorder unless the call simply goes. */
    public void report(
            NamedLimit limit, Outcome outcome, @Nullable Object key, long waitedNanos, Supplier<Decision> decision) {
        if (outcome != Outcome.ADMITTED && FLIGHT_RECORDER) {
            DecisionEvent.record(limit, outcome, waitedNanos);
        }
        if (!observers.isEmpty()) {
            observe(limit, observer -> observer.onDecision(limit, outcome, key, waitedNanos, decision));
        }
    }

    /** Reports what a call has cost to the observers. */
    void settled(LimitRequest request, long charged) {
        if (!observers.isEmpty()) {
            observe(
                    request.limit(),
                    observer -> observer.onSettled(request.limit(), request.key(), request.permits(), charged));
        }
    }

    /** Reports that a call stays charged with what it reserved: to the log once a minute and limit, and to the observers. */
    void chargeFailed(LimitRequest request, Throwable failure) {
        String limit = request.limit().name();
        long now = ticker.nanos();
        Long last = failedCharges.putIfAbsent(limit, now);
        if (last == null || (now - last >= MINUTE && failedCharges.replace(limit, last, now))) {
            LOG.warn(
                    "Rate limit '" + limit + "' (" + request.limit().place()
                            + "): a call has been made, but what it cost is not known; it stays charged with what it reserved: "
                            + request.permits() + ". Correct the charge. Further failures are logged once a minute.",
                    failure);
        }
        observe(
                request.limit(),
                observer -> observer.onChargeFailed(request.limit(), request.key(), request.permits(), failure));
    }

    /** The failure of an observer is logged and does not fail the call. */
    private void observe(NamedLimit limit, Consumer<DecisionObserver> report) {
        for (DecisionObserver observer : observers) {
            try {
                report.accept(observer);
            } catch (RuntimeException | Error ex) {
                LOG.warn(
                        "Rate limit '" + limit.name() + "': "
                                + observer.getClass().getName() + " failed",
                        ex);
            }
        }
    }
}
