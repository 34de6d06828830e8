package io.ratelimited.spring.autoconfigure.web.reactive;

import io.ratelimited.spring.web.Refusal;
import java.util.Map;
import org.springframework.boot.web.error.ErrorAttributeOptions;
import org.springframework.boot.webflux.error.DefaultErrorAttributes;
import org.springframework.web.reactive.function.server.ServerRequest;

/**
 * Spring Boot's attributes of error pages; for a refusal also its reason, as {@code message}, and {@code retryAfter} in
 * seconds.
 */
final class RefusalErrorAttributes extends DefaultErrorAttributes {

    @Override
    public Map<String, Object> getErrorAttributes(ServerRequest request, ErrorAttributeOptions options) {
        Map<String, Object> attributes = super.getErrorAttributes(request, options);
        if (getError(request) instanceof Refusal refusal) {
            attributes.putAll(refusal.attributes());
        }
        return attributes;
    }
}
