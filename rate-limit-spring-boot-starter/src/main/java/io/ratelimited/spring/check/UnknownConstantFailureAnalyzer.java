package io.ratelimited.spring.check;

import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.limit.PropertyText;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.core.NestedExceptionUtils;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;

/**
 * Explains properties under {@code rate-limit} whose value is none of those that they can have. Spring Boot would list
 * {@code default} among them, which only the annotation has.
 */
@Order(Ordered.HIGHEST_PRECEDENCE)
final class UnknownConstantFailureAnalyzer extends AbstractFailureAnalyzer<BindException> {

    private static final ConfigurationPropertyName PREFIX = ConfigurationPropertyName.of("rate-limit");

    @Override
    protected @Nullable FailureAnalysis analyze(Throwable rootFailure, BindException cause) {
        ConfigurationPropertyName name = cause.getName();
        Class<?> type = cause.getTarget().getType().resolve(Object.class);
        ConfigurationProperty property = cause.getProperty();
        if (!PREFIX.isAncestorOf(name)) {
            return null;
        }
        if (type.isEnum() && property != null) {
            String origin = property.getOrigin() == null ? "" : " (" + property.getOrigin() + ")";
            return new FailureAnalysis(
                    "Property " + name + " must be one of " + PropertyText.values(type) + ": " + property.getValue()
                            + origin,
                    "Correct it, or remove it to have the default.",
                    cause);
        }
        Throwable refused = NestedExceptionUtils.getMostSpecificCause(cause);
        return type == LimitProperties.class && refused instanceof IllegalArgumentException
                ? new FailureAnalysis(
                        "Property " + name + "." + refused.getMessage(),
                        "Correct it, or remove it to have the default.",
                        cause)
                : null;
    }
}
