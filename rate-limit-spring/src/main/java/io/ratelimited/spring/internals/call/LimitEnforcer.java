package io.ratelimited.spring.internals.call;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.internals.call.Admission.Held;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.limit.RequestThreads;
import io.ratelimited.spring.internals.limit.Sleeper;
import io.ratelimited.spring.internals.request.CurrentRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.SmartInitializingSingleton;

/**
 * Decides whether a call may go: asks its limits, applies their policies, waits where a policy allows it, and reports
 * each decision to the observers and to the current request. Thread-safe.
 */
public final class LimitEnforcer implements SmartInitializingSingleton {

    private static final String REMEDY =
            "Return a Mono, a Flux or a CompletableFuture from the limited method, or call it on"
                    + " Schedulers.boundedElastic(), or use the policy REJECT.";

    private final Supplier<List<DecisionObserver>> observers;
    private final DecisionReports reports;
    private final Ticker ticker;
    private final Continuations continuations;
    private final CallerThreads threads;

    /**
     * Makes an enforcer.
     *
     * @param observers asked for when the singletons of the application are created
     * @param continuations where calls go on that had to wait without a thread
     * @param threads the place where calls sleep that wait with a thread
     */
    public LimitEnforcer(
            Supplier<List<DecisionObserver>> observers,
            Ticker ticker,
            Continuations continuations,
            Supplier<RequestThreads> threads) {
        this.threads = new CallerThreads(threads);
        this.observers = observers;
        this.reports = new DecisionReports(ticker);
        this.ticker = ticker;
        this.continuations = continuations;
    }

    private LimitEnforcer(LimitEnforcer from, DecisionReports reports) {
        this.threads = from.threads;
        this.observers = from.observers;
        this.reports = reports;
        this.ticker = from.ticker;
        this.continuations = from.continuations;
    }

    /** This enforcer, for a call of this thread that other threads may go on with: observers know whose call they bring. */
    public LimitEnforcer ofThisThread() {
        DecisionReports ofCaller = reports.ofThisThread();
        return ofCaller == reports ? this : new LimitEnforcer(this, ofCaller);
    }

    /** Only now are there observers: an observer may depend on limits, and so on this enforcer. */
    @Override
    public void afterSingletonsInstantiated() {
        reports.observers(observers.get());
    }

    /** The time that waits are measured by. */
    public Ticker ticker() {
        return ticker;
    }

    /** The place where calls sleep that wait with a thread. */
    public CallerThreads threads() {
        return threads;
    }

    /** Where calls go on that had to wait without a thread. */
    public Continuations continuations() {
        return continuations;
    }

    /**
     * Returns when a call may go that will be made then. One limit that neither lets it wait nor follows it to its end is
     * tried, which allocates nothing; else the call {@link #reserve reserves}.
     *
     * @return the admission, to be ended with the call; cancelling it may give nothing back
     * @throws RateLimitExceededException when the call is refused
     * @throws CancellationException when interrupted while it waits; the permits are given back and the flag is set
     */
    public Admission enter(LimitRequest[] requests, @Nullable CurrentRequest current) {
        if (requests.length == 1 && current == null && requests[0].mayTry()) {
            LimitRequest request = requests[0];
            if (request.limiter().tryAcquire(request.key(), request.permits())) {
                tryCandidates(requests);
                reports.report(request, Outcome.ADMITTED, 0, null, request);
                return Admission.HOLDS_NOTHING;
            }
            Decision decision = request.limiter().peek(request);
            if (!decision.admitted()) {
                tryCandidates(requests);
                throw reports.refusal(requests, null, new Decision[] {decision});
            }
            // Permits have come back between the two: the reservation decides.
        }
        return requests.length == 0 ? Admission.HOLDS_NOTHING : reserve(requests, current);
    }

    /** Each limit that is asked tries its candidates, whatever is decided. */
    private static void tryCandidates(LimitRequest[] requests) {
        for (LimitRequest request : requests) {
            request.tryCandidates(request.permits(), true);
        }
    }

    /**
     * Returns when a call may go that may still be cancelled. Never sleeps on an event loop: a call that would have to
     * wait there is refused.
     *
     * @return the admission, to be ended with the call, or cancelled
     * @throws RateLimitExceededException when the call is refused
     * @throws CancellationException when interrupted while it waits; the permits are given back and the flag is set
     */
    public Admission reserve(LimitRequest[] requests, @Nullable CurrentRequest current) {
        tryCandidates(requests);
        LimitRequest[] enforced = LimitRequest.enforced(requests);
        Reservation reservation = enforced.length == 0 ? null : reserveEnforced(enforced, current);
        return new Admission(
                enforced,
                reservation,
                enforced == requests
                        ? Admission.NO_SHADOWS
                        : reserveShadows(
                                        requests,
                                        current,
                                        shadow -> CompletableFuture.completedFuture(shadow.reserve()))
                                .toCompletableFuture()
                                .join()
                                .toArray(Admission.NO_SHADOWS),
                current,
                reports);
    }

