package io.ratelimited.spring.autoconfigure.web.servlet;

import io.ratelimited.spring.internals.web.Rejection;
import io.ratelimited.spring.internals.web.servlet.RejectionPage;
import java.util.Map;
import org.springframework.boot.web.error.ErrorAttributeOptions;
import org.springframework.boot.webmvc.error.DefaultErrorAttributes;
import org.springframework.web.context.request.RequestAttributes;
import org.springframework.web.context.request.WebRequest;

/**
 * Spring Boot's attributes of error pages; for a refusal also its reason, as {@code message}, and {@code retryAfter} in
 * seconds.
 */
final class RejectionErrorAttributes extends DefaultErrorAttributes {

    @Override
    public Map<String, Object> getErrorAttributes(WebRequest request, ErrorAttributeOptions options) {
        Map<String, Object> attributes = super.getErrorAttributes(request, options);
        Rejection refusal =
                RejectionPage.shownFor(request.getAttribute(RejectionPage.ATTRIBUTE, RequestAttributes.SCOPE_REQUEST));
        if (refusal != null) {
            attributes.putAll(refusal.attributes());
        }
        return attributes;
    }
}
