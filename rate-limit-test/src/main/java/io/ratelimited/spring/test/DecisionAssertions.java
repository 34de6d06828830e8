package io.ratelimited.spring.test;

import io.ratelimited.core.Decision;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/**
 * Assertions on decisions and calls, for static imports: {@code assertThatCall(() -> login.attempt("ann")).isRateLimited()}.
 * For applications without Spring Web; others import {@link RateLimitAssertions}, which includes them.
 */
public class DecisionAssertions {

    DecisionAssertions() {}

    /** Starts an assertion on a decision, such as that of {@code RateLimits.peek}. */
    public static DecisionAssert assertThat(Decision actual) {
        return new DecisionAssert(actual);
    }

    /**
     * Starts an assertion on a call, which the next assertion makes. Its result is ignored: if it is a {@code Mono}, a {@code
     * Flux} or a future, wait for it inside of the call, as in {@code assertThatCall(() -> quotes.latest().block())}. Without
     * that, {@link CallAssert#isNotRateLimited} passes, because a {@code Mono} is decided when it is subscribed to, and a
     * future is returned before it fails.
     */
    public static CallAssert assertThatCall(ThrowingCallable call) {
        return new CallAssert(call);
    }
}
