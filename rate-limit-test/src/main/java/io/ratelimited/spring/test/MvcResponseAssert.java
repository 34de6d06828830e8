package io.ratelimited.spring.test;

import java.time.Duration;
import org.springframework.mock.web.MockHttpServletResponse;
import org.springframework.test.json.JsonConverterDelegate;
import org.springframework.test.web.servlet.assertj.AbstractMockHttpServletResponseAssert;
import org.springframework.test.web.servlet.assertj.MvcTestResult;

/**
 * {@link ResponseAssert} for {@code MockMvcTester}, with Spring's assertions on responses: status, headers and body. For
 * other assertions, such as on the handler, use {@code result.assertThat()}.
 */
public final class MvcResponseAssert extends AbstractMockHttpServletResponseAssert<MvcResponseAssert, MvcTestResult> {

    private final ResponseFacts response;

    MvcResponseAssert(MvcTestResult actual) {
        super((JsonConverterDelegate) null, actual, MvcResponseAssert.class);
        MockHttpServletResponse got = actual.getResponse();
        this.response = new ResponseFacts(
                info,
                actual.getRequest().isAsyncStarted() && !got.isCommitted(),
                got.getStatus(),
                got::getHeader,
                got::getContentAsByteArray);
    }

    @Override
    protected MockHttpServletResponse getResponse() {
        return actual.getResponse();
    }

    /** As {@link ResponseAssert#isRateLimited()}. */
    public MvcResponseAssert isRateLimited() {
        return isRateLimited(429);
    }

    /** As {@link ResponseAssert#isRateLimited(int)}. */
    public MvcResponseAssert isRateLimited(int status) {
        response.isRateLimited(status);
        return this;
    }

    /** As {@link ResponseAssert#isNotRateLimited()}. */
    public MvcResponseAssert isNotRateLimited() {
        response.isNotRateLimited();
        return this;
    }

    /** As {@link ResponseAssert#by}. */
    public MvcResponseAssert by(String limit) {
        response.by(limit);
        return this;
    }

    /** As {@link ResponseAssert#retryAfter}. */
    public MvcResponseAssert retryAfter(Duration expected) {
        response.retryAfter(expected);
        return this;
    }

    /** As {@link ResponseAssert#noRetryAfter}. */
    public MvcResponseAssert noRetryAfter() {
        response.noRetryAfter();
        return this;
    }

    /** As {@link ResponseAssert#remaining}. */
    public MvcResponseAssert remaining(long expected) {
        response.remaining(expected);
        return this;
    }
}
