package io.ratelimited.spring.config;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.limit.KeyMemory;
import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.limit.LimitSettings;
import io.ratelimited.spring.internals.limit.SettingsSource;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.RelaxedNames;
import io.ratelimited.spring.internals.text.SimilarName;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Function;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.springframework.core.env.ConfigurableEnvironment;
import org.springframework.core.env.EnumerablePropertySource;
import org.springframework.core.env.Environment;

/** The settings that properties of the Environment make, read by the names that they have on every page. Immutable. */
final class EnvironmentSettings implements SettingsSource {

    private static final LogText.Lines LOG = LogText.lines(EnvironmentSettings.class);

    private static final String PREFIX = "rate-limit.";
    /** Those that hold for all contexts of a hierarchy. */
    private static final Set<String> SHARED = Set.of("enabled", "backend", "defaults", "limits", "memory");

    private static final Set<String> KNOWN = new TreeSet<>(
            Set.of("enabled", "backend", "defaults", "limits", "memory.maximum-keys", "aspect.order", "aspect.mode"));

    /** Where nothing read a property, a limit would be missing. */
    private static final Set<String> OF_LIMITS = Set.of("defaults", "limits", "routes", "clients");

    private static final Set<String> MODES = new TreeSet<>(Set.of("proxy", "woven"));

    /** As Spring Boot would read them; nothing else has such names. */
    private static final Pattern VARIABLE =
            Pattern.compile("RATE_?LIMIT_(ENABLED|BACKEND|(DEFAULTS|LIMITS|MEMORY|ASPECT)_.*)");

    /** The elements of a path: in brackets, in which there may be those of an array, or between dots. */
    private static final Pattern ELEMENT = Pattern.compile("\\[((?:[^\\[\\]]|\\[[^\\]]*])*)]|([^.\\[]+)");

    private static final Map<String, LimitProperty> PROPERTIES = Stream.of(LimitProperty.values())
            .collect(Collectors.toMap(LimitProperty::kebab, Function.identity(), (one, other) -> one, TreeMap::new));

    private final Environment environment;
    private final LimitSettings settings;
    private final KeyMemory memory;

    /** @throws InvalidRateLimitException when a property of limits does not exist, or a value cannot be read */
    EnvironmentSettings(Environment environment) {
        this.environment = environment;
        Values defaults = new Values();
        Map<String, Values> limits = new LinkedHashMap<>();
        String backend = "memory";
        Long maximumKeys = null;
        for (String name : names(environment)) {
            List<String> path = elements(name);
            String value = String.valueOf(environment.getProperty(name)).strip();
            if (path.get(0).equals("defaults") && path.size() > 1) {
                defaults.set(name, path.subList(1, path.size()), value);
            } else if (path.get(0).equals("limits") && path.size() > 2) {
                limits.computeIfAbsent(path.get(1), limit -> new Values())
                        .set(name, path.subList(2, path.size()), value);
            } else if (OF_LIMITS.contains(path.get(0))) {
                throw unknown(name, path.get(0), KNOWN);
            } else {
                switch (String.join(".", path)) {
                    case "enabled" -> {} // read by the condition of all beans
                    case "backend" -> backend = value.toLowerCase(Locale.ROOT);
                    case "memory.maximum-keys" -> maximumKeys = keys(name, value);
                    case "aspect.order" -> requireOrder(name, value);
                    case "aspect.mode" -> {
                        if (!MODES.contains(value.toLowerCase(Locale.ROOT))) {
                            throw InvalidRateLimitException.ofProperty(name, "must be one of " + MODES, value);
                        }
                    }
                    default ->
                        LOG.warn("Property " + name + " has no effect without Spring Boot"
                                + SimilarName.hint(String.join(".", path), KNOWN) + ". Correct or remove it, or use"
                                + " rate-limit-spring-boot-starter. [RL-330]");
                }
            }
        }
        Map<String, Map<LimitProperty, Object>> named = new LinkedHashMap<>();
        limits.forEach((limit, values) -> named.put(limit, values.all()));
        this.settings = new LimitSettings(backend, LimitProperty.OnFailure.LOCAL, defaults.all(), named);
        this.memory = KeyMemory.ofHeap(maximumKeys);
        variables(environment)
                .forEach(variable -> LOG.warn("The environment variable " + variable
                        + " has no effect, because only Spring Boot reads such a name. Set the property by its name"
                        + " in kebab case, such as in a file of @PropertySource. [RL-330]"));
    }

    @Override
    public LimitSettings settings() {
        return settings;
    }

    @Override
    public KeyMemory memory() {
        return memory;
    }

    @Override
    public void requireSame(Environment there) {
        for (String name : names(environment)) {
            String own = String.valueOf(environment.getProperty(name));
            String parents = there.getProperty(name, "not set");
            if (SHARED.contains(elements(name).get(0)) && !own.equals(parents)) {
                throw SettingsSource.differing(name, own, parents);
            }
        }
    }

