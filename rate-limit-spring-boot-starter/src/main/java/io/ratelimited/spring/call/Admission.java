package io.ratelimited.spring.call;

import io.ratelimited.core.AllOf;
import io.ratelimited.core.Claim;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Reservation;
import io.ratelimited.spring.CurrentRequest;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.Outcome;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * The admission of one call: reports the decisions of its limits, and holds its reservations until the call ends. Made by
 * {@link LimitEnforcer}.
 */
public final class Admission {

    private static final Log LOG = LogFactory.getLog(LimitEnforcer.class);
    private static final AtomicIntegerFieldUpdater<Admission> DECIDED_COST =
            AtomicIntegerFieldUpdater.newUpdater(Admission.class, "decidedCost");

    private final LimitEnforcer enforcer;
    /** To limits that can refuse the call. */
    private final LimitRequest[] enforced;
    /** To limits that cannot; their reservations are {@link #held}. */
    private List<LimitRequest> shadows = List.of();

    private List<Shadow> held = List.of();

    private final @Nullable CurrentRequest current;
    /** The reservations of the limits that can refuse the call. */
    private @Nullable Reservation reservation;

    private boolean followsResult;
    private boolean waits;
    /** Whether what the call has cost is charged by expressions. */
    private boolean charges;
    /** 1 when the call has been charged or cancelled. */
    private volatile int decidedCost;

    /** A request to a limit that does not refuse, and what it reserved. */
    private record Shadow(LimitRequest request, Reservation reservation) {}

    Admission(LimitEnforcer enforcer, LimitRequest[] requests, @Nullable CurrentRequest current) {
        this.enforcer = enforcer;
        this.current = current;
        LimitRequest[] refusing = requests;
        int count = 0;
        for (LimitRequest request : requests) {
            Policy policy = request.policy();
            if (policy == Policy.SHADOW) {
                if (refusing == requests) {
                    refusing = requests.clone();
                    shadows = new ArrayList<>(requests.length);
                }
                shadows.add(request);
            } else if (refusing == requests) {
                count++;
            } else {
                refusing[count++] = request;
            }
            waits |= policy == Policy.WAIT;
            charges |= request.charge() != null;
            followsResult |= charges || request.limit().countsInFlight();
        }
        this.enforced = refusing == requests ? requests : Arrays.copyOf(refusing, count);
    }

    /** The requests to limits that can refuse the call. */
    LimitRequest[] enforced() {
        return enforced;
    }

    boolean hasShadows() {
        return !shadows.isEmpty();
    }

    /** Whether a limit lets the call wait. */
    boolean waits() {
        return waits;
    }

    /** Refuses a call without a key if a limit denies such calls. */
    void requireKeys() {
        for (int i = 0; i < enforced.length; i++) {
            if (enforced[i].denied()) {
                throw refused(i, enforced[i].denial());
            }
        }
    }

    /** How long a call that may wait has waited for its thread already, in nanoseconds. */
    long takeWaitedNanos() {
        return waits && current != null ? current.takeWaitedNanos() : 0;
    }

    /** Refuses a call that has waited longer than a limit lets it wait. */
    void requireTime(long waitedNanos) {
        for (int i = 0; waitedNanos > 0 && i < enforced.length; i++) {
            if (enforced[i].policy() == Policy.WAIT && waitedNanos > enforced[i].maxWaitNanos()) {
                throw refused(i, enforced[i].timeOver());
            }
        }
    }

    /**
     * What the call asks of its limits.
     *
     * @param waitedNanos for which the call has waited already
     */
    Claim[] claims(boolean maySleep, long waitedNanos) {
        return maySleep && waitedNanos == 0
                ? enforced
                : Stream.of(enforced)
                        .map(request -> request.claim(maySleep ? request.maxWaitNanos() - waitedNanos : 0))
                        .toArray(Claim[]::new);
    }

    void admitted(Reservation taken, long waitedNanos) {
        reservation = taken;
        if (current == null && waitedNanos == 0 && enforcer.isUnobserved()) {
            return;
        }
        for (int i = 0; i < enforced.length; i++) {
            Reservation member = AllOf.member(taken, i);
            boolean delayed = member.waitNanos() > 0 || (waitedNanos > 0 && member.mayWait());
            report(
                    enforced[i],
                    delayed ? Outcome.DELAYED : Outcome.ADMITTED,
                    delayed ? waitedNanos : 0,
                    member::decision);
        }
    }

