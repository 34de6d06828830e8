package io.ratelimited.spring.call;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.several.Claim;
import io.ratelimited.spring.limit.ConfiguredLimit;
import java.time.Duration;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The request of one call to one limit. Its values do not change while the call is decided.
 *
 * @param limit the limit that is asked
 * @param enforcement what applied when the call began
 * @param limiter its limiter, or that of the caller's tier or own budget
 * @param key whose budget; null for a limit without keys and for a missing key
 * @param permits 0 or more; 0 asks for nothing
 * @param denied the key is missing, and the limit denies such calls
 * @param once names this use of the limit if it charges a web request only once; null if it charges every call
 * @param charge finds what the call has really cost; null if it costs what it takes
 */
public record LimitRequest(
        ConfiguredLimit limit,
        ConfiguredLimit.Enforcement enforcement,
        RateLimiter limiter,
        @Nullable Object key,
        long permits,
        boolean denied,
        @Nullable String once,
        @Nullable Charge charge)
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

    /** The request of a call to a limit without expressions. */
    public static LimitRequest of(ConfiguredLimit limit, @Nullable Object key, long permits) {
        RateLimiter limiter = limit.limiterOf(key, limit.limiter());
        return new LimitRequest(limit, limit.enforcement(), limiter, key, permits, false, null, null);
    }

    /** Whether the policy has not changed since the request was made. */
    public boolean isCurrent() {
        return enforcement.equals(limit.enforcement());
    }

    /** Whether the call may be admitted without a reservation. */
    boolean mayTry() {
        return !denied && charge == null && enforcement.mayTry();
    }

    /** The budget as it is now, for a call that does not wait: describes a decision without a reservation on demand. */
    @Override
    public Decision get() {
        return limiter.peek(key, permits, 0);
    }

    /** The decision on a call whose key is missing. */
    Decision denial() {
        return new Decision(limit.name(), false, Duration.ZERO, null, true, 0, Duration.ZERO, Decision.Source.MEMORY);
    }

    /** The decision on a call that waited too long before any limit was asked; the limit might admit the next one. */
    Decision timeOver() {
        return new Decision(limit.name(), false, Duration.ZERO, null, false, 0, Duration.ZERO, Decision.Source.MEMORY);
    }

    /** The claim of a caller that may not wait as long as others; a negative time is none. */
    Claim claim(long longestWaitNanos) {
        return Claim.of(limiter, key, permits, Math.max(0, longestWaitNanos));
    }
}
