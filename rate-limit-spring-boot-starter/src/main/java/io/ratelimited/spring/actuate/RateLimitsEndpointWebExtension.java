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
 * <p>Spring Boot has members of a body and parameters of a query in the place of path variables of the same name, so that
 * a request could change another limit than its path names. Therefore each operation takes the whole rest of the path as
 * an array, which no member or parameter can be: {@link UnknownMembers} refuses what is none.
 */
@EndpointWebExtension(endpoint = RateLimitsEndpoint.class)
public final class RateLimitsEndpointWebExtension {

    private final RateLimitsEndpoint endpoint;
    private final RateLimits rateLimits;

    RateLimitsEndpointWebExtension(RateLimitsEndpoint endpoint, RateLimits rateLimits) {
        this.endpoint = endpoint;
        this.rateLimits = rateLimits;
    }

    /** {@code GET /{name}}, {@code GET /{name}?key=…} and {@code GET /{name}/{key}}. */
    @ReadOperation
    public WebEndpointResponse<Map<String, Object>> limit(
            @Selector(match = Selector.Match.ALL_REMAINING) String[] path, @Nullable String key) {
        String name = name(path);
        return answer(name, () -> endpoint.limit(name, key(path, key)));
    }

    /** {@code POST /{name}}. */
    @WriteOperation
    public WebEndpointResponse<Map<String, Object>> update(
            @Selector(match = Selector.Match.ALL_REMAINING) String[] path,
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
        String name = String.join("/", path);
        return answer(
                name,
                () -> endpoint.update(
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
                        missingKey));
    }

    /** {@code DELETE /{name}}, {@code DELETE /{name}?key=…} and {@code DELETE /{name}/{key}}. */
    @DeleteOperation
    public WebEndpointResponse<Map<String, Object>> forget(
            @Selector(match = Selector.Match.ALL_REMAINING) String[] path, @Nullable String key) {
        String name = name(path);
        try {
            return answer(name, () -> {
                endpoint.forget(name, key(path, key));
                return null;
            });
        } catch (RuntimeException ex) {
            // Whatever backend it is, its exception is not known here.
            return failure(
                    WebEndpointResponse.STATUS_SERVICE_UNAVAILABLE,
                    "nothing is known to be forgotten: " + ex.getMessage() + ". Try again when the backend answers");
        }
    }

    private static String name(String[] path) {
        return path.length == 0 ? "" : path[0];
    }

    /** The key in the path, or else the one of the query. */
    private static @Nullable String key(String[] path, @Nullable String key) {
        return path.length > 1 ? String.join("/", Arrays.copyOfRange(path, 1, path.length)) : key;
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
