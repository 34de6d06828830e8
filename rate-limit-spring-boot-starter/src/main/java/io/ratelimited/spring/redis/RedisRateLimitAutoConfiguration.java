package io.ratelimited.spring.redis;

import io.lettuce.core.AbstractRedisClient;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.RedisURI;
import io.lettuce.core.resource.ClientResources;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import io.ratelimited.redis.OnFailure;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisBackendOptions;
import io.ratelimited.redis.RedisLimitOptions;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.RateLimitProperties;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.backend.SharedChanges;
import io.ratelimited.spring.backend.SharedPauses;
import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.bean.InternalConfiguration;
import io.ratelimited.spring.internals.limit.InstanceDifferences;
import io.ratelimited.spring.internals.limit.KeyMemory;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.text.LogText;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.NoUniqueBeanDefinitionException;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnClass;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingClass;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Role;
import org.springframework.core.env.Environment;
import org.springframework.data.redis.connection.ReactiveRedisConnectionFactory;
import org.springframework.data.redis.connection.RedisConnectionFactory;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.util.StringUtils;

/**
 * Wires limits on Redis. Everything is made by the first limit that needs it, so that a bean of the application which
 * replaces a part leaves nothing behind. Where a bean has the name of its factory, as in tests that keep Redis out, there is
 * none of it.
 */
@AutoConfiguration(
        after = RateLimitAutoConfiguration.class,
        afterName = "org.springframework.boot.data.redis.autoconfigure.DataRedisAutoConfiguration")
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@ConditionalOnClass({RedisBackend.class, AbstractRedisClient.class})
@Conditional(OnRedisBackendCondition.class)
@ConditionalOnBean(LimitRegistry.class)
@ConditionalOnMissingBean(name = "io.ratelimited.redisLimiterFactory")
public final class RedisRateLimitAutoConfiguration {

    /** Refusals and leases are remembered while limits are made: as many of these as most applications have. */
    private static final int LIMITS = 8;

    private static final String OWN_CLIENT =
            "declare a bean of type io.lettuce.core.RedisURI, because a RedisClient does not expose its address; or set"
                    + " backend: memory. [RL-111]";

    @InternalBean("io.ratelimited.redisLimiterFactory")
    LimiterFactory redisLimiterFactory(
            RateLimitProperties properties, ObjectProvider<RedisBackend> backend, InstanceComparison comparison) {
        return new RedisLimiterFactory(
                backend,
                comparison,
                properties.memory().keys(),
                properties.redis().shareChanges() ? new RedisSharedChanges(backend::getObject) : null);
    }

    @InternalBean("io.ratelimited.rateLimitRedisBackend")
    @Lazy
    @ConditionalOnMissingBean
    RedisBackend rateLimitRedisBackend(
            RateLimitProperties properties, Ticker ticker, LimitsClient client, Environment environment) {
        RateLimitProperties.Redis redis = properties.redis();
        RedisBackendOptions options = new RedisBackendOptions(
                prefix(redis.keyPrefix(), environment.getProperty("spring.application.name", "")),
                redis.timeout(),
                redis.expectedNodes() == null ? 0 : redis.expectedNodes(),
                RedisBackendOptions.TimeSource.valueOf(redis.timeSource().name()),
                ticker,
                RedisBackendOptions.DEFAULTS.executor());
        return RedisBackend.of(client.settings(), options);
    }

    @InternalBean("io.ratelimited.instanceDifferences")
    InstanceDifferences instanceDifferences(LimitRegistry registry) {
        return new InstanceDifferences("redis", registry::all);
    }

    @InternalBean("io.ratelimited.instanceComparison")
    InstanceComparison instanceComparison(
            ObjectProvider<RedisBackend> backend, ObjectProvider<InstanceDifferences> differences) {
        return new InstanceComparison(backend, differences);
    }

    /** The stated prefix, or one of this application alone. */
    private static String prefix(@Nullable String stated, String application) {
        if (stated != null) {
            return stated;
        }
        String common = RedisBackendOptions.DEFAULTS.keyPrefix();
        if (application.isBlank()) {
            LogText.lines(RedisRateLimitAutoConfiguration.class)
                    .warn("spring.application.name is not set, so limits on Redis have the prefix " + common
                            + ": every application without a name that uses this Redis shares their limits and"
                            + " changes. Set spring.application.name or rate-limit.redis.key-prefix. [RL-217]");
            return common;
        }
        return common + ":" + application;
    }

    /** The addresses of the property, or else those that are beans of the application; null if there is neither. */
    private static @Nullable LimitsClient chosen(RateLimitProperties properties, Addresses addresses) {
        String url = properties.redis().url();
        return StringUtils.hasText(url) ? RedisUrl.client(url) : addresses.client();
    }

    /** Beans of the application that say how to connect. Several addresses are nodes of a cluster. */
    private record Addresses(
            ObjectProvider<RedisURI> uris,
            ObjectProvider<ClientOptions> options,
            ObjectProvider<ClientResources> resources) {

        @Nullable
        LimitsClient client() {
            List<RedisURI> all = uris.orderedStream().toList();
            if (all.isEmpty()) {
                return null;
            }
            ClientResources own = resources.getIfAvailable();
            ClientOptions stated = options.getIfAvailable(ClientOptions::create);
            return all.size() > 1
                    ? LimitsClient.ofCluster(own, stated, all)
                    : LimitsClient.ofServer(own, stated, all.get(0));
        }
    }

