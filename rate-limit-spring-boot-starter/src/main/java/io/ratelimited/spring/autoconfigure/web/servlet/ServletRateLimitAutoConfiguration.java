package io.ratelimited.spring.autoconfigure.web.servlet;

import io.ratelimited.core.Ticker;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.RateLimitProperties;
import io.ratelimited.spring.fields.RateLimitHeaderWriter;
import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.bean.InternalConfiguration;
import io.ratelimited.spring.internals.boot.ForwardedHeadersCheck;
import io.ratelimited.spring.internals.boot.RouteConfiguration;
import io.ratelimited.spring.internals.call.LimitEnforcer;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.limit.RequestThreads;
import io.ratelimited.spring.internals.web.CatchAllCheck;
import io.ratelimited.spring.internals.web.ClientAddress;
import io.ratelimited.spring.internals.web.InvalidCallLog;
import io.ratelimited.spring.internals.web.LimitHeaders;
import io.ratelimited.spring.internals.web.Problems;
import io.ratelimited.spring.internals.web.RouteCheck;
import io.ratelimited.spring.internals.web.RouteLimits;
import io.ratelimited.spring.internals.web.RoutePatterns;
import io.ratelimited.spring.internals.web.StartedChecks;
import io.ratelimited.spring.internals.web.TrustedProxies;
import io.ratelimited.spring.internals.web.servlet.ForwardingFilters;
import io.ratelimited.spring.internals.web.servlet.LimitedProviders;
import io.ratelimited.spring.internals.web.servlet.MvcRejections;
import io.ratelimited.spring.internals.web.servlet.RateLimitFilter;
import io.ratelimited.spring.internals.web.servlet.RejectionPage;
import io.ratelimited.spring.internals.web.servlet.ServletCors;
import io.ratelimited.spring.internals.web.servlet.ServletHandlers;
import io.ratelimited.spring.internals.web.servlet.ServletLogins;
import io.ratelimited.spring.internals.web.servlet.ServletRejections;
import io.ratelimited.spring.internals.web.servlet.ServletRequests;
import io.ratelimited.spring.internals.web.servlet.ServletVersions;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.FilterChain;
import jakarta.ws.rs.ext.ExceptionMapper;
import java.util.List;
import java.util.OptionalInt;
import java.util.stream.Stream;
import org.glassfish.jersey.server.ResourceConfig;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.autoconfigure.condition.SearchStrategy;
import org.springframework.boot.json.JsonWriter;
import org.springframework.boot.thread.Threading;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.boot.webmvc.error.DefaultErrorAttributes;
import org.springframework.boot.webmvc.error.ErrorAttributes;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Role;
import org.springframework.core.env.Environment;
import org.springframework.security.authentication.ProviderManager;
import org.springframework.security.web.SecurityFilterChain;
import org.springframework.web.accept.ApiVersionStrategy;
import org.springframework.web.cors.CorsConfigurationSource;
import org.springframework.web.servlet.DispatcherServlet;

/** Wires keys, headers, refusals and routes of servlet applications. */
@AutoConfiguration(
        after = RateLimitAutoConfiguration.class,
        beforeName = "org.springframework.boot.webmvc.autoconfigure.error.ErrorMvcAutoConfiguration")
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
@ConditionalOnBean(RouteLimits.class)
@Import({RouteConfiguration.class, ServletFilterConfiguration.class})
public final class ServletRateLimitAutoConfiguration {

    /** Of Tomcat and of Jetty, where nothing is set; an application sets those of its own server only. */
    private static final int DEFAULT_THREADS = 200;

    @InternalBean("io.ratelimited.rateLimitServletRequests")
    ServletRequests rateLimitServletRequests(
            RateLimitProperties properties, Ticker ticker, ObjectProvider<RateLimitHeaderWriter> writers) {
        return new ServletRequests(
                ClientAddress.of(
                        properties.http().ipv6PrefixLength(), properties.http().translationPrefixes()),
                TrustedProxies.of(properties.http().trustedProxies()),
                new LimitHeaders.Style(properties.http().headers(), ticker, writers.getIfAvailable()));
    }

