package io.ratelimited.spring.test;

import io.ratelimited.core.RateLimitExceededException;
import org.assertj.core.api.AbstractAssert;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.jspecify.annotations.Nullable;

/** Assertions on a call of a limited method. Each makes the call; not thread-safe. */
public final class CallAssert extends AbstractAssert<CallAssert, ThrowingCallable> {

    CallAssert(ThrowingCallable call) {
        super(call, CallAssert.class);
    }

    /**
     * Makes the call, and fails unless it throws a {@link RateLimitExceededException}, or an exception with such a cause.
     *
     * @return assertions on the decision that rejected it
     */
    public DecisionAssert isRateLimited() {
        RateLimitExceededException refusal = call();
        if (refusal == null) {
            failWithMessage("No rate limit rejected the call: it returned.");
            throw new AssertionError();
        }
        return new DecisionAssert(refusal.decision()).as(descriptionText());
    }

    /** Makes the call, and fails if a rate limit rejects it. Any other exception of the call is thrown. */
    public CallAssert isNotRateLimited() {
        RateLimitExceededException refusal = call();
        if (refusal != null) {
            failWithMessage("A rate limit rejected the call: %s", refusal.decision());
        }
        return this;
    }

    /** The rejection; null when the call returned. */
    private @Nullable RateLimitExceededException call() {
        try {
            actual.call();
            return null;
        } catch (Throwable thrown) {
            for (Throwable cause = thrown; cause != null; cause = cause.getCause()) {
                if (cause instanceof RateLimitExceededException refusal) {
                    return refusal;
                }
            }
            throw CallAssert.<RuntimeException>sneaky(thrown);
        }
    }

    @SuppressWarnings({"unchecked", "TypeParameterUnusedInFormals"})
    private static <T extends Throwable> T sneaky(Throwable thrown) throws T {
        throw (T) thrown;
    }
}
