package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.fields.HeaderStyle;
import io.ratelimited.spring.internals.aop.RateLimitAdvisor;
import io.ratelimited.spring.internals.client.ClientProperties;
import io.ratelimited.spring.internals.limit.KeyMemory;
import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.limit.LimitSettings;
import io.ratelimited.spring.internals.web.RouteProperties;
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

/**
 * Properties under {@code rate-limit}.
 *
 * @param enabled Whether limits apply; if false, annotated methods are called without a limit.
 * @param backend Backend that stores the state of limits.
 * @param defaults Default properties of all limits.
 * @param limits Limits by name; properties override the annotation.
 * @param memory Limits in memory.
 * @param http HTTP requests and responses.
 * @param routes Limits by path, without annotations; all routes that match a request apply.
 * @param clients Limits on outgoing HTTP calls, by the name of the client.
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
     * @param maximumKeys Maximum number of keys that each limit and each of its tiers tracks; by default what fits into half of the heap, at most 1000000.
     */
    public record Memory(@Nullable Long maximumKeys) {

        /** Returns the number of keys that limits remember in the heap of this JVM. */
        public KeyMemory keys() {
            return KeyMemory.ofHeap(maximumKeys);
        }
    }

    /**
     * HTTP requests and responses.
     *
     * @param headers Which rate limit headers responses have.
     * @param status HTTP status of a rejected request.
     * @param ipv6PrefixLength Number of leading bits of an IPv6 address that identify a client.
     * @param trustedProxies Proxies in front of the application, for clientIp: how many every request passes, such as 1, or their networks, such as 10.0.0.0/8; without it, clientIp is the address that the server reports.
     * @param translationPrefixes NAT64 prefixes of your own network, such as 2001:db8:64::/96; the standard prefixes are known.
     * @param openApi Whether the OpenAPI document of springdoc shows 429 responses and rate limit headers.
     */
    public record Http(
            @DefaultValue("standard") HeaderStyle headers,
            @DefaultValue("429") int status,
            @DefaultValue("64") int ipv6PrefixLength,
            @Nullable List<String> trustedProxies,
            @Nullable List<String> translationPrefixes,
            @DefaultValue("true") boolean openApi) {}

    /**
     * Limits on Redis.
     *
     * @param url Address of Redis for the limits, such as redis://localhost:6379, redis-sentinel://one,two#primary, or redis://one,two for a cluster; by default, the connection of the application.
     * @param timeout Maximum wait for a response; then the on-failure policy applies.
     * @param onFailure Policy while Redis is unavailable.
     * @param expectedNodes Number of instances that share the limits while Redis is unavailable; counted by default.
     * @param keyPrefix Prefix of all keys in Redis: applications with the same prefix share limits of the same name; defaults to rl: and spring.application.name.
     * @param timeSource Source of the time in scripts; the same on all instances.
     * @param shareChanges Whether a change of a limit at run time applies to all instances, and survives restarts.
     */
    public record Redis(
            @Nullable String url,
            @DefaultValue("50ms") Duration timeout,
            @DefaultValue("local") LimitProperty.OnFailure onFailure,
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
     * @param mode How the aspect intercepts methods.
     */
    public record Aspect(
            @DefaultValue("" + RateLimitAdvisor.DEFAULT_ORDER)
            int order,

            @DefaultValue("proxy") Mode mode) {}

    /**
     * The actuator endpoint.
     *
     * @param maskKeys Whether the endpoint masks keys, which can be credentials or personal data.
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

    /**
     * The part that makes limits.
     *
     * @throws InvalidRateLimitException for an algorithm or a policy that only the annotation has
     */
    public LimitSettings limitSettings() {
        return new LimitSettings(
                backend,
                redis.onFailure(),
                LimitProperties.values("rate-limit.defaults", defaults),
                LimitProperties.values("rate-limit.limits", limits));
    }
}
