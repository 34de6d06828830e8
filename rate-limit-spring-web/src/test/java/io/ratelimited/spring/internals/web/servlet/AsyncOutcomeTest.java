package io.ratelimited.spring.internals.web.servlet;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CancellationException;
import org.junit.jupiter.api.Test;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;
import org.springframework.web.context.request.ServletWebRequest;
import org.springframework.web.context.request.async.DeferredResult;

class AsyncOutcomeTest {

    private final MockHttpServletRequest request = new MockHttpServletRequest();
    private final ServletWebRequest webRequest = new ServletWebRequest(request, new MockHttpServletResponse());
    private final DeferredResult<String> result = new DeferredResult<>();
    private final AsyncOutcome outcome = AsyncOutcome.of(request, request);

    /** Such as that of a long poll for which there is nothing new: its status says whether the service has too much to do. */
    @Test
    void aResponseThatIsMadeAtATimeoutHasNotFailed() {
        outcome.preProcess(webRequest, result);
        outcome.handleTimeout(webRequest, result);
        outcome.postProcess(webRequest, result, "nothing new");
        assertThat(outcome.failure()).isNull();
    }

    @Test
    void aResponseWhoseConnectionFailsIsCancelled() {
        outcome.preProcess(webRequest, result);
        outcome.handleError(webRequest, result, new IllegalStateException());
        assertThat(outcome.failure()).isInstanceOf(CancellationException.class);
    }
}
