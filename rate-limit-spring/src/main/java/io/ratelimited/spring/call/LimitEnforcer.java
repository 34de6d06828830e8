package io.ratelimited.spring.call;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.spring.CurrentRequest;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.limit.ConfiguredLimit;
import io.ratelimited.spring.limit.RequestThreads;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Decides whether a call may go: asks its limits, applies their policies, waits where a policy allows it, and reports
 * each decision to the observers and to the current request. Thread-safe.
 */
public final class LimitEnforcer {

    private static final String REMEDY =
            "Return a Mono, a Flux or a CompletableFuture from the limited method, or call it on"
                    + " Schedulers.boundedElastic(), or use the policy REJECT.";

    private final DecisionReports reports;
    private final Ticker ticker;
    private final ContextPropagatingExecutor executor;
    private final CallerThreads threads;

    /**
     * Makes an enforcer.
     *
     * @param executor runs calls that had to wait without a thread
     * @param threads where calls sleep that wait with a thread
     */
    public LimitEnforcer(
            List<DecisionObserver> observers,
            Ticker ticker,
            ContextPropagatingExecutor executor,
            Supplier<RequestThreads> threads) {
        this.threads = new CallerThreads(threads);
        this.reports = new DecisionReports(observers, ticker);
        this.ticker = ticker;
        this.executor = executor;
    }

    /** The time that waits are measured by. */
    public Ticker ticker() {
        return ticker;
    }

    /** Where calls sleep that wait with a thread. */
    public CallerThreads threads() {
        return threads;
    }

    /** Runs calls that had to wait without a thread. */
    ContextPropagatingExecutor executor() {
        return executor;
    }

    /**
     * Returns when a call may go that will be made then. One limit that neither lets it wait nor follows it to its end is
     * tried, which allocates nothing; else the call {@link #reserve reserves}.
     *
     * @return to be ended with the call; cancelling it may give nothing back
     * @throws RateLimitExceededException when the call is refused
     * @throws CancellationException when interrupted while it waits; the permits are given back and the flag is set
     */
    public Admission enter(LimitRequest[] requests, @Nullable CurrentRequest current) {
        if (requests.length == 1 && current == null && requests[0].mayTry()) {
            LimitRequest request = requests[0];
            if (request.limiter().tryAcquire(request.key(), request.permits())) {
                reports.report(request, Outcome.ADMITTED, 0, null, request);
                return Admission.HOLDS_NOTHING;
            }
            Decision decision = request.get();
            if (!decision.admitted()) {
                throw reports.refusal(requests, null, new Decision[] {decision});
            }
            // Permits have come back between the two: the reservation decides.
        }
        return requests.length == 0 ? Admission.HOLDS_NOTHING : reserve(requests, current);
    }

    /**
     * Returns when a call may go that may still be cancelled. Never sleeps on an event loop: a call that would have to
     * wait there is refused.
     *
     * @return to be ended with the call, or cancelled
     * @throws RateLimitExceededException when the call is refused
     * @throws CancellationException when interrupted while it waits; the permits are given back and the flag is set
     */
    public Admission reserve(LimitRequest[] requests, @Nullable CurrentRequest current) {
        Entry entry = new Entry(requests, current, reports);
        Reservation reservation = entry.enforced().length == 0 ? null : reserveEnforced(entry);
        return entry.admission(
                reservation,
                entry.hasShadows()
                        ? entry.reserveShadows(claim -> CompletableFuture.completedFuture(claim.reserve()))
                                .toCompletableFuture()
                                .join()
                        : List.of());
    }

    private Reservation reserveEnforced(Entry entry) {
        entry.requireKeys();
        long waitedForThread = entry.takeWaitedNanos();
        boolean maySleep = !entry.mayWait() || threads.mayCurrentSleep();
        Reservation reservation = AllOf.reserve(entry.claims(maySleep, waitedForThread));
        RequestThreads seats = threads.seats();
        if (reservation.mayWait() && !seats.tryEnter(entry.maxWaiting())) {
            reservation.cancel();
            reservation = AllOf.reserve(entry.claims(false, waitedForThread));
            return entry.conclude(reservation, !reservation.isRefused(), 0);
        }
        if (!reservation.mayWait()) {
            if (reservation.isRefused() && !maySleep) {
                warnOfEventLoop(entry, AllOf.refusals(reservation));
            }
            return entry.conclude(reservation, !reservation.isRefused(), 0);
        }
        long before = ticker.nanos();
        try {
            boolean admitted = reservation.await();
            return entry.conclude(reservation, admitted, ticker.nanos() - before);
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
            throw interrupted(entry, ex);
        } finally {
            seats.leave();
        }
    }

