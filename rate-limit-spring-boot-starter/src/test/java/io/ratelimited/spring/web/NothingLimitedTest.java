package io.ratelimited.spring.web;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.ratelimited.spring.RateLimitAutoConfiguration;
import jakarta.servlet.FilterChain;
import java.lang.management.ManagementFactory;
import java.util.Collections;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;
import org.springframework.web.servlet.HandlerInterceptor;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;

/** An application with the starter and without a limit has nothing to do for a request. */
class NothingLimitedTest {

    private static final int REQUESTS = 1_000;

    private final WebApplicationContextRunner runner = new WebApplicationContextRunner()
            .withConfiguration(
                    AutoConfigurations.of(RateLimitAutoConfiguration.class, ServletRateLimitAutoConfiguration.class));

    @Test
    void theFilterHandsTheRequestOnAsItIs() {
        runner.run(context -> {
            MockHttpServletRequest request = new MockHttpServletRequest("GET", "/");
            MockHttpServletResponse response = new MockHttpServletResponse();
            AtomicReference<Object> seen = new AtomicReference<>();

            context.getBean(RateLimitFilter.class)
                    .doFilter(
                            request,
                            response,
                            (passed, answered) -> seen.set(passed == request && answered == response));

            assertThat(seen).hasValue(true);
            assertThat(Collections.list(request.getAttributeNames())).isEmpty();
            assertThat(response.getHeaderNames()).isEmpty();
        });
    }

    @Test
    void theFilterAllocatesNothing() {
        runner.run(context -> {
            RateLimitFilter filter = context.getBean(RateLimitFilter.class);
            MockHttpServletRequest request = new MockHttpServletRequest("GET", "/");
            MockHttpServletResponse response = new MockHttpServletResponse();
            FilterChain chain = (passed, answered) -> {};
            ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
            filter.doFilter(request, response, chain);

            long before = threads.getCurrentThreadAllocatedBytes();
            for (int i = 0; i < REQUESTS; i++) {
                filter.doFilter(request, response, chain);
            }
            long bytes = threads.getCurrentThreadAllocatedBytes() - before;

            // Reading the counter allocates, but less than one object a request.
            assertThat(bytes).isLessThan(16 * REQUESTS);
        });
    }

    @Test
    void noInterceptorStandsInTheWay() {
        runner.run(context ->
                assertThat(context).doesNotHaveBean(HandlerInterceptor.class).doesNotHaveBean(WebMvcConfigurer.class));
    }

    @Test
    void theFirstLimitEndsIt() {
        runner.withPropertyValues("rate-limit.limits.search.rate=5/m").run(context -> {
            MockHttpServletRequest request = new MockHttpServletRequest("GET", "/");

            context.getBean(RateLimitFilter.class).doFilter(request, new MockHttpServletResponse(), (passed, to) -> {});

            assertThat(Collections.list(request.getAttributeNames())).isNotEmpty();
        });
    }
}
