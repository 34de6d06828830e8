package io.ratelimited.spring.test;

import io.ratelimited.core.Decision;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/**
 * Assertions that need no web: {@code assertThatCall(() -> login.attempt("ann")).isRateLimited()}. To be imported statically
 * in the tests of an application without Spring Web; others import {@link RateLimitAssertions}, which has these too.
 */
public class DecisionAssertions {

    DecisionAssertions() {}

    /** Begins an assertion on a decision, as {@code RateLimits.peek} returns it. */
    public static DecisionAssert assertThat(Decision actual) {
        return new DecisionAssert(actual);
    }

    /** Begins an assertion on a call, which is made by the assertion that follows. */
    public static CallAssert assertThatCall(ThrowingCallable call) {
        return new CallAssert(call);
    }
}
