package io.ratelimited.spring.autoconfigure.web.servlet;

import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.bean.InternalConfiguration;
import io.ratelimited.spring.internals.web.RouteLimits;
import io.ratelimited.spring.internals.web.servlet.HeadersFilter;
import io.ratelimited.spring.internals.web.servlet.RejectionFilter;
import io.ratelimited.spring.internals.web.servlet.RejectionPage;
import io.ratelimited.spring.internals.web.servlet.ServletRejections;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.web.servlet.FilterRegistrationBean;

/** The filters that each server of an application has, whether it serves the application or the management port. */
@InternalConfiguration
class ServletFilterConfiguration {

    @InternalBean("io.ratelimited.rateLimitFieldsFilter")
    FilterRegistrationBean<HeadersFilter> rateLimitFieldsFilter(RouteLimits limits) {
        return registered(new HeadersFilter(limits), HeadersFilter.ORDER, DispatcherType.ASYNC, DispatcherType.ERROR);
    }

    @InternalBean("io.ratelimited.rateLimitRefusalFilter")
    FilterRegistrationBean<RejectionFilter> rateLimitRefusalFilter(
            ServletRejections refusals, ObjectProvider<RejectionPage.Pages> pages) {
        RejectionPage page = new RejectionPage(pages.getIfAvailable(() -> name -> null));
        return registered(
                new RejectionFilter(refusals, page),
                RejectionFilter.ORDER,
                DispatcherType.ASYNC,
                DispatcherType.ERROR,
                DispatcherType.FORWARD);
    }

    static <F extends Filter> FilterRegistrationBean<F> registered(F filter, int order, DispatcherType... dispatches) {
        FilterRegistrationBean<F> registered = new FilterRegistrationBean<>(filter);
        registered.setOrder(order);
        registered.setDispatcherTypes(DispatcherType.REQUEST, dispatches);
        return registered;
    }
}
