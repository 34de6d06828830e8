package io.ratelimited.spring.autoconfigure.web.reactive;

import io.ratelimited.spring.internals.web.Rejection;
import java.util.Map;
import org.springframework.boot.web.error.ErrorAttributeOptions;
import org.springframework.boot.webflux.error.DefaultErrorAttributes;
import org.springframework.web.reactive.function.server.ServerRequest;

/**
 * Spring Boot's attributes of error pages; for a refusal also its reason, as {@code message}, and {@code retryAfter} in
 * seconds.
 */
final class RejectionErrorAttributes extends DefaultErrorAttributes {

    @Override
    public Map<String, Object> getErrorAttributes(ServerRequest request, ErrorAttributeOptions options) {
        Map<String, Object> attributes = super.getErrorAttributes(request, options);
        if (getError(request) instanceof Rejection refusal) {
            attributes.putAll(refusal.attributes());
        }
        return attributes;
    }
}
