package io.ratelimited.spring.autoconfigure.web.servlet;

import io.ratelimited.spring.internals.web.servlet.RateLimitFilter;
import jakarta.servlet.Filter;
import java.util.List;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.ApplicationContext;
import org.springframework.web.filter.HiddenHttpMethodFilter;

/** Finds a filter that gives requests another method when the routes have decided about them. */
final class HiddenMethods {

    private HiddenMethods() {}

    /** Returns whether such a filter stands behind the first one of routes, as a bean or by its registration. */
    static boolean areBehindRoutes(ApplicationContext context) {
        List<FilterRegistrationBean<?>> registered = context.getBeanProvider(FilterRegistrationBean.class).stream()
                .<FilterRegistrationBean<?>>map(bean -> bean)
                .toList();
        int routes = context.getBeanProvider(RateLimitFilter.class).stream()
                .mapToInt(RateLimitFilter::getOrder)
                .min()
                .orElse(Integer.MAX_VALUE);
        return registered.stream()
                        .anyMatch(
                                bean -> bean.getOrder() > routes && bean.getFilter() instanceof HiddenHttpMethodFilter)
                || context.getBeanProvider(Filter.class)
                        .orderedStream()
                        .dropWhile(filter -> !(filter instanceof RateLimitFilter))
                        .filter(HiddenHttpMethodFilter.class::isInstance)
                        .anyMatch(filter -> registered.stream().noneMatch(bean -> bean.getFilter() == filter));
    }
}