    /** Asks the shadow limits one after the other; the call goes whatever they decide. */
    CompletionStage<Admission> reserveShadows(Function<Claim, CompletionStage<Reservation>> reserving) {
        CompletionStage<Admission> reserved = CompletableFuture.completedFuture(this);
        for (LimitRequest shadow : shadows) {
            reserved = shadow.denied()
                    ? reserved.whenComplete((admission, none) -> report(shadow, Outcome.SHADOWED, 0, shadow::denial))
                    : reserved.thenCompose(admission -> reserving.apply(shadow)).handle((member, failure) -> {
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
        if (held.isEmpty()) {
            held = new ArrayList<>(shadows.size());
        }
        held.add(new Shadow(shadow, member));
        report(shadow, member.isRefused() ? Outcome.SHADOWED : Outcome.ADMITTED, 0, member::decision);
    }

    RateLimitExceededException refused(Reservation reservation) {
        return refused(AllOf.refusedClaim(reservation), reservation.decision());
    }

    /** @param position of the request that was refused: one limit may be asked for several keys */
    private RateLimitExceededException refused(int position, Decision decision) {
        for (int i = 0; i < enforced.length; i++) {
            LimitRequest request = enforced[i];
            if (i == position) {
                report(request, Outcome.REJECTED, 0, () -> decision);
            } else if (current != null) {
                reportTo(current, request, null, () -> decision);
            }
        }
        return new RateLimitExceededException(decision);
    }

    private void report(LimitRequest request, Outcome outcome, long waitedNanos, Supplier<Decision> decision) {
        enforcer.report(request.limit(), outcome, request.key(), waitedNanos, decision);
        if (current != null) {
            reportTo(current, request, outcome, decision);
        }
    }

    /**
     * A failure to report to the request is logged and does not fail the call, nor leave it without an answer.
     *
     * @param outcome null for a limit that has not decided, because another one refused the call
     */
    private static void reportTo(
            CurrentRequest current, LimitRequest request, @Nullable Outcome outcome, Supplier<Decision> decision) {
        try {
            NamedLimit limit = request.limit();
            Limit applied = request.limiter().limit();
            if (outcome == null) {
                current.applies(limit, applied);
                return;
            }
            String once = request.once();
            if (once != null && outcome != Outcome.REJECTED) {
                current.charged(once);
            }
            current.decided(limit, applied, outcome, decision);
        } catch (RuntimeException | Error ex) {
            LOG.warn(
                    "Rate limit '" + request.limit().name() + "': a decision could not be reported to the request", ex);
        }
    }

    /** The call has ended: calls in flight no longer count. What it has cost is not known. */
    public void end() {
        if (reservation != null) {
            reservation.release();
        }
        held.forEach(shadow -> shadow.reservation.release());
    }

    /** The call has ended: charges what it has cost, and calls in flight no longer count. */
    public void end(CallResult result) {
        if (charges && claimSettlement()) {
            settle(result, 0);
        }
        end();
    }

    /** The call has returned: it ends now, or with the stage or the response that its result is for. */
    public void endWith(@Nullable Object result, @Nullable Throwable error) {
        if (!followsResult) {
            end();
        } else if (result == null || !endsLater(result)) {
            end(CallResult.of(result, error));
        }
    }

    /** Whether the call will be ended by what its result is for. A result that cannot be awaited does not fail the call. */
    private boolean endsLater(Object result) {
        try {
            if (result instanceof CompletionStage<?> stage) {
                stage.whenComplete(
                        (value, failure) -> endWith(value, failure == null ? null : AsyncCalls.unwrap(failure)));
                return true;
            }
            return current != null && current.endsWith(result, (value, failure) -> end(CallResult.of(value, failure)));
        } catch (RuntimeException | Error ex) {
            LOG.warn("the end of a call cannot be awaited; it ends now", ex);
            return false;
        }
    }

    /** Whether something depends on when the call ends, or how. */
    boolean followsResult() {
        return followsResult;
    }

    /**
     * Charges what the call has cost, for code without annotations.
     *
     * @throws UnsupportedOperationException when the limit counts calls in flight
     */
    public void settle(long permits) {
        Stream.concat(Stream.of(enforced), shadows.stream()).forEach(Admission::requireCountsOverTime);
        if (claimSettlement()) {
            settle(null, permits);
        }
    }

    private static void requireCountsOverTime(LimitRequest request) {
        if (request.limit().countsInFlight()) {
            throw new UnsupportedOperationException(
                    "rate limit '" + request.limit().name()
                            + "' counts calls in flight and has nothing to charge; close the reservation when the call has ended");
        }
    }

    /** Claims the settlement of the call; false if it was charged or cancelled before. */
    private boolean claimSettlement() {
        return decidedCost == 0 && DECIDED_COST.compareAndSet(this, 0, 1);
    }

    /**
     * Charges each limit.
     *
     * @param result of the call, which the charge of each limit evaluates; null if all charge the same
     * @param permits what all charge
     */
    private void settle(@Nullable CallResult result, long permits) {
        for (int i = 0; reservation != null && i < enforced.length; i++) {
            settle(enforced[i], AllOf.member(reservation, i), result, permits);
        }
        for (Shadow shadow : held) {
            settle(shadow.request, shadow.reservation, result, permits);
        }
    }

    /** A failure is reported and does not fail the call, which has been made. */
    private void settle(LimitRequest request, Reservation member, @Nullable CallResult result, long stated) {
        Charge charge = request.charge();
        if (member.isRefused() || (charges && charge == null)) {
            return;
        }
        long permits;
        try {
            permits = result == null || charge == null ? stated : charge.permits(result);
            member.settle(permits);
        } catch (Throwable ex) {
            enforcer.chargeFailed(request, ex);
            return;
        }
        enforcer.settled(request, permits);
        if (current != null) {
            reportTo(current, request, Outcome.ADMITTED, member::decision);
        }
    }

    /** The call is not made: gives its permits back, unless it has been charged. */
    public void cancel() {
        if (!claimSettlement()) {
            end();
            return;
        }
        if (reservation != null) {
            reservation.cancel();
        }
        held.forEach(shadow -> shadow.reservation.cancel());
    }
}