    @InternalBean("io.ratelimited.rateLimitRequestThreads")
    RequestThreads rateLimitRequestThreads(Environment environment) {
        if (Threading.VIRTUAL.isActive(environment)) {
            return RequestThreads.UNBOUNDED;
        }
        OptionalInt stated = Stream.of("server.tomcat.threads.max", "server.jetty.threads.max")
                .mapToInt(name -> environment.getProperty(name, Integer.class, 0))
                .filter(number -> number > 0)
                .min();
        return new RequestThreads(stated.orElse(DEFAULT_THREADS));
    }

    @InternalBean("io.ratelimited.rateLimitServletCors")
    ServletCors rateLimitServletCors(ObjectProvider<CorsConfigurationSource> cors, ServletRequests requests) {
        return new ServletCors(cors::orderedStream, requests.style());
    }

    @InternalBean("io.ratelimited.rateLimitServletRefusals")
    ServletRejections rateLimitServletRefusals(
            RateLimitProperties properties,
            ServletRequests requests,
            LimitRegistry limits,
            LimitEnforcer enforcer,
            ApplicationContext context,
            ServletCors cors,
            ObjectProvider<ServletRejections.Mvc> mvc) {
        return new ServletRejections(
                properties.http().status(),
                requests,
                limits,
                new Problems(context, JsonWriter.standard()::writeToString),
                cors,
                new InvalidCallLog(enforcer.ticker()),
                mvc::getIfAvailable);
    }

    @InternalBean("io.ratelimited.rateLimitStartedChecks")
    @Lazy(false)
    StartedChecks rateLimitStartedChecks(ApplicationContext context, ServletRequests requests, RouteLimits limits) {
        return new StartedChecks(
                context,
                List.of(
                        new ForwardedHeadersCheck(
                                context,
                                requests.proxies(),
                                ForwardingFilters::of,
                                requests::readClientIp,
                                requests::watchForProxies),
                        () -> CatchAllCheck.check(context, limits),
                        new RouteCheck(
                                limits,
                                () -> context.containsBean("springSecurityFilterChain"),
                                () -> ServletHandlers.of(context),
                                () -> ServletLogins.besideLogin(context),
                                () -> HiddenMethods.areBehindRoutes(context))));
    }

    @InternalBean("io.ratelimited.rateLimitApiVersions")
    ServletVersions rateLimitApiVersions(ObjectProvider<ApiVersionStrategy> strategies) {
        return new ServletVersions(() -> strategies.stream().findFirst().orElse(null));
    }

    @InternalBean("io.ratelimited.rateLimitFilter")
    RateLimitFilter rateLimitFilter(
            RouteLimits limits,
            RoutePatterns routes,
            ServletRequests requests,
            ServletRejections refusals,
            ServletCors cors,
            ServletVersions versions,
            @Value("${spring.security.filter.order:-100}") int security) {
        int order = Math.max(RouteLimits.AFTER_SECURITY, Math.min(security, Integer.MAX_VALUE - 1) + 1);
        return new RateLimitFilter(false, order, routes, limits, requests, refusals, cors, versions);
    }

    @InternalBean("io.ratelimited.rateLimitBeforeSecurityFilter")
    RateLimitFilter rateLimitBeforeSecurityFilter(
            RouteLimits limits,
            RoutePatterns routes,
            ServletRequests requests,
            ServletRejections refusals,
            ServletCors cors,
            ServletVersions versions,
            @Value("${spring.security.filter.order:-100}") int security) {
        int order = Math.min(RouteLimits.BEFORE_SECURITY, Math.max(security, Integer.MIN_VALUE + 1) - 1);
        return new RateLimitFilter(true, order, routes, limits, requests, refusals, cors, versions);
    }

