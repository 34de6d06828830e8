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
 * The endpoint over HTTP: keys in the path, 404 for a limit that there is not, 400 for an invalid value, 503
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
        Target target = target(path, key);
        return answer(target.name, () -> endpoint.limit(target.name, target.key));
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
        Target target = target(path, key);
        try {
            return answer(target.name, () -> {
                endpoint.forget(target.name, target.key);
                return null;
            });
        } catch (RuntimeException ex) {
            // Whatever backend it is, its exception is not known here.
            return failure(
                    WebEndpointResponse.STATUS_SERVICE_UNAVAILABLE,
                    "nothing is known to be forgotten: " + ex.getMessage() + ". Try again when the backend answers");
        }
    }

    /**
     * The limit and the key that a path names. The name is the longest beginning of the path that is the name of a limit,
     * since names and keys may have slashes.
     */
    private Target target(String[] path, @Nullable String key) {
        for (int end = path.length; end > 0; end--) {
            String name = join(path, 0, end);
            if (isLimit(name)) {
                return new Target(name, end < path.length ? join(path, end, path.length) : key);
            }
        }
        return new Target(path.length == 0 ? "" : path[0], key);
    }

    private static String join(String[] path, int from, int to) {
        return String.join("/", Arrays.copyOfRange(path, from, to));
    }

    private boolean isLimit(String name) {
        try {
            rateLimits.get(name);
            return true;
        } catch (IllegalArgumentException ex) {
            return false;
        }
    }

    private record Target(String name, @Nullable String key) {}

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