    private Reservation reserveEnforced(LimitRequest[] enforced, @Nullable CurrentRequest current) {
        requireKeys(enforced, current);
        if (!LimitRequest.mayWait(enforced)) {
            return decide(enforced, current, enforced);
        }
        long waitedForThread = current != null ? takeWaitedNanos(enforced, current) : 0;
        RequestThreads seats = threads.seats();
        boolean onEventLoop = !threads.mayCurrentSleep();
        // Asked before the limits are: a reservation that is given back for want of a seat may have delayed others.
        boolean maySleep = !onEventLoop && LimitRequest.maySleep(enforced, seats);
        Reservation reservation = AllOf.reserve(LimitRequest.claims(enforced, maySleep, waitedForThread));
        if (!reservation.mayWait()) {
            if (reservation.isRefused() && onEventLoop) {
                warnOfEventLoop(enforced, AllOf.refusals(reservation));
            }
            return conclude(enforced, current, reservation, !reservation.isRefused(), 0);
        }
        Sleeper sleeper = LimitRequest.sleeper(enforced);
        if (!seats.tryEnter(LimitRequest.statedMaxWaiting(enforced), sleeper)) {
            return decideWithoutWait(enforced, current, reservation, waitedForThread);
        }
        long before = ticker.nanos();
        try {
            boolean admitted = await(reservation, sleeper);
            return conclude(enforced, current, reservation, admitted, ticker.nanos() - before);
        } catch (CancellationException displaced) {
            return decideWithoutWait(enforced, current, reservation, waitedForThread);
        } catch (InterruptedException ex) {
            Thread.currentThread().interrupt();
            throw interrupted(enforced[0].limit(), ex);
        } finally {
            seats.leave(sleeper);
        }
    }

    /**
     * Decides a call for which no thread is left like one that does not wait. Its reservation ends first, which the call that
     * displaced it may still be about to do: its own position in a queue would reject it.
     */
    private Reservation decideWithoutWait(
            LimitRequest[] enforced, @Nullable CurrentRequest current, Reservation waiting, long waitedForThread) {
        waiting.cancel();
        return decide(enforced, current, LimitRequest.claims(enforced, false, waitedForThread));
    }

    /** Decides a call that does not wait. */
    private Reservation decide(LimitRequest[] enforced, @Nullable CurrentRequest current, Claim[] claims) {
        Reservation reservation = AllOf.reserve(claims);
        return conclude(enforced, current, reservation, !reservation.isRefused(), 0);
    }

    /**
     * Waits in the calling thread.
     *
     * @throws CancellationException when a call of a higher priority has taken the place of this one
     */
    private static boolean await(Reservation reservation, Sleeper sleeper) throws InterruptedException {
        if (!sleeper.mayBeDisplaced()) {
            return reservation.await();
        }
        CompletableFuture<Boolean> turn = reservation.awaitAsync();
        sleeper.whenDisplaced(() -> turn.cancel(false));
        return CallerThreads.resultOf(turn);
    }

    /**
     * Refuses a call without a key if a limit denies such calls.
     *
     * @throws RateLimitExceededException when it is refused
     */
    private void requireKeys(LimitRequest[] enforced, @Nullable CurrentRequest current) {
        @Nullable Decision[] refusals = null;
        for (int i = 0; i < enforced.length; i++) {
            if (enforced[i].denied()) {
                refusals = refusals == null ? new Decision[enforced.length] : refusals;
                refusals[i] = enforced[i].denial();
            }
        }
        if (refusals != null) {
            throw reports.refusal(enforced, current, refusals);
        }
    }

    /**
     * Takes the time for which a call that may wait has waited for its thread already.
     *
     * @return nanoseconds, which shorten its further wait
     * @throws RateLimitExceededException when a limit does not let it wait so long, and one of them would make it wait now
     */
    private long takeWaitedNanos(LimitRequest[] enforced, CurrentRequest current) {
        long waited = current.takeWaitedNanos();
        boolean timeOver = false;
        for (LimitRequest request : enforced) {
            timeOver |= request.isTimeOver(waited);
        }
        if (!timeOver) {
            return waited;
        }
        Claim[] claims = LimitRequest.claims(enforced, true, waited);
        @Nullable Decision[] refusals = new Decision[claims.length];
        boolean refused = false;
        for (int i = 0; i < claims.length; i++) {
            refusals[i] = enforced[i].refusalAfter(waited, claims[i]);
            refused |= refusals[i] != null;
        }
        if (refused) {
            throw reports.refusal(enforced, current, refusals);
        }
        return waited;
    }

