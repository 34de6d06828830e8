package io.ratelimited.spring.autoconfigure.web.servlet;

import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.web.servlet.RejectionPage;
import io.ratelimited.spring.internals.web.servlet.ServletRejections;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.actuate.autoconfigure.web.ManagementContextConfiguration;
import org.springframework.boot.actuate.autoconfigure.web.ManagementContextType;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Role;
import org.springframework.web.filter.RequestContextFilter;

/**
 * The filters of the server of a management port. It has none of the application but that of Spring Security, which checks
 * passwords there too. Routes count nothing on it.
 */
@ManagementContextConfiguration(value = ManagementContextType.CHILD, proxyBeanMethods = false)
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
@ConditionalOnBean(ServletRejections.class)
@Import(ServletFilterConfiguration.class)
final class ManagementPortConfiguration {

    /** Spring Boot's own page of that server is JSON, so browsers that accept nothing else would get 406. */
    @InternalBean("io.ratelimited.rateLimitErrorPages")
    RejectionPage.Pages rateLimitErrorPages(ServletRejections refusals) {
        return RejectionPage.none(refusals);
    }

    /** Spring Boot leaves its own out if the application has one, which that server does not have. A second one changes nothing. */
    @InternalBean("io.ratelimited.rateLimitRequestContextFilter")
    FilterRegistrationBean<RequestContextFilter> rateLimitRequestContextFilter() {
        return ServletRequestAutoConfiguration.requestContextFilter();
    }
}
