package io.ratelimited.spring.test;

import java.time.Duration;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import org.assertj.core.api.AbstractObjectAssert;
import org.jspecify.annotations.Nullable;

/** Assertions on the rate limit status and headers of a response. */
public final class ResponseAssert<A> extends AbstractObjectAssert<ResponseAssert<A>, A> {

    private final ResponseFacts response;

    ResponseAssert(
            A actual, int status, UnaryOperator<@Nullable String> header, Supplier<? extends @Nullable Object> body) {
        this(actual, false, status, header, body);
    }

    ResponseAssert(
            A actual,
            boolean pending,
            int status,
            UnaryOperator<@Nullable String> header,
            Supplier<? extends @Nullable Object> body) {
        super(actual, ResponseAssert.class);
        this.response = new ResponseFacts(info, pending, status, header, body);
    }

    /** Fails unless the status is 429. */
    public ResponseAssert<A> isRateLimited() {
        return isRateLimited(429);
    }

    /**
     * Fails unless the response has this status: that of {@code rate-limit.http.status}, or of the application's own response
     * to rejections.
     */
    public ResponseAssert<A> isRateLimited(int status) {
        response.isRateLimited(status);
        return this;
    }

    /**
     * Fails if the status is 429, or that of another error with the problem detail of a rejection. The body of a response with a
     * status below 400 is not read: it may be a stream without end.
     */
    public ResponseAssert<A> isNotRateLimited() {
        response.isNotRateLimited();
        return this;
    }

    /**
     * Fails unless the problem detail names this limit; the body must be text, bytes or a {@code ProblemDetail}. For an HTML
     * page, and for a response with a status below 400, the header {@code RateLimit} is read instead.
     */
    public ResponseAssert<A> by(String limit) {
        response.by(limit);
        return this;
    }

    /** Fails unless {@code Retry-After} is this time, rounded up to whole seconds, at least 1. */
    public ResponseAssert<A> retryAfter(Duration expected) {
        response.retryAfter(expected);
        return this;
    }

    /**
     * Fails if there is a {@code Retry-After}. There is none if no retry can succeed, or if the limit counts calls in flight.
     */
    public ResponseAssert<A> noRetryAfter() {
        response.noRetryAfter();
        return this;
    }

    /**
     * Fails unless the header {@code RateLimit}, or {@code X-RateLimit-Remaining}, has this number of remaining permits; of
     * several limits, the smallest number counts.
     */
    public ResponseAssert<A> remaining(long expected) {
        response.remaining(expected);
        return this;
    }
}