    private static CancellationException interrupted(Entry entry, InterruptedException cause) {
        CancellationException exception = new CancellationException("interrupted while waiting for rate limit '"
                + entry.enforced()[0].limit().name() + "'");
        exception.initCause(cause);
        return exception;
    }

    /** Warns of the limits that WAIT cannot apply on an event loop. */
    private void warnOfEventLoop(Entry entry, @Nullable Decision[] refusals) {
        for (int i = 0; i < refusals.length; i++) {
            LimitRequest request = entry.enforced()[i];
            NamedLimit limit = request.limit();
            if (refusals[i] != null && request.policy() == Policy.WAIT) {
                threads.warnOfEventLoop("Rate limit '" + limit.name() + "' (" + limit.place() + ")", REMEDY);
            }
        }
    }

    /**
     * {@link #reserve} without blocking. The future fails with the exception. Cancelling it gives the permits back, even
     * after the call was admitted.
     */
    public CompletableFuture<Admission> reserveAsync(LimitRequest[] requests, @Nullable CurrentRequest current) {
        return reserveAsync(requests, current, Callbacks.MAY_BLOCK);
    }

    /**
     * {@link #reserveAsync(LimitRequest[], CurrentRequest)}.
     *
     * @param callbacks what the caller attaches to the future; observers run before it, in the same thread
     */
    public CompletableFuture<Admission> reserveAsync(
            LimitRequest[] requests, @Nullable CurrentRequest current, Callbacks callbacks) {
        Entry entry = new Entry(requests, current, reports);
        CompletableFuture<Admission> entered = new CompletableFuture<>();
        if (entry.enforced().length == 0) {
            complete(entry, null, entered);
            return entered;
        }
        try {
            entry.requireKeys();
        } catch (RateLimitExceededException refusal) {
            return CompletableFuture.failedFuture(refusal);
        }
        AllOf.reserveAsync(entry.claims(true, 0), callbacks).whenComplete((reservation, failure) -> {
            if (failure != null) {
                entered.completeExceptionally(failure);
            } else if (reservation.mayWait()) {
                await(entry, reservation, entered);
            } else {
                conclude(entry, reservation, !reservation.isRefused(), 0, entered);
            }
        });
        return entered;
    }

    private void await(Entry entry, Reservation reservation, CompletableFuture<Admission> entered) {
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
                conclude(entry, reservation, admitted, ticker.nanos() - before, entered);
            }
        });
    }

    private static void conclude(
            Entry entry,
            Reservation reservation,
            boolean admitted,
            long waitedNanos,
            CompletableFuture<Admission> entered) {
        if (entered.isCancelled()) {
            reservation.cancel();
            return;
        }
        try {
            complete(entry, entry.conclude(reservation, admitted, waitedNanos), entered);
        } catch (RateLimitExceededException refusal) {
            entered.completeExceptionally(refusal);
        }
    }

    /** Asks the limits that refuse nobody, then completes the future with the admission. */
    private static void complete(Entry entry, @Nullable Reservation reservation, CompletableFuture<Admission> entered) {
        entry.reserveShadows(claim -> AllOf.reserveAsync(List.of(claim))).thenAccept(shadows -> {
            Admission admission = entry.admission(reservation, shadows);
            if (!entered.complete(admission)) {
                admission.cancel();
            }
        });
    }

    /** {@link #reserveAsync(LimitRequest[], CurrentRequest)} with another result. */
    public <T> CompletableFuture<T> reserveAsync(
            LimitRequest[] requests, @Nullable CurrentRequest current, Function<Admission, ? extends T> result) {
        CompletableFuture<Admission> entered = reserveAsync(requests, current);
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

    /**
     * Takes permits if a call may go at once, whatever the policy of the limit. Does not report to a web request.
     *
     * @param permits 0 or more; 0 asks for nothing, and goes
     */
    public boolean tryAcquire(ConfiguredLimit limit, @Nullable Object key, long permits) {
        RateLimiter limiter = limit.limiterOf(key, limit.limiter());
        boolean described = !reports.isUnobserved() && !limit.countsInFlight() && limiter.source() == null;
        Reservation reservation = described ? limiter.reserve(key, permits, 0) : null;
        boolean admitted = reservation == null ? limiter.tryAcquire(key, permits) : !reservation.isRefused();
        if (!admitted || !(reports.isUnobserved() || limit.countsInFlight())) {
            reports.report(
                    limit,
                    admitted ? Outcome.ADMITTED : Outcome.REJECTED,
                    key,
                    0,
                    reservation == null ? () -> limiter.peek(key, permits, 0) : reservation::decision);
        }
        return admitted;
    }
}
