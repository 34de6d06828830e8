package io.ratelimited.spring.autoconfigure.web.graphql;

import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.call.LimitEnforcer;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.web.InvalidCallLog;
import io.ratelimited.spring.internals.web.graphql.GraphQlRejections;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.context.annotation.Role;
import org.springframework.graphql.execution.DataFetcherExceptionResolver;
import org.springframework.http.ProblemDetail;
import reactor.core.publisher.Mono;

/**
 * Wires the errors of refused fields and subscriptions. Behind Spring Boot's, whose resolver asks the exception handlers of
 * controllers and advice: of resolvers without an order the one that was defined first is asked first.
 */
@AutoConfiguration(
        after = RateLimitAutoConfiguration.class,
        afterName = "org.springframework.boot.graphql.autoconfigure.GraphQlAutoConfiguration")
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@ConditionalOnClass({DataFetcherExceptionResolver.class, Mono.class, ProblemDetail.class})
@ConditionalOnBean(LimitEnforcer.class)
public final class GraphQlRateLimitAutoConfiguration {

    @InternalBean("io.ratelimited.rateLimitGraphQlRefusals")
    GraphQlRejections rateLimitGraphQlRefusals(LimitRegistry limits, LimitEnforcer enforcer) {
        return new GraphQlRejections(limits, new InvalidCallLog(enforcer.ticker()));
    }
}
