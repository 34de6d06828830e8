package io.ratelimited.spring.web.reactive;

import io.micrometer.context.ContextRegistry;
import io.ratelimited.spring.RateLimitAutoConfiguration;
import io.ratelimited.spring.RateLimitProperties;
import io.ratelimited.spring.limit.LimitRegistry;
import io.ratelimited.spring.web.CatchAllHandlers;
import io.ratelimited.spring.web.ForwardedHeadersCheck;
import io.ratelimited.spring.web.RouteLimits;
import io.ratelimited.spring.web.SecuredRoutes;
import org.springframework.beans.factory.InitializingBean;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Lazy;
import org.springframework.http.server.reactive.HttpHandlerDecoratorFactory;
import org.springframework.security.web.server.SecurityWebFilterChain;
import org.springframework.web.reactive.DispatcherHandler;

/** Wires keys, headers, refusals and routes of WebFlux applications. */
@AutoConfiguration(after = RateLimitAutoConfiguration.class)
@ConditionalOnClass(DispatcherHandler.class)
@ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.REACTIVE)
@ConditionalOnBean(RouteLimits.class)
public final class ReactiveRateLimitAutoConfiguration {

    @Bean
    ReactiveRequests rateLimitReactiveRequests(RateLimitProperties properties) {
        return new ReactiveRequests(properties.http());
    }

    @Bean
    HttpHandlerDecoratorFactory rateLimitRawRequests(ReactiveRequests requests) {
        return requests.proxies() == null ? handler -> handler : ReactiveClients::keepingRaw;
    }

    @Bean
    ReactiveRefusals rateLimitReactiveRefusals(
            RateLimitProperties properties,
            ReactiveRequests requests,
            LimitRegistry limits,
            ObjectProvider<DispatcherHandler> dispatcher) {
        return new ReactiveRefusals(properties.http().status(), requests, limits, dispatcher::getObject);
    }

    @Bean
    ReactiveRefusals.RefusedMapping rateLimitRefusedMapping() {
        return new ReactiveRefusals.RefusedMapping();
    }

    @Bean
    LimitedHandlers rateLimitedHandlers(ReactiveRequests requests, ApplicationContext context) {
        return new LimitedHandlers(requests, context);
    }

    @Bean
    @Lazy(false)
    CatchAllHandlers rateLimitCatchAllHandlers(ApplicationContext context, LimitRegistry limits) {
        return new CatchAllHandlers(context, limits);
    }

    @Bean
    @Lazy(false)
    ForwardedHeadersCheck rateLimitForwardedHeadersCheck(ApplicationContext context, ReactiveRequests requests) {
        return new ForwardedHeadersCheck(context, requests.proxies(), requests::readClientIp);
    }

    @Bean
    RateLimitWebFilter rateLimitWebFilter(RouteLimits limits, ReactiveRequests requests, ReactiveRefusals refusals) {
        return new RateLimitWebFilter(RateLimitWebFilter.ORDER, limits, requests, refusals);
    }

    @Bean
    RateLimitWebFilter rateLimitBeforeSecurityWebFilter(
            RouteLimits limits, ReactiveRequests requests, ReactiveRefusals refusals) {
        return new RateLimitWebFilter(RateLimitWebFilter.BEFORE_SECURITY, limits, requests, refusals);
    }

    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(SecurityWebFilterChain.class)
    static class Security {

        @Bean
        SecuredRoutes rateLimitSecuredRoutes(RouteLimits limits, ObjectProvider<SecurityWebFilterChain> security) {
            return new SecuredRoutes(
                    limits,
                    () -> security.stream()
                            .flatMap(chain -> chain.getWebFilters().toStream()));
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ConditionalOnClass(ContextRegistry.class)
    static final class ContextPropagation {

        @Bean
        InitializingBean rateLimitContextPropagation() {
            return () -> ContextRegistry.getInstance().registerThreadLocalAccessor(new ReactiveRequests.Accessor());
        }
    }
}
