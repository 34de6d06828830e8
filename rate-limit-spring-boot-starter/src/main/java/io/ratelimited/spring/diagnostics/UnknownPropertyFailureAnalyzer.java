package io.ratelimited.spring.diagnostics;

import io.ratelimited.spring.autoconfigure.RateLimitProperties;
import io.ratelimited.spring.text.SimilarName;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.boot.context.properties.bind.UnboundConfigurationPropertiesException;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName.Form;
import org.springframework.boot.diagnostics.AbstractFailureAnalyzer;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.Order;
import org.springframework.util.ObjectUtils;

/**
 * Explains properties under {@code rate-limit} that do not exist, are empty or stand in a list with a gap, and suggests
 * similar names.
 */
@Order(Ordered.HIGHEST_PRECEDENCE)
final class UnknownPropertyFailureAnalyzer extends AbstractFailureAnalyzer<UnboundConfigurationPropertiesException> {

    private static final ConfigurationPropertyName PREFIX = ConfigurationPropertyName.of("rate-limit");

    @Override
    protected @Nullable FailureAnalysis analyze(Throwable rootFailure, UnboundConfigurationPropertiesException cause) {
        if (cause.getUnboundProperties().stream().noneMatch(property -> PREFIX.isAncestorOf(property.getName()))) {
            return null;
        }
        String problems = cause.getUnboundProperties().stream()
                .map(UnknownPropertyFailureAnalyzer::describe)
                .collect(Collectors.joining(System.lineSeparator()));
        return new FailureAnalysis(
                problems,
                "Correct or remove it. Put the name of a limit with a dot, capitals or parentheses in brackets, as"
                        + " in rate-limit.limits[OrderController.place].rate. [RL-101]",
                cause);
    }

    private static String describe(ConfigurationProperty property) {
        ConfigurationPropertyName name = property.getName();
        String origin = property.getOrigin() == null ? "" : " (" + property.getOrigin() + ")";
        Type type = RateLimitProperties.class;
        for (int i = PREFIX.getNumberOfElements(); i < name.getNumberOfElements(); i++) {
            Map<String, Type> known = properties(type);
            String element = name.getElement(i, Form.DASHED);
            Type next = known.isEmpty() ? elementOf(type) : known.get(element);
            if (next == null) {
                return "There is no property " + name + ": " + property.getValue() + origin
                        + SimilarName.hint(element, known.keySet())
                        + (known.isEmpty() ? "" : "; there are " + known.keySet());
            }
            type = next;
        }
        // Spring Boot leaves out a value of a known property only if the list that holds it has no element before it.
        return ObjectUtils.isEmpty(property.getValue())
                ? "Property " + name + " has no value" + origin
                : "Property " + name + ": " + property.getValue() + " is not used" + origin
                        + ": the elements of a list are numbered from 0 without a gap, and a property source that sets any"
                        + " part of a list replaces the whole list";
    }

    /** The properties of a record by their names; none for other types. */
    private static Map<String, Type> properties(Type type) {
        Map<String, Type> properties = new TreeMap<>();
        if (type instanceof Class<?> properType && properType.isRecord()) {
            for (RecordComponent component : properType.getRecordComponents()) {
                properties.put(DataObjectPropertyName.toDashedForm(component.getName()), component.getGenericType());
            }
        }
        return properties;
    }

    /** The type of the values of a map or of the elements of a list; null for other types. */
    private static @Nullable Type elementOf(Type type) {
        Type[] arguments = type instanceof ParameterizedType generic ? generic.getActualTypeArguments() : new Type[0];
        return arguments.length == 0 ? null : arguments[arguments.length - 1];
    }
}
