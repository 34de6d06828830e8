package io.ratelimited.spring.internals.call;

import io.ratelimited.core.End;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.spring.internals.expression.CallResult;
import io.ratelimited.spring.internals.overload.CallEnd;
import io.ratelimited.spring.internals.request.CurrentRequest;
import io.ratelimited.spring.internals.text.LogText;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.function.BiConsumer;
import java.util.function.ToLongFunction;
import org.jspecify.annotations.Nullable;

/**
 * The permits that an admitted call holds until it ends. Made by {@link LimitEnforcer}. Thread-safe: immutable, but for
 * the claim to settle the call.
 */
public final class Admission {

    static final Held[] NO_SHADOWS = {};

    /** The admission of a call that no limit applies to, or that was admitted without a reservation. */
    static final Admission HOLDS_NOTHING =
            new Admission(LimitRequest.NONE, null, NO_SHADOWS, null, new DecisionReports(Ticker.system()));

    private static final LogText.Lines LOG = LogText.lines(Admission.class);
    private static final String NOT_REPORTED = "the end of a call could not be reported to its limits";
    private static final AtomicIntegerFieldUpdater<Admission> SETTLEMENT =
            AtomicIntegerFieldUpdater.newUpdater(Admission.class, "settlement");

    private final LimitRequest[] enforced;
    private final @Nullable Reservation reservation;
    private final Held[] shadows;
    private final @Nullable CurrentRequest current;
    private final DecisionReports reports;
    /** 1 when the call has been charged or cancelled. */
    private volatile int settlement;

    /** A request and its reservation. */
    record Held(LimitRequest request, Reservation reservation) {}

    /**
     * Makes the admission of a call.
     *
     * @param enforced requests to limits that could have refused the call
     * @param reservation the joint reservation of these; null if there are none
     * @param shadows the reservations of limits that refuse nobody
     */
    Admission(
            LimitRequest[] enforced,
            @Nullable Reservation reservation,
            Held[] shadows,
            @Nullable CurrentRequest current,
            DecisionReports reports) {
        this.enforced = enforced;
        this.reservation = reservation;
        this.shadows = shadows;
        this.current = current;
        this.reports = reports;
    }

    /**
     * Ends the call, whose cost is not known: it does not count as a call in flight any more. A failure of a backend is logged,
     * and fails neither the call, which has been made, nor the end of others.
     */
    public void end(End end) {
        if (reservation != null) {
            release(reservation, end);
        }
        for (Held shadow : shadows) {
            release(shadow.reservation, end);
        }
    }

    private static void release(Reservation held, End end) {
        try {
            held.release(end);
        } catch (RuntimeException | Error ex) {
            LOG.warn(NOT_REPORTED, ex);
        }
    }

    private void release(CallResult result) {
        if (reservation == null && shadows.length == 0) {
            return;
        }
        Throwable error = result.error();
        end(error != null && isAborted(error) ? End.CANCELLED : CallEnd.of(error, result.cancelled()));
    }

    /** Returns whether the client has disconnected, and the failure of the call may come of it. */
    private boolean isAborted(Throwable error) {
        return current != null && current.isAborted(error);
    }

    /** Ends the call: charges its cost, and does not count it as in flight any more. */
    public void end(CallResult result) {
        charge(result);
        release(result);
    }

    /**
     * Ends the call: charges its cost. A call in flight counts until the response has ended that is made of the result, if
     * there is one.
     */
    public void endWithResponse(CallResult result) {
        charge(result);
        Object value = result.value();
        if (value == null || result.error() != null || !tryEndWithLater(value)) {
            release(result);
        }
    }

    private void charge(CallResult came) {
        if (charges() && claimSettlement()) {
            Throwable error = came.error();
            boolean aborted = error != null && isAborted(error);
            CallResult result = aborted ? came.asCancelled() : came;
            forEach((request, member) -> {
                // It may share its permits with a use that has a charge.
                if (request.charge() == null && !request.limit().countsInFlight()) {
                    release(member, End.ANSWERED);
                }
            });
            forEach((request, member) -> {
                Charge charge = request.charge();
                if (charge != null) {
                    settle(request, member, call -> charge.permits(result), charge.mayBlock(result));
                }
            });
        }
    }

    /** Ends a call that has returned: now, or with the stage or the response that its result is for. */
    public void endWith(@Nullable Object result, @Nullable Throwable error) {
        if (!followsResult()) {
            end(End.ANSWERED);
        } else if (result == null || !tryEndWithLater(result)) {
            end(CallResult.of(result, error));
        }
    }

    private void endWithLater(@Nullable Object result, @Nullable Throwable error) {
        if (error != null || result == null || !tryEndWithLater(result)) {
            end(CallResult.ofLater(result, error));
        }
    }