    /** With Spring Data: the chosen addresses, or else the settings of the application's connection factory. */
    @InternalConfiguration
    @ConditionalOnClass(LettuceConnectionFactory.class)
    static class DataRedisConfiguration {

        @InternalBean("io.ratelimited.rateLimitRedisClient")
        @Lazy
        LimitsClient rateLimitRedisClient(
                RateLimitProperties properties,
                ObjectProvider<RedisURI> uris,
                ObjectProvider<ClientOptions> options,
                ObjectProvider<ClientResources> resources,
                BeanFactory beans,
                Environment environment) {
            LimitsClient client = chosen(properties, new Addresses(uris, options, resources));
            if (client != null) {
                return client;
            }
            LettuceConnectionFactory factory = factory(beans);
            if (factory == null) {
                throw new InvalidRateLimitException(
                        "A property sets backend: redis, but there is no Lettuce connection factory, or it is not the"
                                + " primary one",
                        "Set rate-limit.redis.url; or set spring.data.redis.client-type to lettuce; or " + OWN_CLIENT);
            }
            String nodes = environment.getProperty(
                    "spring.data.redis.masterreplica.nodes[0]",
                    environment.getProperty("spring.data.redis.masterreplica.nodes", ""));
            if (!nodes.isEmpty()) {
                throw new InvalidRateLimitException(
                        "Property spring.data.redis.masterreplica.nodes is " + nodes
                                + ", but rate limits can only find a primary with Sentinel or in a cluster",
                        "Use spring.data.redis.sentinel or spring.data.redis.cluster; or set rate-limit.redis.url; or "
                                + OWN_CLIENT);
            }
            return DataRedisSettings.client(factory);
        }

        /**
         * Finds the factory by the interfaces, as the application does: a method that declares one does not show before the bean
         * is made that it is Lettuce's, and so a lookup by that class would find another one than the primary.
         */
        private static @Nullable LettuceConnectionFactory factory(BeanFactory beans) {
            for (Class<?> declared : List.of(RedisConnectionFactory.class, ReactiveRedisConnectionFactory.class)) {
                try {
                    Object found = beans.getBeanProvider(declared).getIfAvailable();
                    if (found != null) {
                        return found instanceof LettuceConnectionFactory factory ? factory : null;
                    }
                } catch (NoUniqueBeanDefinitionException ex) {
                    throw new InvalidRateLimitException(
                            "A property sets backend: redis, but there is more than one connection factory: "
                                    + names(ex),
                            "Mark one of them as @Primary; or set rate-limit.redis.url. [RL-111]");
                }
            }
            return null;
        }

        private static String names(NoUniqueBeanDefinitionException several) {
            Collection<String> names = several.getBeanNamesFound();
            return names == null ? "" : names.stream().sorted().collect(Collectors.joining(", "));
        }
    }

    /** Without Spring Data: the chosen addresses. */
    @InternalConfiguration
    @ConditionalOnMissingClass("org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory")
    static class LettuceConfiguration {

        @InternalBean("io.ratelimited.rateLimitRedisClient")
        @Lazy
        LimitsClient rateLimitRedisClient(
                RateLimitProperties properties,
                ObjectProvider<RedisURI> uris,
                ObjectProvider<ClientOptions> options,
                ObjectProvider<ClientResources> resources) {
            LimitsClient client = chosen(properties, new Addresses(uris, options, resources));
            if (client == null) {
                throw new InvalidRateLimitException(
                        "A property sets backend: redis, but no address of Redis is configured",
                        "Set rate-limit.redis.url, such as redis://localhost:6379; or " + OWN_CLIENT);
            }
            return client;
        }
    }

    private record RedisLimiterFactory(
            ObjectProvider<RedisBackend> backends,
            InstanceComparison comparison,
            KeyMemory memory,
            @Override @Nullable SharedChanges sharedChanges)
            implements LimiterFactory {

        private static final String ON_FAILURE = "on-failure";
        private static final String MAX_OVERSHOOT = "max-overshoot";

        @Override
        public boolean blocks() {
            return true;
        }

        @Override
        public String backend() {
            return "redis";
        }

        @Override
        public Set<String> properties() {
            return Set.of(ON_FAILURE, MAX_OVERSHOOT);
        }

        @Override
        public SharedPauses sharedPauses() {
            return new RedisSharedPauses(backends::getObject);
        }

        @Override
        public void check(Limit limit) {
            backends.getObject().check(limit);
        }

        @Override
        public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
            comparison.hasLimits();
            String onFailure = properties.getOrDefault(ON_FAILURE, "local");
            OnFailure whileAway = OnFailure.valueOf(onFailure.toUpperCase(Locale.ROOT));
            return backends.getObject()
                    .limiter(
                            limit,
                            new RedisLimitOptions(
                                    tier,
                                    whileAway,
                                    part(properties.get(MAX_OVERSHOOT)),
                                    memory.maximumKeys(limit, false, LIMITS)));
        }

        /** From "5%" to 0.05. */
        private static double part(@Nullable String percentage) {
            return percentage == null
                    ? 0
                    : Double.parseDouble(percentage.replace("%", "").strip()) / 100;
        }
    }
}