    /**
     * Reports the decisions of the limits.
     *
     * @param waitedNanos between the reservation and the decision
     * @return the reservation of a call that is admitted
     * @throws RateLimitExceededException when it is refused
     */
    private Reservation conclude(
            LimitRequest[] enforced,
            @Nullable CurrentRequest current,
            Reservation reservation,
            boolean admitted,
            long waitedNanos) {
        if (!admitted) {
            throw reports.refusal(enforced, current, AllOf.refusals(reservation));
        }
        if (current == null && waitedNanos == 0 && reports.isUnobserved()) {
            return reservation;
        }
        for (int i = 0; i < enforced.length; i++) {
            Reservation member = AllOf.member(reservation, i);
            boolean delayed = member.waitNanos() > 0 || (waitedNanos > 0 && member.mayWait());
            Outcome outcome = delayed ? Outcome.DELAYED : Outcome.ADMITTED;
            reports.report(enforced[i], outcome, delayed ? waitedNanos : 0, current, member::decision);
        }
        return reservation;
    }

    /**
     * Asks the limits that refuse nobody, once the others have admitted the call: at the same time, unless asking blocks. Reports
     * their decisions in order.
     *
     * @return their reservations; never fails
     */
    private CompletionStage<List<Held>> reserveShadows(
            LimitRequest[] requests,
            @Nullable CurrentRequest current,
            Function<LimitRequest, CompletionStage<Reservation>> reserving) {
        List<Held> held = new ArrayList<>();
        CompletionStage<List<Held>> asked = CompletableFuture.completedFuture(held);
        for (LimitRequest shadow : requests) {
            if (shadow.policy() == Policy.SHADOW) {
                if (shadow.denied()) {
                    asked = asked.whenComplete(
                            (all, none) -> reports.report(shadow, Outcome.SHADOWED, 0, current, shadow::denial));
                    continue;
                }
                // Now, not after the reply to the one before.
                CompletableFuture<Reservation> reserved =
                        CompletableFuture.completedFuture(shadow).thenCompose(reserving);
                asked = asked.thenCompose(all -> reserved).handle((member, failure) -> {
                    hold(shadow, current, member, failure, held);
                    return held;
                });
            }
        }
        return asked;
    }

    private void hold(
            LimitRequest shadow,
            @Nullable CurrentRequest current,
            @Nullable Reservation member,
            @Nullable Throwable failure,
            List<Held> held) {
        if (member == null) {
            reports.warn(shadow.limit(), "a dry run could not count a call", failure);
            return;
        }
        held.add(new Held(shadow, member));
        Outcome outcome = member.isRefused() ? Outcome.SHADOWED : Outcome.ADMITTED;
        reports.report(shadow, outcome, 0, current, member::decision);
    }

    private static CancellationException interrupted(NamedLimit limit, InterruptedException cause) {
        CancellationException exception =
                new CancellationException("interrupted while waiting for rate limit '" + limit.name() + "'");
        exception.initCause(cause);
        return exception;
    }

