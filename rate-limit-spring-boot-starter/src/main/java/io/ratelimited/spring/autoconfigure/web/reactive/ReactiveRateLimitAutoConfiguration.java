package io.ratelimited.spring.autoconfigure.web.reactive;

import io.micrometer.context.ContextRegistry;
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
import io.ratelimited.spring.internals.web.reactive.BlockingExecution;
import io.ratelimited.spring.internals.web.reactive.ForwardingTransformers;
import io.ratelimited.spring.internals.web.reactive.LimitedHandlers;
import io.ratelimited.spring.internals.web.reactive.RateLimitWebFilter;
import io.ratelimited.spring.internals.web.reactive.ReactiveClients;
import io.ratelimited.spring.internals.web.reactive.ReactiveCors;
import io.ratelimited.spring.internals.web.reactive.ReactiveHandlers;
import io.ratelimited.spring.internals.web.reactive.ReactiveLogins;
import io.ratelimited.spring.internals.web.reactive.ReactiveRejections;
import io.ratelimited.spring.internals.web.reactive.ReactiveRequests;
import io.ratelimited.spring.internals.web.reactive.ReactiveVersions;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.InitializingBean;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.autoconfigure.condition.SearchStrategy;
import org.springframework.boot.json.JsonWriter;
import org.springframework.boot.web.server.context.WebServerApplicationContext;
import org.springframework.boot.webflux.error.DefaultErrorAttributes;
import org.springframework.boot.webflux.error.ErrorAttributes;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Role;
import org.springframework.http.server.reactive.HttpHandlerDecoratorFactory;
import org.springframework.web.cors.reactive.CorsConfigurationSource;
import org.springframework.web.filter.reactive.HiddenHttpMethodFilter;
import org.springframework.web.reactive.DispatcherHandler;
import org.springframework.web.reactive.accept.ApiVersionStrategy;
import org.springframework.web.reactive.config.WebFluxConfigurer;
import org.springframework.web.server.WebFilter;

/** Wires keys, headers, refusals and routes of WebFlux applications. */
@AutoConfiguration(
        after = RateLimitAutoConfiguration.class,
        beforeName = "org.springframework.boot.webflux.autoconfigure.error.ErrorWebFluxAutoConfiguration")
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@ConditionalOnClass(DispatcherHandler.class)
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.REACTIVE)
@ConditionalOnBean(RouteLimits.class)
@Import(RouteConfiguration.class)
public final class ReactiveRateLimitAutoConfiguration {

    private static boolean isManagement(@Nullable ApplicationContext context) {
        return WebServerApplicationContext.hasServerNamespace(context, "management");
    }

    @InternalBean("io.ratelimited.rateLimitReactiveRequests")
    ReactiveRequests rateLimitReactiveRequests(
            RateLimitProperties properties, Ticker ticker, ObjectProvider<RateLimitHeaderWriter> writers) {
        return new ReactiveRequests(
                ClientAddress.of(
                        properties.http().ipv6PrefixLength(), properties.http().translationPrefixes()),
                TrustedProxies.of(properties.http().trustedProxies()),
                new LimitHeaders.Style(properties.http().headers(), ticker, writers.getIfAvailable()));
    }

    @InternalBean("io.ratelimited.rateLimitRawRequests")
    HttpHandlerDecoratorFactory rateLimitRawRequests(ReactiveRequests requests) {
        return requests.proxies() == null ? handler -> handler : ReactiveClients::keepingRaw;
    }

    @InternalBean("io.ratelimited.rateLimitReactiveRefusals")
    ReactiveRejections rateLimitReactiveRefusals(
            RateLimitProperties properties,
            ReactiveRequests requests,
            LimitRegistry limits,
            ReactiveCors cors,
            LimitEnforcer enforcer,
            ApplicationContext context) {
        return new ReactiveRejections(
                properties.http().status(),
                requests,
                limits,
                new Problems(context, JsonWriter.standard()::writeToString),
                cors,
                new InvalidCallLog(enforcer.ticker()),
                context);
    }

