package io.ratelimited.spring.actuate;

import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.limit.LimitSettings;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.BindException;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;
import org.springframework.core.NestedExceptionUtils;

/** The members of a write request, read as the properties of a limit are, so that both take the same texts. */
final class LimitChange {

    private final Map<String, String> members = new LinkedHashMap<>();

    LimitChange with(String member, @Nullable String value) {
        if (value != null) {
            members.put(member, value);
        }
        return this;
    }

    /**
     * The members as properties.
     *
     * @param tier whose limit they are meant for; null for the limit itself
     * @throws IllegalArgumentException when there is none, or one cannot be read
     */
    LimitProperties properties(String limit, @Nullable String tier) {
        String prefix = tier == null ? "change." : "change.tiers[" + tier + "].";
        MapConfigurationPropertySource source = new MapConfigurationPropertySource();
        members.forEach((member, value) -> source.put(prefix + kebab(member), value));
        try {
            return new Binder(source)
                    .bind("change", LimitProperties.class)
                    .orElseThrow(() -> new IllegalArgumentException("nothing to change in rate limit '" + limit
                            + "': the request says none of rate, burst, warmup, coldFactor, maxConcurrent, lease, zone,"
                            + " slots, policy, maxWait, maxWaiting, missingKey; give at least one as a JSON member"));
        } catch (BindException ex) {
            throw new IllegalArgumentException(describe(limit, ex.getName(), ex), ex);
        }
    }

    private String describe(String limit, ConfigurationPropertyName property, BindException failure) {
        Class<?> type = failure.getTarget().getType().resolve(Object.class);
        if (type == LimitProperties.class) {
            return "rate limit '" + limit + "': "
                    + NestedExceptionUtils.getMostSpecificCause(failure).getMessage() + "; nothing was changed";
        }
        String last = property.getLastElement(ConfigurationPropertyName.Form.UNIFORM);
        String member = members.keySet().stream()
                .filter(candidate -> candidate.equalsIgnoreCase(last))
                .findFirst()
                .orElse(last);
        return member + " of rate limit '" + limit + "' cannot be \"" + members.get(member) + "\"; " + expected(type)
                + "; nothing was changed";
    }

    private static String expected(Class<?> type) {
        if (type.isEnum()) {
            return "use one of " + LimitSettings.values(type);
        }
        return switch (type.getSimpleName()) {
            case "Duration" -> "use a duration such as 500ms, 10s or PT10S";
            case "ZoneId" -> "use a time zone such as Europe/Berlin";
            case "Double" -> "use a number";
            default -> "use a whole number";
        };
    }

    private static String kebab(String member) {
        return member.replaceAll("([A-Z])", "-$1").toLowerCase(Locale.ROOT);
    }
}
