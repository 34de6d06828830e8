package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.client.ClientProperties;
import io.ratelimited.spring.fields.Headers;
import io.ratelimited.spring.limit.KeyMemory;
import io.ratelimited.spring.limit.LimitSettings;
import io.ratelimited.spring.web.RouteProperties;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.boot.context.properties.ConfigurationProperties;
import org.springframework.boot.context.properties.NestedConfigurationProperty;
import org.springframework.boot.context.properties.bind.DefaultValue;
import org.springframework.context.annotation.Role;
import org.springframework.core.Ordered;

/**
 * Properties under {@code rate-limit}.
 *
 * @param enabled Whether anything is limited; when false, annotated methods are called without a limit.
 * @param backend Where the state of limits lives.
 * @param defaults What applies to limits that say nothing themselves.
 * @param limits Limits by name; a property set here wins over the annotation.
 * @param memory Limits in memory.
 * @param http Answers to HTTP requests.
 * @param routes Limits on requests by path, without annotations; all routes that match a request apply to it.
 * @param clients Limits on calls to others, by the name of the client.
 * @param redis Limits on Redis.
 * @param aspect The aspect that limits annotated methods.
 * @param actuator The actuator endpoint.
 */
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@ConfigurationProperties(prefix = "rate-limit", ignoreUnknownFields = false)
public record RateLimitProperties(
        @DefaultValue("true") boolean enabled,
        @DefaultValue("memory") String backend,
        @NestedConfigurationProperty @Nullable LimitProperties defaults,
        @Nullable Map<String, LimitProperties> limits,
        @DefaultValue Memory memory,
        @DefaultValue Http http,
        @Nullable List<RouteProperties> routes,
        @Nullable Map<String, ClientProperties> clients,
        @DefaultValue Redis redis,
        @DefaultValue Aspect aspect,
        @DefaultValue Actuator actuator) {

    /**
     * Limits in memory.
     *
     * @param maximumKeys Keys that each limit remembers at the most; by default what half of the heap holds, at the most 1000000.
     */
    public record Memory(@Nullable Long maximumKeys) {

        /** Returns the number of keys that limits remember in the heap of this JVM. */
        public KeyMemory keys() {
            return KeyMemory.ofHeap(maximumKeys);
        }
    }

    /**
     * Answers to HTTP requests.
     *
     * @param headers Which rate limit headers responses have.
     * @param status Status of a refused request.
     * @param ipv6PrefixLength Bits of an IPv6 address that distinguish clients.
     * @param trustedProxies Proxies before the application, for clientIp: how many every request passes, such as 1, or their networks, such as 10.0.0.0/8; without it clientIp is what the server resolved.
     * @param translationPrefixes Prefixes by which your own network translates IPv4 addresses (NAT64), such as 2001:db8:64::/96; the standard ones are known.
     * @param openApi Whether the OpenAPI document of springdoc shows what limits mean to clients.
     */
    public record Http(
            @DefaultValue("standard") Headers headers,
            @DefaultValue("429") int status,
            @DefaultValue("64") int ipv6PrefixLength,
            @Nullable List<String> trustedProxies,
            @Nullable List<String> translationPrefixes,
            @DefaultValue("true") boolean openApi) {}

    /**
     * Limits on Redis.
     *
     * @param url Address of Redis for the limits alone, such as redis://localhost:6379, redis-sentinel://one,two#primary, or redis://one,two for a cluster; without it, what the application connects with.
     * @param timeout Longest wait for an answer; after it the failure policy decides.
     * @param onFailure What decides when Redis does not answer.
     * @param expectedNodes Instances that share the limits, for the local limits of a failure; counted if not set.
     * @param keyPrefix Prefix of all keys in Redis: applications with one prefix share limits of the same name; defaults to rl: and spring.application.name.
     * @param timeSource Where scripts get their time from; the same on all instances.
     * @param shareChanges Whether a change of a limit at run time reaches all instances, and stays in force over restarts.
     */
    public record Redis(
            @Nullable String url,
            @DefaultValue("50ms") Duration timeout,
            @DefaultValue("local") LimitProperties.OnFailure onFailure,
            @Nullable Integer expectedNodes,
            @Nullable String keyPrefix,
            @DefaultValue("auto") TimeSource timeSource,
            @DefaultValue("true") boolean shareChanges) {

        /** Where scripts get their time from. */
        public enum TimeSource {
            /** That of Redis, asked by each script; as {@link #NODE} where scripts are refused it. */
            AUTO,
            /** Each instance's, set by the replies of Redis to plain TIME commands. */
            NODE
        }
    }

    /**
     * The aspect.
     *
     * @param order Order among other advice; the default is outside transactions, caching and circuit breakers, and inside retries.
     * @param mode How the aspect reaches methods.
     */
    public record Aspect(
            @DefaultValue("" + DEFAULT_ORDER) int order,
            @DefaultValue("proxy") Mode mode) {

        /**
         * A smaller order stands further outside. Transactions and caching have the lowest precedence, and so stand inside
         * this; Resilience4j's retry is at the lowest precedence - 5, and so stands outside. Its circuit breaker has the
         * same order as this, and stands inside because its auto-configuration comes later.
         */
        public static final int DEFAULT_ORDER = Ordered.LOWEST_PRECEDENCE - 4;
    }

    /**
     * The actuator endpoint.
     *
     * @param maskKeys Whether the endpoint shows stand-ins instead of keys, which may be credentials or personal data.
     */
    public record Actuator(@DefaultValue("true") boolean maskKeys) {}

    /** The way in which the aspect reaches methods. */
    public enum Mode {
        /** By Spring's proxies: calls from other beans. */
        PROXY,
        /** Woven into classes by AspectJ at compile time or load time: every call, from the same class too. */
        WOVEN
    }

    /** Makes a record; the name of the backend is written in lower case. */
    public RateLimitProperties {
        backend = backend.strip().toLowerCase(Locale.ROOT);
    }

    /** The part that makes limits. */
    public LimitSettings limitSettings() {
        return LimitSettings.of(backend, redis.onFailure(), defaults, limits);
    }
}