    @InternalBean("io.ratelimited.rateLimitReactiveCors")
    ReactiveCors rateLimitReactiveCors(
            ObjectProvider<CorsConfigurationSource> cors, ObjectProvider<DispatcherHandler> dispatcher) {
        return new ReactiveCors(cors::orderedStream, dispatcher::getObject);
    }

    @InternalBean("io.ratelimited.rateLimitedHandlers")
    LimitedHandlers rateLimitedHandlers(ReactiveRequests requests, ApplicationContext context, LimitEnforcer enforcer) {
        return new LimitedHandlers(requests, context, enforcer.ticker());
    }

    /** Those on which handler methods sleep that return plain values. */
    @InternalBean("io.ratelimited.rateLimitRequestThreads")
    RequestThreads rateLimitRequestThreads() {
        return new RequestThreads(LimitedHandlers.MOST_THREADS);
    }

    @InternalBean("io.ratelimited.rateLimitBlockingExecution")
    BlockingExecution rateLimitBlockingExecution(ObjectProvider<WebFluxConfigurer> configurers) {
        return new BlockingExecution(configurers);
    }

    @InternalBean("io.ratelimited.rateLimitStartedChecks")
    @Lazy(false)
    StartedChecks rateLimitStartedChecks(ApplicationContext context, ReactiveRequests requests, RouteLimits limits) {
        return new StartedChecks(
                context,
                List.of(
                        new ForwardedHeadersCheck(
                                context,
                                requests.proxies(),
                                ForwardingTransformers::of,
                                requests::readClientIp,
                                requests::watchForProxies),
                        () -> CatchAllCheck.check(context, limits),
                        new RouteCheck(
                                limits,
                                () -> ReactiveLogins.arePossible(context),
                                () -> ReactiveHandlers.of(context),
                                () -> ReactiveLogins.besideLogin(context),
                                () -> areMethodsHidden(context))));
    }

    /** Returns whether a filter behind the first one of routes gives requests another method. */
    private static boolean areMethodsHidden(ApplicationContext context) {
        return context.getBeanProvider(WebFilter.class)
                .orderedStream()
                .dropWhile(filter -> !(filter instanceof RateLimitWebFilter))
                .anyMatch(HiddenHttpMethodFilter.class::isInstance);
    }

    @InternalBean("io.ratelimited.rateLimitApiVersions")
    ReactiveVersions rateLimitApiVersions(ObjectProvider<ApiVersionStrategy> strategies) {
        return new ReactiveVersions(() -> strategies.stream().findFirst().orElse(null));
    }

    /** Behind Spring Security, which may go on on another thread; null where no filter is needed there: each costs every request. */
    @InternalBean("io.ratelimited.rateLimitWebFilter")
    @Nullable
    RateLimitWebFilter rateLimitWebFilter(
            RoutePatterns routes,
            RouteLimits limits,
            ReactiveRequests requests,
            ReactiveCors cors,
            ReactiveVersions versions,
            ApplicationContext context) {
        return routes.isEmpty(false) && !ReactiveLogins.arePossible(context)
                ? null
                : new RateLimitWebFilter(
                        RouteLimits.AFTER_SECURITY,
                        routes,
                        limits,
                        requests,
                        cors,
                        versions,
                        ReactiveRateLimitAutoConfiguration::isManagement);
    }

    @InternalBean("io.ratelimited.rateLimitBeforeSecurityWebFilter")
    RateLimitWebFilter rateLimitBeforeSecurityWebFilter(
            RoutePatterns routes,
            RouteLimits limits,
            ReactiveRequests requests,
            ReactiveCors cors,
            ReactiveVersions versions) {
        return new RateLimitWebFilter(
                RouteLimits.BEFORE_SECURITY,
                routes,
                limits,
                requests,
                cors,
                versions,
                ReactiveRateLimitAutoConfiguration::isManagement);
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

    @InternalConfiguration
    @ConditionalOnClass(ContextRegistry.class)
    static final class ContextPropagation {

        @InternalBean("io.ratelimited.rateLimitContextPropagation")
        InitializingBean rateLimitContextPropagation() {
            return () -> ContextRegistry.getInstance().registerThreadLocalAccessor(new ReactiveRequests.Accessor());
        }
    }
}