    private static Set<String> names(Environment environment) {
        return all(environment).filter(name -> name.startsWith(PREFIX)).collect(Collectors.toCollection(TreeSet::new));
    }

    private static Set<String> variables(Environment environment) {
        return all(environment)
                .filter(name -> VARIABLE.matcher(name).matches())
                .collect(Collectors.toCollection(TreeSet::new));
    }

    private static Stream<String> all(Environment environment) {
        return environment instanceof ConfigurableEnvironment configurable
                ? configurable.getPropertySources().stream()
                        .filter(EnumerablePropertySource.class::isInstance)
                        .flatMap(source -> Stream.of(((EnumerablePropertySource<?>) source).getPropertyNames()))
                : Stream.empty();
    }

    private static List<String> elements(String name) {
        List<String> elements = new ArrayList<>();
        Matcher matcher = ELEMENT.matcher(name.substring(PREFIX.length()));
        while (matcher.find()) {
            elements.add(matcher.group(1) == null ? matcher.group(2) : matcher.group(1));
        }
        return elements.isEmpty() ? List.of("") : elements;
    }

    private static long keys(String name, String value) {
        long keys = integer(name, value);
        if (keys < 1) {
            throw InvalidRateLimitException.ofProperty(name, "must be at least 1", keys);
        }
        return keys;
    }

    private static long integer(String name, String value) {
        try {
            return Long.parseLong(value);
        } catch (NumberFormatException ex) {
            throw InvalidRateLimitException.ofProperty(name, "must be a whole number", value);
        }
    }

    /** As the advisor reads it. */
    private static void requireOrder(String name, String value) {
        try {
            Integer.parseInt(value);
        } catch (NumberFormatException ex) {
            throw InvalidRateLimitException.ofProperty(
                    name, "must be a whole number from " + Integer.MIN_VALUE + " to " + Integer.MAX_VALUE, value);
        }
    }

    private static InvalidRateLimitException unknown(String name, String element, Set<String> known) {
        return new InvalidRateLimitException(
                "There is no property " + name + " without Spring Boot" + SimilarName.hint(element, known)
                        + "; there are " + known,
                "Correct or remove it, or use rate-limit-spring-boot-starter. Put the name of a limit with a dot in"
                        + " brackets, as in rate-limit.limits[OrderController.place].rate. [RL-101]");
    }

    /** The properties of a limit, of a tier, or of the defaults. */
    private static final class Values {

        private final Map<LimitProperty, Object> values = new EnumMap<>(LimitProperty.class);
        private final Map<String, Values> tiers = new LinkedHashMap<>();
        private final Map<String, String> shares = new TreeMap<>();
        /** By their numbers. */
        private final Map<LimitProperty, NavigableMap<Long, String>> elements = new EnumMap<>(LimitProperty.class);

        void set(String name, List<String> path, String text) {
            String known = RelaxedNames.find(PROPERTIES.keySet(), path.get(0));
            LimitProperty property = known == null ? null : PROPERTIES.get(known);
            if (property == LimitProperty.TIERS && path.size() > 2) {
                tiers.computeIfAbsent(path.get(1), tier -> new Values()).set(name, path.subList(2, path.size()), text);
            } else if (property == LimitProperty.SHARES && path.size() == 2) {
                shares.put(path.get(1), text);
            } else if (property != null && property.type() == List.class && path.size() == 2) {
                elements.computeIfAbsent(property, list -> new TreeMap<>()).put(integer(name, path.get(1)), text);
            } else if (property == null || path.size() > 1 || property.type() == Map.class) {
                throw unknown(name, path.get(0), PROPERTIES.keySet());
            } else {
                values.put(property, read(property, name, text));
            }
        }

        private static Object read(LimitProperty property, String name, String text) {
            try {
                return property.read(name, property == LimitProperty.BACKEND ? text.toLowerCase(Locale.ROOT) : text);
            } catch (IllegalArgumentException ex) {
                throw new InvalidRateLimitException(
                        "Property " + ex.getMessage(), "Correct it, or remove it to use the default. [RL-102]");
            }
        }

        Map<LimitProperty, Object> all() {
            elements.forEach((property, list) -> {
                if (list.firstKey() != 0 || list.lastKey() != list.size() - 1) {
                    throw new InvalidRateLimitException(
                            "The elements of " + property.kebab() + " are numbered " + list.keySet()
                                    + ", but must be numbered from 0 without a gap",
                            "Correct the numbers. [RL-101]");
                }
                values.put(property, List.copyOf(list.values()));
            });
            if (!shares.isEmpty()) {
                values.put(LimitProperty.SHARES, Map.copyOf(shares));
            }
            if (!tiers.isEmpty()) {
                Map<String, Map<LimitProperty, Object>> named = new LinkedHashMap<>();
                tiers.forEach((tier, own) -> named.put(tier, own.all()));
                values.put(LimitProperty.TIERS, named);
            }
            return Map.copyOf(values);
        }
    }
}
