package io.ratelimited.spring.autoconfigure.web.servlet;

import io.ratelimited.spring.web.Refusal;
import io.ratelimited.spring.web.servlet.RefusalPage;
import java.util.Map;
import org.springframework.boot.web.error.ErrorAttributeOptions;
import org.springframework.boot.webmvc.error.DefaultErrorAttributes;
import org.springframework.web.context.request.RequestAttributes;
import org.springframework.web.context.request.WebRequest;

/**
 * Spring Boot's attributes of error pages; for a refusal also its reason, as {@code message}, and {@code retryAfter} in
 * seconds.
 */
final class RefusalErrorAttributes extends DefaultErrorAttributes {

    @Override
    public Map<String, Object> getErrorAttributes(WebRequest request, ErrorAttributeOptions options) {
        Map<String, Object> attributes = super.getErrorAttributes(request, options);
        Refusal refusal =
                RefusalPage.shownFor(request.getAttribute(RefusalPage.ATTRIBUTE, RequestAttributes.SCOPE_REQUEST));
        if (refusal != null) {
            attributes.putAll(refusal.attributes());
        }
        return attributes;
    }
}
