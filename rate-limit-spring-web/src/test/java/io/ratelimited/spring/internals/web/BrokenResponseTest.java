package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.overload.RecordingBackend;
import io.ratelimited.spring.internals.web.servlet.HeadersFilter;
import io.ratelimited.spring.internals.web.servlet.RateLimitFilter;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.mock.web.MockAsyncContext;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;

/** Jetty may report nothing of an asynchronous response whose client has gone: a write that fails ends it. */
class BrokenResponseTest {

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void theResponseEndsForItsRouteWithTheWriteThatFails(boolean whileItIsDispatched) {
        RouteFilters.limited(
                        new ManualTicker(),
                        "rate-limit.limits.place.algorithm=concurrency",
                        "rate-limit.limits.place.max-concurrent=1")
                .run(context -> {
                    RateLimitFilter routes = RouteFilters.servlet(context, "place");
                    HeadersFilter headers = new HeadersFilter(RouteFilters.routes(
                            context, new RouteProperties("/**", null, null, List.of("place"), null, null)));
                    RateLimits limits = context.getBean(RateLimits.class);
                    MockHttpServletRequest request = new MockHttpServletRequest("GET", "/events");
                    request.setAsyncSupported(true);
                    AtomicReference<ServletOutputStream> body = new AtomicReference<>();
                    FilterChain handler = (served, response) -> {
                        served.startAsync();
                        body.set(response.getOutputStream());
                        if (whileItIsDispatched) {
                            assertThatThrownBy(response::flushBuffer).isInstanceOf(IOException.class);
                            assertThat(limits.peek("place", null).remaining()).isZero();
                        }
                    };
                    headers.doFilter(
                            request,
                            new Disconnected(),
                            (served, response) -> routes.doFilter(served, response, handler));
                    if (!whileItIsDispatched) {
                        assertThat(limits.peek("place", null).remaining()).isZero();
                        assertThatThrownBy(() -> body.get().write('x')).isInstanceOf(IOException.class);
                    }
                    assertThat(limits.peek("place", null).remaining()).isEqualTo(1);
                });
    }

    /** Jetty loses a timeout that passes before Jetty has noted its timer, and tells no listener of it. */
    @Test
    void theResponseEndsForItsRouteFiveSecondsAfterATimeoutThatIsLostUnlessItGoesOn() {
        ManualTicker ticker = new ManualTicker();
        RouteFilters.limited(
                        ticker,
                        "rate-limit.limits.kept.algorithm=concurrency",
                        "rate-limit.limits.kept.max-concurrent=2",
                        "rate-limit.limits.lost.algorithm=concurrency",
                        "rate-limit.limits.lost.max-concurrent=1")
                .run(context -> {
                    HeadersFilter headers = new HeadersFilter(RouteFilters.routes(
                            context, new RouteProperties("/**", null, null, List.of("kept"), null, null)));
                    RateLimits limits = context.getBean(RateLimits.class);
                    MockHttpServletRequest timedOut = started(headers, RouteFilters.servlet(context, "kept"), 1);
                    MockHttpServletRequest dispatched = started(headers, RouteFilters.servlet(context, "kept"), 1);
                    started(headers, RouteFilters.servlet(context, "lost"), 1);
                    MockAsyncContext processing = Objects.requireNonNull((MockAsyncContext) timedOut.getAsyncContext());
                    for (AsyncListener listener : processing.getListeners()) {
                        listener.onTimeout(new AsyncEvent(processing));
                    }
                    dispatched.setDispatcherType(DispatcherType.ASYNC);
                    dispatched.setAsyncStarted(false);
                    headers.doFilter(dispatched, new MockHttpServletResponse(), (served, response) -> {
                        ticker.advance(Duration.ofMillis(5_000));
                        assertThat(limits.peek("lost", null).remaining()).isZero();
                        ticker.advance(Duration.ofMillis(1));
                        assertThat(limits.peek("lost", null).remaining()).isEqualTo(1);
                        assertThat(limits.peek("kept", null).remaining()).isZero();
                    });
                });
    }

    @Test
    void aResponseWithAnErrorThatTheServerReportsHasFailed() {
        RecordingBackend backend = new RecordingBackend();
        RouteFilters.limited(
                        new ManualTicker(),
                        "rate-limit.limits.place.algorithm=concurrency",
                        "rate-limit.limits.place.max-concurrent=1",
                        "rate-limit.limits.place.backend=recording")
                .withBean(RecordingBackend.class, () -> backend)
                .run(context -> {
                    HeadersFilter headers = new HeadersFilter(RouteFilters.routes(
                            context, new RouteProperties("/**", null, null, List.of("place"), null, null)));
                    MockHttpServletRequest request = started(headers, RouteFilters.servlet(context, "place"), 0);
                    MockAsyncContext processing = Objects.requireNonNull((MockAsyncContext) request.getAsyncContext());
                    for (AsyncListener listener : processing.getListeners()) {
                        listener.onError(new AsyncEvent(processing, new IllegalStateException("broken")));
                    }
                    assertThat(backend.ends).containsExactly("FAILED");
                });
    }

    private static MockHttpServletRequest started(HeadersFilter headers, RateLimitFilter routes, long timeoutMillis)
            throws Exception {
        MockHttpServletRequest request = new MockHttpServletRequest("GET", "/events");
        request.setAsyncSupported(true);
        FilterChain handler = (served, response) -> served.startAsync().setTimeout(timeoutMillis);
        headers.doFilter(
                request,
                new MockHttpServletResponse(),
                (served, response) -> routes.doFilter(served, response, handler));
        return request;
    }

    /** A mock's flush may not fail. */
    private static final class Disconnected extends HttpServletResponseWrapper {

        private Disconnected() {
            super(new MockHttpServletResponse());
        }

        @Override
        public ServletOutputStream getOutputStream() {
            return new ServletOutputStream() {
                @Override
                public boolean isReady() {
                    return true;
                }

                @Override
                public void setWriteListener(WriteListener listener) {}

                @Override
                public void write(int one) throws IOException {
                    throw new IOException("the client has gone");
                }
            };
        }

        @Override
        public void flushBuffer() throws IOException {
            throw new IOException("the client has gone");
        }
    }
}
