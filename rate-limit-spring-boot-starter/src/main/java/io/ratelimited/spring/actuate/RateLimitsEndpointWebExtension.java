package io.ratelimited.spring.actuate;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.RateLimits;
import java.util.Arrays;
import java.util.Map;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.actuate.endpoint.annotation.DeleteOperation;
import org.springframework.boot.actuate.endpoint.annotation.ReadOperation;
import org.springframework.boot.actuate.endpoint.annotation.Selector;
import org.springframework.boot.actuate.endpoint.annotation.WriteOperation;
import org.springframework.boot.actuate.endpoint.web.WebEndpointResponse;
import org.springframework.boot.actuate.endpoint.web.annotation.EndpointWebExtension;

/**
 * The endpoint over HTTP: keys in the path, 404 for a limit that there is not, 400 for a value that cannot be meant, 503
 * for a key that its backend could not forget. A key with empty path segments or an encoded slash, which servers refuse
 * or drop, is given as {@code ?key=}.
 *
 * <p>Spring Boot has members of a body and parameters of a query in the place of path variables of the same name: {@code
 * {"name": …}} would change another limit than the path names. Therefore path variables have names of their own.
 */
@EndpointWebExtension(endpoint = RateLimitsEndpoint.class)
public final class RateLimitsEndpointWebExtension {

    private final RateLimitsEndpoint endpoint;
    private final RateLimits rateLimits;
    private final boolean reactive;

    RateLimitsEndpointWebExtension(RateLimitsEndpoint endpoint, RateLimits rateLimits, boolean reactive) {
        this.endpoint = endpoint;
        this.rateLimits = rateLimits;
        this.reactive = reactive;
    }

    /** {@code GET /{name}} and {@code GET /{name}?key=…}. */
    @ReadOperation
    public WebEndpointResponse<Map<String, Object>> limit(@Selector String nameInPath, @Nullable String key) {
        return answer(nameInPath, () -> endpoint.limit(nameInPath, key));
    }

    /** {@code GET /{name}/{key}}. */
    @ReadOperation
    public WebEndpointResponse<Map<String, Object>> key(
            @Selector String nameInPath, @Selector(match = Selector.Match.ALL_REMAINING) String... keyInPath) {
        return answer(nameInPath, () -> endpoint.limit(nameInPath, joined(nameInPath, keyInPath)));
    }

    /** {@code POST /{name}}. */
    @WriteOperation
    public WebEndpointResponse<Map<String, Object>> update(
            @Selector String nameInPath,
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
        return answer(
                nameInPath,
                () -> endpoint.update(
                        nameInPath,
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
                        missingKey));
    }

    /** {@code DELETE /{name}} and {@code DELETE /{name}?key=…}. */
    @DeleteOperation
    public WebEndpointResponse<Map<String, Object>> forget(@Selector String nameInPath, @Nullable String key) {
        try {
            return answer(nameInPath, () -> endpoint.forget(nameInPath, key));
        } catch (RuntimeException ex) {
            // Whatever backend it is, its exception is not known here.
            return failure(
                    WebEndpointResponse.STATUS_SERVICE_UNAVAILABLE,
                    "nothing is known to be forgotten: " + ex.getMessage() + ". Try again when the backend answers");
        }
    }

    /** {@code DELETE /{name}/{key}}. */
    @DeleteOperation
    public WebEndpointResponse<Map<String, Object>> forgetKey(
            @Selector String nameInPath, @Selector(match = Selector.Match.ALL_REMAINING) String... keyInPath) {
        return forget(nameInPath, joined(nameInPath, keyInPath));
    }

    /** On WebFlux, Spring Boot has every variable of the path in the remaining segments, not only those behind it. */
    private String joined(String name, String[] segments) {
        boolean named = reactive && segments.length > 1 && segments[0].equals(name);
        return String.join("/", named ? Arrays.copyOfRange(segments, 1, segments.length) : segments);
    }

    private WebEndpointResponse<Map<String, Object>> answer(
            String name, Supplier<@Nullable Map<String, Object>> operation) {
        try {
            rateLimits.get(name);
        } catch (IllegalArgumentException ex) {
            return failure(WebEndpointResponse.STATUS_NOT_FOUND, String.valueOf(ex.getMessage()));
        }
        try {
            Map<String, Object> answer = operation.get();
            return answer == null
                    ? new WebEndpointResponse<>(WebEndpointResponse.STATUS_NO_CONTENT)
                    : new WebEndpointResponse<>(answer);
        } catch (InvalidRateLimitException ex) {
            return failure(WebEndpointResponse.STATUS_BAD_REQUEST, ex.getMessage() + ". " + ex.remedy());
        } catch (IllegalArgumentException ex) {
            return failure(WebEndpointResponse.STATUS_BAD_REQUEST, String.valueOf(ex.getMessage()));
        }
    }

    private static WebEndpointResponse<Map<String, Object>> failure(int status, String message) {
        return new WebEndpointResponse<>(Map.of("error", message), status);
    }
}
