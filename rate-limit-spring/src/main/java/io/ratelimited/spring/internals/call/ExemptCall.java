package io.ratelimited.spring.internals.call;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.core.Reservation;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * A call that its limits leave out for as long as it looks harmless. It is charged when it has turned out not to be: then it
 * takes its permits whether they are left or not, so calls at one time buy nothing. Thread-safe.
 */
public final class ExemptCall {

    private final List<Held> held;
    private final AtomicBoolean charged = new AtomicBoolean();

    /** A request for nothing, the permits that it may still cost, and its reservation, which may take a round trip. */
    private record Held(LimitRequest request, long permits, CompletionStage<Reservation> reservation) {}

    private final DecisionReports reports;

    private ExemptCall(List<Held> held, DecisionReports reports) {
        this.held = held;
        this.reports = reports;
    }

    /**
     * Looks whether a call may be exempt. Completes with false when its caller, a key, has used up a budget. A limit without
     * a key has no such callers: strangers could end the exemption of everybody. Nor has a limit that is closed
     * for all, of which no caller has used a permit: neither itself, nor by numbers that are the caller's own. Limits
     * on calls in flight count no guesses.
     */
    static CompletionStage<Boolean> mayBe(LimitRequest[] requests) {
        CompletionStage<Boolean> may = CompletableFuture.completedFuture(true);
        for (LimitRequest request : requests) {
            if (isCounted(request) && request.key() != null && request.policy() != Policy.SHADOW) {
                may = may.thenCompose(soFar -> soFar ? isLeft(request) : CompletableFuture.completedFuture(false));
            }
        }
        return may;
    }

    private static CompletionStage<Boolean> isLeft(LimitRequest request) {
        return request.limiter()
                // Who would have to wait is not exempt: a window that has been used up is always free again after a
                // wait.
                .peekAsync(request.atOnce())
                // What nobody can know yet is no reason to fail a health check.
                .thenApply(decision -> decision.admitted()
                        || decision.source() == Decision.Source.UNAVAILABLE
                        || (isClosedForAll(request) && !decision.blocked()))
                .exceptionally(failure -> true);
    }

    /** A tier, the numbers of a caller, or an override may be open where the limit is closed, or closed where it is open. */
    private static boolean isClosedForAll(LimitRequest request) {
        return request.limit().limit().isClosed() && request.limiter().limit().isClosed();
    }

    private static boolean isCounted(LimitRequest request) {
        return request.permits() > 0 && !request.denied() && !request.limit().countsInFlight();
    }

    /** The call as it begins. */
    static ExemptCall of(LimitRequest[] requests, DecisionReports reports) {
        List<Held> held = new ArrayList<>();
        for (LimitRequest request : requests) {
            if (isCounted(request)) {
                LimitRequest free = request.free();
                held.add(new Held(free, request.permits(), free.limiter().reserveAsync(free, Callbacks.NEVER_BLOCK)));
            }
        }
        return new ExemptCall(held, reports);
    }

    /** Charges the call with its permits, once: they were used, so they become debt if none are left. */
    public void charge() {
        if (!charged.compareAndSet(false, true)) {
            return;
        }
        for (Held one : held) {
            one.reservation
                    .thenAccept(reservation -> {
                        reservation.settle(one.permits);
                        one.request.tryCandidates(one.permits, true);
                        reports.reportCharge(one.request, one.permits, null, reservation::decision);
                    })
                    .exceptionally(failure -> {
                        reports.reportFailedCharge(one.request, failure);
                        return null;
                    });
        }
    }
}
