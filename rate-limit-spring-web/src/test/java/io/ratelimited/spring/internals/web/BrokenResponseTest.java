package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.servlet.HeadersFilter;
import io.ratelimited.spring.internals.web.servlet.RateLimitFilter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
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
