package io.ratelimited.spring.autoconfigure.web;

import static org.assertj.core.api.Assertions.assertThat;

import com.sun.management.ThreadMXBean;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.servlet.ServletRateLimitAutoConfiguration;
import io.ratelimited.spring.internals.web.servlet.RateLimitFilter;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.ApplicationContext;
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
    void filtersHandTheRequestOnAsItIs() {
        runner.run(context -> {
            assertThat(filters(context)).isNotEmpty();
            for (Filter filter : filters(context)) {
                MockHttpServletRequest request = new MockHttpServletRequest("GET", "/");
                MockHttpServletResponse response = new MockHttpServletResponse();
                List<Object> passed = new ArrayList<>();

                filter.doFilter(request, response, (to, from) -> passed.addAll(List.of(to, from)));

                assertThat(passed).containsExactly(request, response);
                assertThat(Collections.list(request.getAttributeNames())).isEmpty();
                assertThat(response.getHeaderNames()).isEmpty();
            }
        });
    }

    @Test
    void filtersAllocateNothing() {
        runner.run(context -> {
            MockHttpServletRequest request = new MockHttpServletRequest("GET", "/");
            MockHttpServletResponse response = new MockHttpServletResponse();
            FilterChain chain = (to, from) -> {};
            ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
            for (Filter filter : filters(context)) {
                filter.doFilter(request, response, chain);
                long before = threads.getCurrentThreadAllocatedBytes();
                for (int i = 0; i < REQUESTS; i++) {
                    filter.doFilter(request, response, chain);
                }
                // Less than one object a request: what else the thread does at times may allocate.
                assertThat(threads.getCurrentThreadAllocatedBytes() - before).isLessThan(16 * REQUESTS);
            }
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

            for (Filter filter : filters(context)) {
                filter.doFilter(request, new MockHttpServletResponse(), (to, from) -> {});
            }

            assertThat(Collections.list(request.getAttributeNames())).isNotEmpty();
        });
    }

    @Test
    void theFilterBeforeSpringSecurityIsThereForItsRoutesOnly() {
        runner.withPropertyValues("rate-limit.limits.search.rate=5/m")
                .run(context -> assertThat(standsBeforeSecurity(context)).isFalse());
        runner.withPropertyValues(
                        "rate-limit.limits.search.rate=5/m",
                        "rate-limit.routes[0].path=/**",
                        "rate-limit.routes[0].limits=search")
                .run(context -> assertThat(standsBeforeSecurity(context)).isTrue());
    }

    private static boolean standsBeforeSecurity(ApplicationContext context) {
        return context.getBean("io.ratelimited.rateLimitBeforeSecurityFilterDispatches", FilterRegistrationBean.class)
                .isEnabled();
    }

    private static List<Filter> filters(ApplicationContext context) {
        List<Filter> filters =
                new ArrayList<>(context.getBeansOfType(RateLimitFilter.class).values());
        filters.add(context.getBean("io.ratelimited.rateLimitFieldsFilter", FilterRegistrationBean.class)
                .getFilter());
        return filters;
    }
}
