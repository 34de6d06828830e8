package io.ratelimited.spring.call;

import io.ratelimited.core.AllOf;
import io.ratelimited.core.Claim;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Reservation;
import io.ratelimited.spring.CurrentRequest;
import io.ratelimited.spring.Outcome;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import java.util.function.Supplier;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/**
 * The admission of one call: reports the decisions of its limits, and holds its reservations until the call ends. Made by
 * {@link LimitEnforcer}.
 */
public final class Admission {

    private static final Log LOG = LogFactory.getLog(LimitEnforcer.class);

    private final LimitEnforcer enforcer;
    private final List<LimitRequest> enforced = new ArrayList<>(2);
    private final List<LimitRequest> shadows = new ArrayList<>(0);
    private final List<Reservation> held = new ArrayList<>(1);
    private final @Nullable CurrentRequest current;
    private boolean countsInFlight;
    private boolean waits;

    Admission(LimitEnforcer enforcer, List<LimitRequest> requests, @Nullable CurrentRequest current) {
        this.enforcer = enforcer;
        this.current = current;
        for (LimitRequest request : requests) {
            (request.limit().policy() == Policy.SHADOW ? shadows : enforced).add(request);
            countsInFlight |= request.limit().countsInFlight();
            waits |= request.limit().policy() == Policy.WAIT;
        }
    }

    /** The requests to limits that can refuse the call. */
    List<LimitRequest> enforced() {
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
        for (int i = 0; i < enforced.size(); i++) {
            if (enforced.get(i).denied()) {
                throw refused(i, enforced.get(i).denial());
            }
        }
    }

    List<Claim> claims(boolean maySleep) {
        List<Claim> claims = new ArrayList<>(enforced.size());
        for (LimitRequest request : enforced) {
            claims.add(maySleep ? request.claim() : request.claimAtOnce());
        }
        return claims;
    }

    void admitted(Reservation reservation, long waitedNanos) {
        held.add(reservation);
        List<Reservation> members = AllOf.members(reservation);
        for (int i = 0; i < members.size(); i++) {
            Reservation member = members.get(i);
            boolean delayed = member.waitNanos() > 0 || (waitedNanos > 0 && member.mayWait());
            report(
                    enforced.get(i),
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
        report(shadow, member.isRefused() ? Outcome.SHADOWED : Outcome.ADMITTED, 0, member::decision);
    }

    RateLimitExceededException refused(Reservation reservation) {
        return refused(AllOf.refusedClaim(reservation), reservation.decision());
    }

    /** @param position of the request that was refused: one limit may be asked for several keys */
    private RateLimitExceededException refused(int position, Decision decision) {
        for (int i = 0; i < enforced.size(); i++) {
            LimitRequest request = enforced.get(i);
            if (i == position) {
                report(request, Outcome.REJECTED, 0, () -> decision);
            } else if (current != null) {
                current.applies(request.limit(), request.limiter().limit());
            }
        }
        return new RateLimitExceededException(decision);
    }

    private void report(LimitRequest request, Outcome outcome, long waitedNanos, Supplier<Decision> decision) {
        enforcer.report(request.limit(), outcome, request.key(), waitedNanos, decision);
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
                    "Rate limit '" + request.limit().name() + "': a decision could not be reported to the request", ex);
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
