package io.ratelimited.spring.call;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.spring.CurrentRequest;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.call.Admission.Held;
import io.ratelimited.spring.limit.LogText;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * The steps that a call takes until it is admitted or refused, the same for calls that block their thread and for those
 * that do not. {@link LimitEnforcer} has their order. Immutable.
 */
final class Entry {

    private static final LogText.Lines LOG = LogText.lines(Entry.class);

    private final LimitRequest[] requests;
    /** The requests that can refuse the call: all but those to limits under {@link Policy#SHADOW}. */
    private final LimitRequest[] enforced;

    private final @Nullable CurrentRequest current;
    private final DecisionReports reports;

    Entry(LimitRequest[] requests, @Nullable CurrentRequest current, DecisionReports reports) {
        this.requests = requests;
        this.enforced = enforced(requests);
        this.current = current;
        this.reports = reports;
    }

    private static LimitRequest[] enforced(LimitRequest[] requests) {
        int shadows = 0;
        for (LimitRequest request : requests) {
            shadows += request.policy() == Policy.SHADOW ? 1 : 0;
        }
        return shadows == 0
                ? requests
                : Arrays.stream(requests)
                        .filter(request -> request.policy() != Policy.SHADOW)
                        .toArray(LimitRequest[]::new);
    }

    /** The requests that can refuse the call. */
    LimitRequest[] enforced() {
        return enforced;
    }

    boolean hasShadows() {
        return enforced.length < requests.length;
    }

    /** Whether a limit lets the call wait. */
    boolean mayWait() {
        for (LimitRequest request : enforced) {
            if (request.policy() == Policy.WAIT) {
                return true;
            }
        }
        return false;
    }

    /** The most callers that one of the limits lets sleep at once. */
    int maxWaiting() {
        int most = 0;
        for (LimitRequest request : enforced) {
            most = Math.max(most, request.limiter().limit().maxWaiting());
        }
        return most;
    }

    /**
     * Refuses a call without a key if a limit denies such calls.
     *
     * @throws RateLimitExceededException when it is refused
     */
    void requireKeys() {
        @Nullable Decision[] refusals = null;
        for (int i = 0; i < enforced.length; i++) {
            if (enforced[i].denied()) {
                refusals = refusals == null ? new Decision[enforced.length] : refusals;
                refusals[i] = enforced[i].denial();
            }
        }
        if (refusals != null) {
            throw refusal(refusals);
        }
    }

    /**
     * Takes the time for which a call that may wait has waited for its thread already.
     *
     * @return nanoseconds, which shorten its further wait
     * @throws RateLimitExceededException when a limit does not let it wait so long
     */
    long takeWaitedNanos() {
        long waited = current != null && mayWait() ? current.takeWaitedNanos() : 0;
        for (int i = 0; waited > 0 && i < enforced.length; i++) {
            if (isTimeOver(enforced[i], waited)) {
                throw timeOver(waited);
            }
        }
        return waited;
    }

    private static boolean isTimeOver(LimitRequest request, long waited) {
        return request.policy() == Policy.WAIT && waited > request.maxWaitNanos();
    }

    /** The refusal of a call that has waited too long. Limits that would refuse it anyhow may know when it can go. */
    private RateLimitExceededException timeOver(long waited) {
        Claim[] claims = claims(true, waited);
        @Nullable Decision[] refusals = new Decision[claims.length];
        for (int i = 0; i < claims.length; i++) {
            Claim claim = claims[i];
            Decision asked = claim.limiter().peek(claim.key(), claim.permits(), claim.maxWaitNanos());
            refusals[i] = !asked.admitted() ? asked : isTimeOver(enforced[i], waited) ? enforced[i].timeOver() : null;
        }
        return refusal(refusals);
    }

    /**
     * What the call asks of its limits.
     *
     * @param waitedNanos for which the call has waited already
     */
    Claim[] claims(boolean maySleep, long waitedNanos) {
        return maySleep && waitedNanos == 0
                ? enforced
                : Arrays.stream(enforced)
                        .map(request -> request.claim(maySleep ? request.maxWaitNanos() - waitedNanos : 0))
                        .toArray(Claim[]::new);
    }

    /**
     * Concludes the entry with what the limits have decided, and reports it.
     *
     * @param waitedNanos between the reservation and the decision
     * @return the reservation of a call that is admitted
     * @throws RateLimitExceededException when it is refused
     */
    Reservation conclude(Reservation reservation, boolean admitted, long waitedNanos) {
        if (!admitted) {
            throw refusal(AllOf.refusals(reservation));
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

    private RateLimitExceededException refusal(@Nullable Decision[] refusals) {
        return reports.refusal(enforced, current, refusals);
    }

    /**
     * Asks the limits that refuse nobody, one after the other, once the others have admitted the call.
     *
     * @return what they have reserved; never fails
     */
    CompletionStage<List<Held>> reserveShadows(Function<Claim, CompletionStage<Reservation>> reserving) {
        List<Held> held = new ArrayList<>();
        CompletionStage<List<Held>> asked = CompletableFuture.completedFuture(held);
        for (LimitRequest shadow : requests) {
            if (shadow.policy() == Policy.SHADOW) {
                asked = shadow.denied()
                        ? asked.whenComplete(
                                (all, none) -> reports.report(shadow, Outcome.SHADOWED, 0, current, shadow::denial))
                        : asked.thenCompose(all -> reserving.apply(shadow)).handle((member, failure) -> {
                            hold(shadow, member, failure, held);
                            return held;
                        });
            }
        }
        return asked;
    }

    private void hold(LimitRequest shadow, @Nullable Reservation member, @Nullable Throwable failure, List<Held> held) {
        if (member == null) {
            LOG.warn("Rate limit '" + shadow.limit().name() + "' could not count a call: " + failure);
            return;
        }
        held.add(new Held(shadow, member));
        Outcome outcome = member.isRefused() ? Outcome.SHADOWED : Outcome.ADMITTED;
        reports.report(shadow, outcome, 0, current, member::decision);
    }

    /** @param reservation of the limits that can refuse the call; null if there are none */
    Admission admission(@Nullable Reservation reservation, List<Held> shadows) {
        return new Admission(enforced, reservation, shadows, current, reports);
    }
}
