package io.ratelimited.spring.autoconfigure.web.reactive;

import io.ratelimited.spring.web.Refusal;
import java.util.Map;
import java.util.function.Predicate;
import org.springframework.boot.web.error.ErrorAttributeOptions;
import org.springframework.boot.webflux.error.DefaultErrorAttributes;
import org.springframework.http.HttpStatus;
import org.springframework.web.reactive.function.server.ServerRequest;

/**
 * Spring Boot's attributes of error pages; for a refusal also its reason, as {@code message}, and {@code retryAfter} in
 * seconds.
 */
final class RefusalErrorAttributes extends DefaultErrorAttributes {

    private final Predicate<String> findsItsLimit;

    /** @param findsItsLimit whether the limit of a name finds by itself how many calls to admit */
    RefusalErrorAttributes(Predicate<String> findsItsLimit) {
        this.findsItsLimit = findsItsLimit;
    }

    @Override
    public Map<String, Object> getErrorAttributes(ServerRequest request, ErrorAttributeOptions options) {
        Map<String, Object> attributes = super.getErrorAttributes(request, options);
        Throwable error = getError(request);
        Refusal refusal = error == null ? null : Refusal.in(error, HttpStatus.TOO_MANY_REQUESTS.value(), findsItsLimit);
        if (refusal != null) {
            attributes.putAll(refusal.attributes());
        }
        return attributes;
    }
}
