package io.ratelimited.spring.test;

import io.ratelimited.core.Decision;
import java.time.Duration;
import java.util.Objects;
import org.assertj.core.api.AbstractObjectAssert;
import org.jspecify.annotations.Nullable;

/** Assertions on a {@link Decision}. Times are exact to the nanosecond. */
public final class DecisionAssert extends AbstractObjectAssert<DecisionAssert, Decision> {

    DecisionAssert(Decision actual) {
        super(actual, DecisionAssert.class);
    }

    /** Fails unless the call was rejected. */
    public DecisionAssert isRateLimited() {
        return require(!decision().admitted(), "a rejection", "the call was admitted");
    }

    /** Fails if the call was rejected; it may have to wait. */
    public DecisionAssert isNotRateLimited() {
        return require(decision().admitted(), "an admitted call", "it was rejected");
    }

    /** Fails unless the limit of this name has decided. */
    public DecisionAssert by(String limit) {
        return equal("limit", limit, decision().limit());
    }

    /** Fails unless the call was rejected, and a retry is admitted after exactly this time if there are no other calls. */
    public DecisionAssert retryAfter(Duration expected) {
        return equal("retryAfter", expected, decision().retryAfter());
    }

    /** Fails unless no retry can ever succeed, because the call needs more permits than the limit can ever admit. */
    public DecisionAssert never() {
        return require(decision().never(), "a rejection without a possible retry", "a retry can succeed");
    }

    /** Fails unless the call was rejected because the limit has blocked its key. */
    public DecisionAssert isBlocked() {
        return require(decision().blocked(), "a blocked key", "it is not blocked");
    }

    /** Fails unless exactly this number of calls of one permit would be admitted now. */
    public DecisionAssert remaining(long expected) {
        return equal("remaining", expected, decision().remaining());
    }

    /** Fails unless the call was admitted and can proceed after exactly this time; zero for immediately. */
    public DecisionAssert waits(Duration expected) {
        isNotRateLimited();
        return equal("waitTime", expected, decision().waitTime());
    }

    private Decision decision() {
        isNotNull();
        return actual;
    }

    private DecisionAssert equal(String property, Object expected, @Nullable Object found) {
        return require(Objects.equals(expected, found), property + " " + expected, property + " is " + found);
    }

    private DecisionAssert require(boolean condition, String expected, String found) {
        if (!condition) {
            failWithMessage("%nExpected %s, but %s:%n  %s", expected, found, actual);
        }
        return this;
    }
}
