package io.ratelimited.spring.actuate;

import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.annotation.DeleteOperation;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.actuate.endpoint.annotation.WriteOperation;
import org.springframework.boot.actuate.endpoint.jmx.annotation.EndpointJmxExtension;

/** The endpoint over JMX, where name and key are arguments as all others. Thread-safe. */
@EndpointJmxExtension(endpoint = RateLimitsEndpoint.class)
public final class RateLimitsEndpointJmxExtension {

    private final RateLimitsEndpoint endpoint;

    RateLimitsEndpointJmxExtension(RateLimitsEndpoint endpoint) {
        this.endpoint = endpoint;
    }

    /** As {@link RateLimitsEndpoint#limit}. */
    @ReadOperation
    public Map<String, Object> limit(@Selector String name, @Nullable String key) {
        return endpoint.limit(name, key);
    }

    /** As {@link RateLimitsEndpoint#update}. */
    @WriteOperation
    public Map<String, Object> update(
            @Selector String name,
            @Nullable String tier,
            @Nullable String rate,
            @Nullable String burst,
            @Nullable String warmup,
            @Nullable String coldFactor,
            @Nullable String maxConcurrent,
            @Nullable String lease,
            @Nullable String zone,
            @Nullable String slots,
            @Nullable String policy,
            @Nullable String maxWait,
            @Nullable String maxWaiting,
            @Nullable String missingKey) {
        return endpoint.update(
                name,
                tier,
                rate,
                burst,
                warmup,
                coldFactor,
                maxConcurrent,
                lease,
                zone,
                slots,
                policy,
                maxWait,
                maxWaiting,
                missingKey);
    }

    /** As {@link RateLimitsEndpoint#forget}. */
    @DeleteOperation
    public void forget(@Selector String name, @Nullable String key) {
        endpoint.forget(name, key);
    }
}
