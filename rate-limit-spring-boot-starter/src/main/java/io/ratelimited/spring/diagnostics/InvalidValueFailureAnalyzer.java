package io.ratelimited.spring.diagnostics;

import io.ratelimited.spring.internals.text.PropertyText;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertySource;
import org.springframework.boot.context.properties.source.ConfigurationPropertySources;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.core.NestedExceptionUtils;
import org.springframework.core.Ordered;
import org.springframework.core.ResolvableType;
import org.springframework.core.annotation.Order;
import org.springframework.core.convert.ConversionFailedException;
import org.springframework.core.convert.ConverterNotFoundException;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.Environment;

/**
 * Explains properties under {@code rate-limit} with an invalid value. Spring Boot would name a Java type instead of what to
 * write, and list {@code default}, which only the annotation has. Also explains text where nested properties belong.
 */
@Order(Ordered.HIGHEST_PRECEDENCE)
final class InvalidValueFailureAnalyzer extends AbstractFailureAnalyzer<BindException> {

    private static final ConfigurationPropertyName PREFIX = ConfigurationPropertyName.of("rate-limit");

    private static final ConfigurationPropertyName REDIS = PREFIX.append("redis");

    private final Environment environment;

    InvalidValueFailureAnalyzer(Environment environment) {
        this.environment = environment;
    }

    @Override
    protected @Nullable FailureAnalysis analyze(Throwable rootFailure, BindException cause) {
        ConfigurationPropertyName name = cause.getName();
        ResolvableType target = cause.getTarget().getType();
        // Of a list that is written as one text, it is that of an element.
        Class<?> type = (target.hasGenerics() ? target.getGeneric() : target).resolve(Object.class);
        ConfigurationProperty property = cause.getProperty();
        if (!PREFIX.isAncestorOf(name)) {
            return null;
        }
        if (property != null && (type.isEnum() || cause.getCause() instanceof ConversionFailedException)) {
            return new FailureAnalysis(
                    "Property " + name + " is " + property.getValue() + origin(property) + ", but must be "
                            + PropertyText.expected(type),
                    "Correct it, or remove it to use the default. [RL-102]",
                    cause);
        }
        Throwable refused = NestedExceptionUtils.getMostSpecificCause(cause);
        if (refused instanceof ConverterNotFoundException) {
            ConfigurationProperty text = property == null ? find(name) : property;
            boolean redis = REDIS.equals(name);
            // An address of Redis can hold a password.
            String value = text == null || redis ? "" : ": " + text.getValue();
            return new FailureAnalysis(
                    "Property " + name + " has nested properties, but no value" + value + origin(text),
                    "Set a property below it, as in "
                            + (redis
                                    ? "rate-limit.redis.url: redis://localhost:6379. [RL-102]"
                                    : "rate-limit.limits.search.rate: 100/s for rate-limit.limits.search. [RL-102]"),
                    cause);
        }
        return null;
    }

    /** Finds the origin of a value that stands in the place of properties, which Spring Boot's failure does not contain. */
    private @Nullable ConfigurationProperty find(ConfigurationPropertyName name) {
        if (environment instanceof ConfigurableEnvironment configurable) {
            for (ConfigurationPropertySource source :
                    ConfigurationPropertySources.from(configurable.getPropertySources())) {
                ConfigurationProperty found = source.getConfigurationProperty(name);
                if (found != null) {
                    return found;
                }
            }
        }
        return null;
    }

    private static String origin(@Nullable ConfigurationProperty property) {
        return property == null || property.getOrigin() == null ? "" : " (" + property.getOrigin() + ")";
    }
}
