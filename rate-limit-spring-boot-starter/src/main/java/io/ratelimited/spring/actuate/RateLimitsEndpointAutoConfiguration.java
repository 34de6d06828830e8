package io.ratelimited.spring.actuate;

import io.ratelimited.core.Ticker;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.RateLimitProperties;
import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.boot.OnEnabledCondition;
import io.ratelimited.spring.internals.client.LimitedClients;
import io.ratelimited.spring.internals.limit.InstanceDifferences;
import io.ratelimited.spring.internals.limit.LimitOperations;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.request.ContextRequests;
import io.ratelimited.spring.internals.web.RouteLimits;
import java.util.List;
import java.util.Set;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.actuate.autoconfigure.endpoint.condition.ConditionalOnAvailableEndpoint;
import org.springframework.boot.actuate.endpoint.annotation.Endpoint;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.SearchStrategy;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Role;

/** Wires the actuator endpoint {@code ratelimits}, where it is exposed. */
@AutoConfiguration(after = RateLimitAutoConfiguration.class)
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@ConditionalOnClass({Endpoint.class, ConditionalOnAvailableEndpoint.class})
@Conditional(OnEnabledCondition.class)
@ConditionalOnBean(RateLimits.class)
@ConditionalOnAvailableEndpoint(RateLimitsEndpoint.class)
public final class RateLimitsEndpointAutoConfiguration {

    @InternalBean("io.ratelimited.rateLimitWebRequests")
    WebRequests rateLimitWebRequests(ObjectProvider<RateLimitsEndpoint> endpoint, LimitRegistry registry) {
        return new WebRequests(endpoint, registry);
    }

    @InternalBean("io.ratelimited.rateLimitRefusedKeys")
    @ConditionalOnMissingBean
    RejectedKeys rateLimitRefusedKeys() {
        return new RejectedKeys();
    }

    @InternalBean("io.ratelimited.rateLimitsEndpoint")
    @ConditionalOnMissingBean(search = SearchStrategy.CURRENT)
    RateLimitsEndpoint rateLimitsEndpoint(
            LimitRegistry registry,
            ContextRequests requests,
            RejectedKeys refused,
            RateLimitProperties properties,
            ObjectProvider<Ticker> ticker,
            ObjectProvider<RouteLimits> routes,
            ObjectProvider<InstanceDifferences> differences,
            ObjectProvider<LimitedClients> clients) {
        ShownKeys keys = new ShownKeys(properties.actuator().maskKeys());
        RouteLimits all = routes.getIfAvailable();
        InstanceDifferences compared = differences.getIfAvailable();
        return new RateLimitsEndpoint(
                registry,
                new LimitOperations(true, registry, requests),
                new LimitReport(
                        refused,
                        keys,
                        new ShownBlocks(keys, ticker.getIfAvailable(Ticker::system)),
                        name -> all == null ? List.of() : all.describe(name),
                        name -> compared == null ? Set.of() : compared.elsewhere(name)),
                keys,
                clients.stream().flatMap(known -> known.all().stream()).toList());
    }
}
