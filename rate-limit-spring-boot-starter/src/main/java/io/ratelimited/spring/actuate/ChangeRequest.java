package io.ratelimited.spring.actuate;

import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.limit.LimitProperty;
import io.ratelimited.spring.text.PropertyText;
import io.ratelimited.spring.text.SimilarName;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.convert.ApplicationConversionService;
import org.springframework.core.convert.ConversionException;

/**
 * The members of a request to change a limit, read as the properties of a limit are, so that both take the same texts.
 *
 * @param limit its name
 * @param members as text, by name
 */
record ChangeRequest(String limit, Map<String, ?> members) {

    /** The member that takes back changes. */
    private static final String REVERT = "revert";

    /** The member that names the caller whose limit is meant. */
    private static final String TIER = "tier";

    /** All but the algorithm, which would begin every budget anew, and the tiers, of which a request changes one. */
    private static final Map<String, LimitProperty> PROPERTIES = Stream.of(LimitProperty.values())
            .filter(LimitProperty::isChangeable)
            .filter(property -> property != LimitProperty.ALGORITHM && property != LimitProperty.TIERS)
            .collect(Collectors.toMap(LimitProperty::label, property -> property, (a, b) -> a, TreeMap::new));

    /** The member that states the length of a budget. */
    private static final String FOR = "for";

    /** The members of a caller's own budget. */
    private static final Set<String> OF_CALLER = new TreeSet<>(Set.of(TIER, "rate", "burst", FOR, REVERT));

    /**
     * The members as the budget of a caller: its tier, or its rate and burst.
     *
     * @throws IllegalArgumentException when one is unknown, or cannot be read
     */
    LimitProperties budget() {
        Set<String> unknown = new TreeSet<>(members.keySet());
        unknown.removeAll(OF_CALLER);
        if (!unknown.isEmpty()) {
            throw new IllegalArgumentException("an override has no " + unknown
                    + SimilarName.hint(unknown.iterator().next(), OF_CALLER) + "; use some of " + OF_CALLER
                    + "; nothing was changed");
        }
        Map<String, Object> values = new HashMap<>();
        for (LimitProperty property : Set.of(LimitProperty.TIER, LimitProperty.RATE, LimitProperty.BURST)) {
            Object value = value(property, members.get(property.label()));
            if (value != null) {
                values.put(property.label(), value);
            }
        }
        return LimitProperties.of(values);
    }

    /**
     * Returns the time for which a caller has its budget; null for ever.
     *
     * @throws IllegalArgumentException when it cannot be read, or has no unit: Spring Boot reads milliseconds then, which
     *     nobody means here. An empty text would be for ever.
     */
    @Nullable
    Duration lasting() {
        Object text = members.get(FOR);
        if (text != null && text.toString().matches("\\s*([+-]?\\d+\\s*)?")) {
            throw invalidTime(text, null);
        }
        try {
            return ApplicationConversionService.getSharedInstance().convert(text, Duration.class);
        } catch (ConversionException ex) {
            throw invalidTime(text, ex);
        }
    }

    private IllegalArgumentException invalidTime(@Nullable Object text, @Nullable ConversionException cause) {
        return new IllegalArgumentException(
                FOR + " of rate limit '" + limit + "' cannot be \"" + text
                        + "\"; use a duration with its unit, such as 24h; nothing was changed",
                cause);
    }

    /**
     * Returns whether changes are to be taken back.
     *
     * @throws IllegalArgumentException when the request says something else, too
     */
    boolean reverts() {
        Object revert = members.get(REVERT);
        if (revert == null) {
            return false;
        }
        if (members.size() > 1 || !revert.toString().equals("true")) {
            throw new IllegalArgumentException("\"" + REVERT + "\" of rate limit '" + limit
                    + "' can only be true, and stands alone; nothing was changed");
        }
        return true;
    }

    /**
     * The members as properties.
     *
     * @throws IllegalArgumentException when there is none, one is unknown, or one cannot be read
     */
    LimitProperties properties() {
        Set<String> unknown = new TreeSet<>(members.keySet());
        unknown.removeAll(PROPERTIES.keySet());
        unknown.remove(TIER);
        if (!unknown.isEmpty()) {
            Set<String> known = new TreeSet<>(PROPERTIES.keySet());
            known.add(TIER);
            known.add(REVERT);
            throw new IllegalArgumentException("a limit has no " + unknown
                    + SimilarName.hint(unknown.iterator().next(), known) + "; use some of " + known
                    + "; nothing was changed");
        }
        Map<String, Object> values = new HashMap<>();
        PROPERTIES.forEach((member, property) -> {
            Object value = value(property, members.get(member));
            if (value != null) {
                values.put(member, value);
            }
        });
        if (values.isEmpty()) {
            throw new IllegalArgumentException("nothing to change in rate limit '" + limit
                    + "': the request says none of " + PROPERTIES.keySet() + "; give at least one");
        }
        Object tier = members.get(TIER);
        try {
            LimitProperties changes = LimitProperties.of(values);
            return tier == null ? changes : LimitProperties.of(Map.of("tiers", Map.of(tier.toString(), changes)));
        } catch (IllegalArgumentException ex) {
            throw new IllegalArgumentException(
                    "rate limit '" + limit + "': " + ex.getMessage() + "; nothing was changed", ex);
        }
    }

    private @Nullable Object value(LimitProperty property, @Nullable Object text) {
        try {
            Object value = text instanceof String entries && property.type() == Map.class
                    ? PropertyText.read(entries, Map.class)
                    : ApplicationConversionService.getSharedInstance().convert(text, property.type());
            if (value == null && text != null) {
                // Spring reads an empty text as no value, so that the request would do less than it says.
                throw invalid(property, text, null);
            }
            return value;
        } catch (ConversionException ex) {
            throw invalid(property, text, ex);
        } catch (IllegalArgumentException ex) {
            throw invalid(property, text, null);
        }
    }

    private IllegalArgumentException invalid(
            LimitProperty property, @Nullable Object text, @Nullable ConversionException cause) {
        return new IllegalArgumentException(
                property.label() + " of rate limit '" + limit + "' cannot be \"" + text + "\"; "
                        + expected(property.type()) + "; nothing was changed",
                cause);
    }

    private static String expected(Class<?> type) {
        if (type.isEnum()) {
            return "use one of " + PropertyText.values(type);
        }
        return switch (type.getSimpleName()) {
            case "Duration" -> "use a duration such as 500ms, 10s or PT10S";
            case "ZoneId" -> "use a time zone such as Europe/Berlin";
            case "Double" -> "use a number";
            // Spring Boot's endpoints read texts only: a list or an object in a body is answered before it comes here.
            case "List" -> "use a text such as \"critical, batch\"";
            case "Map" -> "use a text such as \"batch=5%, normal=20%\"";
            default -> "use a whole number";
        };
    }
}
