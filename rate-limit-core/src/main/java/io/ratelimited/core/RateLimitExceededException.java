package io.ratelimited.core;

import java.io.Serial;
import java.time.Duration;
import java.util.List;

/**
 * A limit rejected a call: the call was over the limit, or the backend was unavailable ({@link Decision.Source#UNAVAILABLE}).
 * Cheap, because it has no stack trace. Its message names the limit, never the key. Immutable.
 */
public final class RateLimitExceededException extends RuntimeException {

    @Serial
    private static final long serialVersionUID = 1L;

    private final Decision decision;
    private final String[] limits;

    /** @param decision the rejection */
    public RateLimitExceededException(Decision decision) {
        this(decision, List.of(decision.limit()));
    }

    /**
     * Creates the rejection by several limits.
     *
     * @param decision the rejection with the longest wait time
     * @param limits the names of all limits that rejected
     */
    public RateLimitExceededException(Decision decision, List<String> limits) {
        super(null, null, false, false);
        this.decision = decision;
        this.limits = limits.toArray(String[]::new);
    }

    /**
     * Names of all limits that rejected, one or more: that of {@link #limit}, and those with a shorter wait time. Limits
     * whose backend is unavailable are only included if no other limit rejected.
     */
    public List<String> limits() {
        return List.of(limits);
    }

    /** Name of the limit that rejected; of several, the one with the longest wait time. */
    public String limit() {
        return decision.limit();
    }

    /** The rejection, with the time until a retry can succeed. */
    public Decision decision() {
        return decision;
    }

    /** Returns the limit and when to retry, in words; created on request, because most rejections become a response. */
    @Override
    public String getMessage() {
        if (decision.source() == Decision.Source.UNAVAILABLE) {
            return "Rate limit '" + decision.limit()
                    + "' is unavailable, and rejects every call until its backend has recovered";
        }
        if (decision.keyMissing()) {
            return "Rate limit '" + decision.limit()
                    + "' rejects calls without a key: the key is null or blank, and missing-key is deny";
        }
        String start = "Rate limit '" + decision.limit() + "' exceeded";
        if (decision.never()) {
            return start + ": the call needs more permits than the limit can ever admit";
        }
        Duration retryAfter = decision.retryAfter();
        return retryAfter == null ? start : start + ": retry after " + Rate.rounded(retryAfter);
    }
}
