package io.ratelimited.spring.internals.call;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.internals.candidates.CandidateTracker;
import io.ratelimited.core.several.Claim;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.limit.RequestThreads;
import io.ratelimited.spring.internals.limit.Sleeper;
import io.ratelimited.spring.internals.limit.Sleeper.Standing;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The request of one call to one limit. Its values do not change while the call is decided.
 *
 * @param limit the limit that is asked
 * @param enforcement the rules that applied when the call began
 * @param limiter its limiter, or that of the caller's tier or own budget
 * @param key the key of the budget; null for a limit without keys and for a missing key
 * @param permits 0 or more; 0 asks for nothing
 * @param denied the key is missing, and the limit denies such calls
 * @param rank the number of the class of the call; {@link RateLimiter#NO_RANK} if it states none
 * @param once names this use of the limit if it charges a web request only once; null if it charges every call
 * @param charge finds the real cost of the call; null if it costs the permits that it takes
 * @param patienceNanos the longest wait that the policy allows, however long the call can wait now
 * @param isExemptFromBlocks whether a block of the key does not matter to the call
 */
public record LimitRequest(
        ConfiguredLimit limit,
        ConfiguredLimit.Enforcement enforcement,
        RateLimiter limiter,
        @Nullable Object key,
        long permits,
        boolean denied,
        int rank,
        @Nullable String once,
        @Nullable Charge charge,
        long patienceNanos,
        boolean isExemptFromBlocks)
        implements Claim, Supplier<Decision> {

    /** The requests of a call that no limit applies to. */
    public static final LimitRequest[] NONE = {};

    @Override
    public long maxWaitNanos() {
        return enforcement.maxWaitNanos();
    }

    /** The policy for calls over the limit. */
    Policy policy() {
        return enforcement.policy();
    }

    /**
     * The request of a call to a limit without expressions.
     *
     * @param priority the class of the call; null for none
     * @throws IllegalArgumentException when the limit has no keys
     */
    public static LimitRequest of(
            ConfiguredLimit limit, @Nullable Object key, long permits, @Nullable String priority) {
        limit.requireKeyless(key);
        RateLimiter limiter = limit.limiterOf(key);
        int rank = limit.classes().rank(limiter, priority);
        ConfiguredLimit.Enforcement enforcement = limit.enforcement();
        return new LimitRequest(
                limit, enforcement, limiter, key, permits, false, rank, null, null, enforcement.maxWaitNanos(), false);
    }

    /** The requests that can refuse a call: all but those to limits under {@link Policy#SHADOW}; the same array if all can. */
    static LimitRequest[] enforced(LimitRequest[] requests) {
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

    /** Returns whether a limit lets the call wait. */
    static boolean mayWait(LimitRequest[] enforced) {
        for (LimitRequest request : enforced) {
            if (request.policy() == Policy.WAIT) {
                return true;
            }
        }
        return false;
    }

    /** The most callers that a property of a limit that lets calls wait allows to sleep at once; 0 where none says so. */
    static int statedMaxWaiting(LimitRequest[] enforced) {
        int most = 0;
        for (LimitRequest request : enforced) {
            if (request.policy() == Policy.WAIT) {
                most = Math.max(most, request.limit.statedMaxWaiting(request.limiter));
            }
        }
        return most;
    }

    /** Returns whether there is a place among those who sleep in the threads that serve requests. */
    static boolean maySleep(LimitRequest[] enforced, RequestThreads threads) {
        return threads.isRoomy() || threads.mayEnter(statedMaxWaiting(enforced), sleeper(enforced));
    }

    /** The call, for the time that it sleeps in its thread. */
    static Sleeper sleeper(LimitRequest[] enforced) {
        List<Object> callers = new ArrayList<>(enforced.length);
        List<Standing> standings = new ArrayList<>(1);
        for (LimitRequest request : enforced) {
            if (request.policy() != Policy.WAIT) {
                continue;
            }
            Caller caller = new Caller(request.limit.name(), request.key);
            if (request.key != null || request.limit.isKeyed()) {
                callers.add(caller);
            }
            Limit asked = request.limiter.limit();
            if (!asked.priorities().isEmpty()) {
                int rank = request.rank == RateLimiter.NO_RANK ? asked.rankOfOthers() : request.rank;
                standings.add(new Standing(caller, rank));
            }
        }
        return new Sleeper(callers, standings);
    }

    /** A caller of a limit; those without a key count as one. */
    private record Caller(String limit, @Nullable Object key) {}

    /**
     * The request of a call to its limits.
     *
     * @param waitedNanos for which the call has waited already
     */
    static Claim[] claims(LimitRequest[] enforced, boolean maySleep, long waitedNanos) {
        return maySleep && waitedNanos == 0
                ? enforced
                : Arrays.stream(enforced)
                        .map(request -> Claim.of(
                                request.limiter,
                                request.key,
                                request.permits,
                                maySleep ? Math.max(0, request.maxWaitNanos() - waitedNanos) : 0,
                                request.rank(),
                                request.patienceNanos(),
                                request.isExemptFromBlocks()))
                        .toArray(Claim[]::new);
    }

    /** Returns whether the limit does not let a call wait so long. */
    boolean isTimeOver(long waitedNanos) {
        return policy() == Policy.WAIT && waitedNanos > maxWaitNanos();
    }

    /**
     * The refusal of a call that has waited already, and that one of its limits refuses for it.
     *
     * @param left the claim of this request with the wait that is left
     * @return null if this limit does not refuse it
     */
    @Nullable
    Decision refusalAfter(long waitedNanos, Claim left) {
        Decision asked = limiter.peek(left);
        if (asked.admitted()) {
            return null;
        }
        // A call that came too late because there was no thread for it is no violation.
        return isTimeOver(waitedNanos) ? asked : limiter.refused(left, asked);
    }

    /** The same request for no permits, which costs only what it is charged when it has ended. */
    LimitRequest free() {
        return new LimitRequest(
                limit, enforcement, limiter, key, 0, denied, rank, once, null, patienceNanos, isExemptFromBlocks);
    }

    /**
     * Tries the candidates of the limit with a call that reaches it. Callers with a tier or an override have other numbers, and
     * a call whose key is missing and denied is rejected whatever the number is.
     *
     * @param waits whether the call waits where the policy of the limit is to wait
     */
    void tryCandidates(long asked, boolean waits) {
        CandidateTracker tracker = limit.candidates().tracker();
        if (tracker != null && !denied && limiter == limit.limiter()) {
            // Code without annotations says nothing of the cost in time.
            tracker.tried(key, asked, waits ? maxWaitNanos() : 0, charge != null);
        }
    }

    /** Charges the candidates of the limit with the cost of a call that has ended. */
    void chargeCandidates(long cost) {
        CandidateTracker tracker = limit.candidates().tracker();
        if (tracker != null && charge != null && limiter == limit.limiter()) {
            tracker.settled(key, permits, cost, maxWaitNanos());
        }
    }

    /** Returns whether the policy has not changed since the request was made. */
    public boolean isCurrent() {
        return enforcement.equals(limit.enforcement());
    }

    /** Returns whether the call may be admitted without a reservation. */
    boolean mayTry() {
        return !denied && charge == null && !isExemptFromBlocks && enforcement.mayTry();
    }

    /** {@link #ofAdmitted} of this call. */
    @Override
    public Decision get() {
        return ofAdmitted(limiter, key);
    }

    /** Describes the decision on a call that was admitted without a reservation: the budget as it is now, for no more permits. */
    static Decision ofAdmitted(RateLimiter limiter, @Nullable Object key) {
        return limiter.peek(Claim.of(limiter, key, 0, 0, RateLimiter.NO_RANK, 0, true));
    }

    /** The same request for a call that does not wait, whatever the policy is. */
    Claim atOnce() {
        return Claim.of(limiter, key, permits, 0, rank, patienceNanos, isExemptFromBlocks);
    }

    /** The decision on a call whose key is missing. */
    Decision denial() {
        return Decision.withoutKey(limit.name());
    }
}
