package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.autoconfigure.KnownProperties.Unknown;
import io.ratelimited.spring.internals.text.SimilarName;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.UnboundConfigurationPropertiesException;
import org.springframework.boot.context.properties.source.ConfigurationProperty;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
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

    @Override
    protected @Nullable FailureAnalysis analyze(Throwable rootFailure, UnboundConfigurationPropertiesException cause) {
        if (cause.getUnboundProperties().stream()
                .noneMatch(property -> KnownProperties.PREFIX.isAncestorOf(property.getName()))) {
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
        Optional<Unknown> unknown = KnownProperties.unknown(name);
        if (unknown.isPresent()) {
            Set<String> siblings = unknown.get().siblings();
            return "There is no property " + name + ": " + property.getValue() + origin
                    + SimilarName.hint(unknown.get().element(), siblings)
                    + (siblings.isEmpty() ? "" : "; there are " + siblings);
        }
        // Spring Boot leaves out a value of a known property only if the list that holds it has no element before it.
        return ObjectUtils.isEmpty(property.getValue())
                ? "Property " + name + " has no value" + origin
                : "Property " + name + ": " + property.getValue() + " is not used" + origin
                        + ": the elements of a list are numbered from 0 without a gap, and a property source that sets any"
                        + " part of a list replaces the whole list";
    }
}