    /** Warns of the limits that WAIT cannot apply on an event loop. */
    private void warnOfEventLoop(LimitRequest[] enforced, @Nullable Decision[] refusals) {
        for (int i = 0; i < refusals.length; i++) {
            LimitRequest request = enforced[i];
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
     * @param callbacks the kind of code that the caller attaches to the future; observers run before it, in the same thread
     */
    public CompletableFuture<Admission> reserveAsync(
            LimitRequest[] requests, @Nullable CurrentRequest current, Callbacks callbacks) {
        tryCandidates(requests);
        LimitRequest[] enforced = LimitRequest.enforced(requests);
        if (enforced.length == 0) {
            CompletableFuture<Admission> entered = new CompletableFuture<>();
            ofThisThread().complete(requests, enforced, current, null, entered);
            return entered;
        }
        CompletableFuture<Reservation> asked;
        try {
            requireKeys(enforced, current);
            asked = AllOf.reserveAsync(enforced, callbacks).toCompletableFuture();
            if (enforced == requests && asked.isDone() && !asked.isCompletedExceptionally()) {
                Reservation known = asked.join();
                if (!known.mayWait()) {
                    conclude(enforced, current, known, !known.isRefused(), 0);
                    return CompletableFuture.completedFuture(
                            new Admission(enforced, known, Admission.NO_SHADOWS, current, reports));
                }
            }
        } catch (RateLimitExceededException refusal) {
            return CompletableFuture.failedFuture(refusal);
        }
        CompletableFuture<Admission> entered = new CompletableFuture<>();
        LimitEnforcer ofCaller = ofThisThread();
        asked.whenComplete((reservation, failure) -> {
            if (failure != null) {
                entered.completeExceptionally(failure);
                return;
            }
            BiConsumer<Boolean, Long> decided = (admitted, waitedNanos) -> {
                if (entered.isCancelled()) {
                    reservation.cancel();
                    return;
                }
                try {
                    Reservation reserved = ofCaller.conclude(enforced, current, reservation, admitted, waitedNanos);
                    ofCaller.complete(requests, enforced, current, reserved, entered);
                } catch (RateLimitExceededException refusal) {
                    entered.completeExceptionally(refusal);
                }
            };
            if (reservation.mayWait()) {
                await(reservation, entered, decided);
            } else {
                decided.accept(!reservation.isRefused(), 0L);
            }
        });
        return entered;
    }

    private void await(
            Reservation reservation, CompletableFuture<Admission> entered, BiConsumer<Boolean, Long> decided) {
        long before = ticker.nanos();
        CompletableFuture<Boolean> turn = reservation.awaitAsync();
        entered.whenComplete((ignored, cancellation) -> {
            if (cancellation != null) {
                turn.cancel(false);
            }
        });
        turn.whenComplete((admitted, interruption) -> {
            if (interruption != null) {
                entered.completeExceptionally(interruption);
            } else {
                decided.accept(admitted, ticker.nanos() - before);
            }
        });
    }

    /** Asks the limits that refuse nobody, then completes the future with the admission. */
    private void complete(
            LimitRequest[] requests,
            LimitRequest[] enforced,
            @Nullable CurrentRequest current,
            @Nullable Reservation reservation,
            CompletableFuture<Admission> entered) {
        reserveShadows(requests, current, shadow -> AllOf.reserveAsync(List.of(shadow)))
                .thenAccept(shadows -> {
                    Admission admission = new Admission(
                            enforced, reservation, shadows.toArray(Admission.NO_SHADOWS), current, reports);
                    if (!entered.complete(admission)) {
                        admission.cancel();
                    }
                });
    }

    /**
     * Begins a call that limits leave out unless it is {@link ExemptCall#charge charged} later.
     *
     * @return completes with empty when its caller has used up a budget, and is exempt from nothing
     */
    public CompletionStage<Optional<ExemptCall>> exempt(LimitRequest[] requests) {
        return ExemptCall.mayBe(requests)
                .thenApply(may -> may ? Optional.of(ExemptCall.of(requests, reports)) : Optional.empty());
    }

    /**
     * Takes permits if a call may go at once, whatever the policy of the limit. Does not report to a web request.
     *
     * @param permits 0 or more; 0 asks for nothing, and goes
     */
    public boolean tryAcquire(ConfiguredLimit limit, @Nullable Object key, long permits) {
        if (limit.candidates().tracker() != null) {
            LimitRequest.of(limit, key, permits, null).tryCandidates(permits, false);
        }
        RateLimiter limiter = limit.limiterOf(key);
        boolean described = !reports.isUnobserved() && !limit.countsInFlight() && limiter.source() == null;
        // A caller that might wait under the policy of the limit and does not want to is no violator; neither is one
        // that is
        // rejected elsewhere because of permits that another call holds for a moment.
        long patience = limit.enforcement().maxWaitNanos();
        boolean judged = limiter.limit().block() != null && (patience > 0 || limiter.source() == null);
        Reservation reservation = described || judged
                ? AllOf.reserve(List.of(Claim.of(limiter, key, permits, 0, RateLimiter.NO_RANK, patience, false)))
                : null;
        boolean admitted = reservation == null ? limiter.tryAcquire(key, permits) : !reservation.isRefused();
        if (reservation != null) {
            reservation.release(); // nothing else ends it, and a block by charge counts calls that have ended
        }
        if (!admitted || !(reports.isUnobserved() || limit.countsInFlight())) {
            reports.report(
                    limit,
                    admitted ? Outcome.ADMITTED : Outcome.REJECTED,
                    key,
                    0,
                    reservation != null
                            ? reservation::decision
                            : admitted
                                    ? () -> LimitRequest.ofAdmitted(limiter, key)
                                    : () -> limiter.peek(key, permits, 0));
        }
        return admitted;
    }
}
