package io.ratelimited.core;

import java.io.Serial;

/**
 * A call was over its limit and was refused. Unchecked and cheap: it has no stack trace. Its message names the limit,
 * never the key.
 */
public final class RateLimitExceededException extends RuntimeException {

    @Serial
    private static final long serialVersionUID = 1L;

    private final Decision decision;

    /** @param decision the refusal */
    public RateLimitExceededException(Decision decision) {
        super(describe(decision), null, false, false);
        this.decision = decision;
    }

    /** Name of the limit that refused. */
    public String limit() {
        return decision.limit();
    }

    /** The refusal, with its retry-after. */
    public Decision decision() {
        return decision;
    }

    private static String describe(Decision decision) {
        String start = "Rate limit '" + decision.limit() + "' exceeded";
        if (decision.never()) {
            return start + ": the call asks for more permits than the limit can ever give";
        }
        return decision.retryAfter() == null ? start : start + ": retry after " + decision.retryAfter();
    }
}