    /**
     * Lets the stage or the response that a result is for end the call.
     *
     * @return false if there is none, or if it cannot be awaited, which does not fail the call
     */
    private boolean tryEndWithLater(Object result) {
        try {
            if (result instanceof CompletionStage<?> stage) {
                stage.whenComplete(
                        (value, failure) -> endWithLater(value, failure == null ? null : CallResult.unwrap(failure)));
                return true;
            }
            // Of a stream that is complete, the cost is known at its end: it may count what it has written.
            return current != null
                    && current.endsWith(
                            result,
                            () -> end(End.ANSWERED),
                            (value, failure) -> end(CallResult.ofLater(value, failure)));
        } catch (RuntimeException | Error ex) {
            LOG.warn("the end of a call cannot be observed; it ends now", ex);
            return false;
        }
    }

    /** Returns whether something depends on the end of the call, or on its result. */
    public boolean followsResult() {
        for (LimitRequest request : enforced) {
            if (request.charge() != null || request.limit().countsInFlight()) {
                return true;
            }
        }
        for (Held shadow : shadows) {
            if (shadow.request.charge() != null || shadow.request.limit().countsInFlight()) {
                return true;
            }
        }
        return false;
    }

    /** Returns whether something depends on the end of a call, as far as it is known: the call may still wait for its admission. */
    public static boolean mayFollow(CompletableFuture<Admission> entered) {
        return !entered.isDone()
                || (!entered.isCompletedExceptionally() && entered.join().followsResult());
    }

    /** How long the call waits for its caller, for limits that learn from the time of calls; null if there is none. */
    public @Nullable CallerTime callerTime() {
        return learnsFromTime() ? new CallerTime(this, reports.ticker()) : null;
    }

    private boolean learnsFromTime() {
        for (LimitRequest request : enforced) {
            if (request.limit().findsItsLimit()) {
                return true;
            }
        }
        for (Held shadow : shadows) {
            if (shadow.request.limit().findsItsLimit()) {
                return true;
            }
        }
        return false;
    }

    void awaitCaller() {
        if (reservation != null) {
            reservation.awaitCaller();
        }
        for (Held shadow : shadows) {
            shadow.reservation.awaitCaller();
        }
    }

    void callerCame(long nanos) {
        if (reservation != null) {
            reservation.callerCame(nanos);
        }
        for (Held shadow : shadows) {
            shadow.reservation.callerCame(nanos);
        }
    }

    /** Returns whether the call has waited for a limit, and not only for its reply. */
    public boolean isDelayed() {
        for (int i = 0; reservation != null && i < enforced.length; i++) {
            if (AllOf.member(reservation, i).mayWait()) {
                return true;
            }
        }
        return false;
    }

    /** Returns whether expressions charge the cost of the call. */
    private boolean charges() {
        for (LimitRequest request : enforced) {
            if (request.charge() != null) {
                return true;
            }
        }
        for (Held shadow : shadows) {
            if (shadow.request.charge() != null) {
                return true;
            }
        }
        return false;
    }

    /**
     * Charges each limit with the cost of the call, for code without annotations.
     *
     * @throws UnsupportedOperationException when a limit counts calls in flight
     */
    public void settle(long permits) {
        forEach((request, member) -> requireCountsOverTime(request));
        if (claimSettlement()) {
            forEach((request, member) -> settle(request, member, call -> permits, true));
        }
    }

    private static void requireCountsOverTime(LimitRequest request) {
        if (request.limit().countsInFlight()) {
            throw new UnsupportedOperationException(
                    "rate limit '" + request.limit().name()
                            + "' counts calls in flight and has nothing to charge; close the reservation when the call"
                            + " has ended");
        }
    }

    /**
     * A failure is reported and does not fail the call, which has been made. A call that its limit would have rejected costs
     * only the candidates, which may have admitted it.
     */
    private void settle(LimitRequest request, Reservation member, ToLongFunction<LimitRequest> cost, boolean mayBlock) {
        boolean charged = !member.isRefused();
        long permits;
        try {
            permits = cost.applyAsLong(request);
            member.settle(permits, mayBlock);
        } catch (Throwable ex) {
            request.chargeCandidates(request.permits());
            if (charged) {
                reports.reportFailedCharge(request, ex);
            }
            return;
        }
        request.chargeCandidates(permits);
        if (charged) {
            reports.reportCharge(request, permits, current, member::decision);
        }
    }

    /** The newest first, since permits come back while none are reserved behind them. */
    private void forEach(BiConsumer<LimitRequest, Reservation> action) {
        for (int i = enforced.length - 1; reservation != null && i >= 0; i--) {
            action.accept(enforced[i], AllOf.member(reservation, i));
        }
        for (Held shadow : shadows) {
            action.accept(shadow.request, shadow.reservation);
        }
    }

    /** Gives the permits of a call back that is not made, unless it has been charged. */
    public void cancel() {
        if (!claimSettlement()) {
            return;
        }
        if (reservation != null) {
            reservation.cancel();
        }
        for (Held shadow : shadows) {
            shadow.reservation.cancel();
        }
    }

    /** Claims the settlement of the call; false if it has been charged or cancelled. */
    private boolean claimSettlement() {
        return settlement == 0 && SETTLEMENT.compareAndSet(this, 0, 1);
    }
}