    @InternalBean("io.ratelimited.rateLimitFilterDispatches")
    FilterRegistrationBean<RateLimitFilter> rateLimitFilterDispatches(
            @Qualifier("io.ratelimited.rateLimitFilter") RateLimitFilter filter) {
        return routes(filter, "io.ratelimited.rateLimitFilter", DispatcherType.ASYNC, DispatcherType.FORWARD);
    }

    @InternalBean("io.ratelimited.rateLimitBeforeSecurityFilterDispatches")
    FilterRegistrationBean<RateLimitFilter> rateLimitBeforeSecurityFilterDispatches(
            @Qualifier("io.ratelimited.rateLimitBeforeSecurityFilter") RateLimitFilter filter, RoutePatterns routes) {
        FilterRegistrationBean<RateLimitFilter> registered = routes(
                filter,
                "io.ratelimited.rateLimitBeforeSecurityFilter",
                DispatcherType.ASYNC,
                DispatcherType.FORWARD,
                DispatcherType.ERROR);
        registered.setEnabled(!routes.isEmpty(true));
        return registered;
    }

    /**
     * A filter that forwards, suspends or rejects a request ends its way through the filters: the request goes on by the forward,
     * the asynchronous dispatch, or that to the error page.
     */
    private static FilterRegistrationBean<RateLimitFilter> routes(
            RateLimitFilter filter, String name, DispatcherType... dispatches) {
        FilterRegistrationBean<RateLimitFilter> registered =
                ServletFilterConfiguration.registered(filter, filter.getOrder(), dispatches);
        registered.setName(name);
        return registered;
    }

    @InternalConfiguration
    @ConditionalOnClass(DispatcherServlet.class)
    static class Mvc {

        @InternalBean("io.ratelimited.rateLimitMvcRefusals")
        MvcRejections rateLimitMvcRefusals(ServletRejections refusals, ApplicationContext context) {
            return new MvcRejections(refusals, context);
        }

        @InternalBean("io.ratelimited.rateLimitRefusalHeaders")
        MvcRejections.Headers rateLimitRefusalHeaders(ServletRejections refusals) {
            return new MvcRejections.Headers(refusals);
        }

        @InternalBean("io.ratelimited.rateLimitErrorPages")
        RejectionPage.Pages rateLimitErrorPages(ObjectProvider<ServletRegistrationBean<DispatcherServlet>> dispatcher) {
            return name -> dispatcher.stream()
                    .filter(registered -> registered.getServletName().equals(name))
                    .map(ServletRegistrationBean::getServlet)
                    .<FilterChain>map(servlet -> servlet::service)
                    .findFirst()
                    .orElse(null);
        }
    }

    @InternalConfiguration
    @ConditionalOnClass({ResourceConfig.class, ExceptionMapper.class})
    static class Jersey {

        @InternalBean("io.ratelimited.rateLimitJerseyRefusals")
        static BeanPostProcessor rateLimitJerseyRefusals(ObjectProvider<ServletRejections> refusals) {
            return JerseyRejections.registering(refusals::getObject);
        }
    }

    @InternalConfiguration
    @ConditionalOnClass({SecurityFilterChain.class, ProviderManager.class})
    static class Logins {

        @InternalBean("io.ratelimited.rateLimitLimitedProviders")
        static LimitedProviders rateLimitLimitedProviders() {
            return new LimitedProviders();
        }
    }

    @InternalConfiguration
    @ConditionalOnClass(DefaultErrorAttributes.class)
    static class ErrorPages {

        /** The attributes of error pages, unless the application has attributes of its own. */
        @InternalBean("io.ratelimited.errorAttributes")
        @ConditionalOnMissingBean(value = ErrorAttributes.class, search = SearchStrategy.CURRENT)
        RejectionErrorAttributes errorAttributes() {
            return new RejectionErrorAttributes();
        }
    }
}
