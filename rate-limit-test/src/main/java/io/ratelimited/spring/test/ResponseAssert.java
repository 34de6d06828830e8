package io.ratelimited.spring.test;

import java.time.Duration;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.assertj.core.api.AbstractObjectAssert;
import org.jspecify.annotations.Nullable;

/** Assertions on what a response says of rate limits. */
public final class ResponseAssert<A> extends AbstractObjectAssert<ResponseAssert<A>, A> {

    private final ResponseFacts response;

    ResponseAssert(
            A actual, int status, UnaryOperator<@Nullable String> header, Supplier<? extends @Nullable Object> body) {
        super(actual, ResponseAssert.class);
        this.response = new ResponseFacts(info, status, header, body);
    }

    /** Fails unless the status is 429. */
    public ResponseAssert<A> isRateLimited() {
        return isRateLimited(429);
    }

    /** Fails unless the status is that of {@code rate-limit.http.status}, or of the application's own answer to rejections. */
    public ResponseAssert<A> isRateLimited(int status) {
        response.isRateLimited(status);
        return this;
    }

    /** Fails if the status is 429, or the body is the problem detail of a rejection. */
    public ResponseAssert<A> isNotRateLimited() {
        response.isNotRateLimited();
        return this;
    }

    /**
     * Fails unless the problem detail names this limit; for a body that was read as text, bytes or a {@code ProblemDetail}. For a
     * page, which browsers get, by the field {@code RateLimit}.
     */
    public ResponseAssert<A> by(String limit) {
        response.by(limit);
        return this;
    }

    /** Fails unless {@code Retry-After} is this time in whole seconds, rounded up and at least 1, as responses have it. */
    public ResponseAssert<A> retryAfter(Duration expected) {
        response.retryAfter(expected);
        return this;
    }

    /** Fails if there is a {@code Retry-After}: rejections for good have none, and those of calls in flight. */
    public ResponseAssert<A> noRetryAfter() {
        response.noRetryAfter();
        return this;
    }

    /** Fails unless so much remains by the field {@code RateLimit}, of several limits the least, or by {@code X-RateLimit-Remaining}. */
    public ResponseAssert<A> remaining(long expected) {
        response.remaining(expected);
        return this;
    }
}
