package io.ratelimited.spring.autoconfigure.web.servlet;

import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.web.servlet.ServletRequests;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingFilterBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Role;
import org.springframework.web.context.request.RequestContextListener;
import org.springframework.web.filter.RequestContextFilter;

/**
 * Keeps the request of plain servlets where Spring keeps it, so that keys find it: Spring Boot does so for Spring MVC and Jersey
 * alone.
 */
@AutoConfiguration(
        after = ServletRateLimitAutoConfiguration.class,
        afterName = {
            "org.springframework.boot.webmvc.autoconfigure.WebMvcAutoConfiguration",
            "org.springframework.boot.jersey.autoconfigure.JerseyAutoConfiguration"
        })
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
@ConditionalOnBean(ServletRequests.class)
public final class ServletRequestAutoConfiguration {

    /** As that of Spring Boot: behind filters that wrap requests, before Spring Security. */
    private static final int ORDER = -105;

    @InternalBean("io.ratelimited.rateLimitRequestContextFilter")
    @ConditionalOnMissingBean(RequestContextListener.class)
    @ConditionalOnMissingFilterBean(RequestContextFilter.class) // two conditions deduce no type
    FilterRegistrationBean<RequestContextFilter> rateLimitRequestContextFilter() {
        return requestContextFilter();
    }

    static FilterRegistrationBean<RequestContextFilter> requestContextFilter() {
        FilterRegistrationBean<RequestContextFilter> registered =
                new FilterRegistrationBean<>(new RequestContextFilter());
        registered.setOrder(ORDER);
        return registered;
    }
}
