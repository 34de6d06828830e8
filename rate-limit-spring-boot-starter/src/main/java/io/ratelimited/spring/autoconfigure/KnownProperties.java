package io.ratelimited.spring.autoconfigure;

import io.ratelimited.spring.internals.text.SimilarName;
import java.lang.reflect.ParameterizedType;
import java.lang.reflect.RecordComponent;
import java.lang.reflect.Type;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.springframework.boot.context.properties.bind.DataObjectPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName;
import org.springframework.boot.context.properties.source.ConfigurationPropertyName.Form;

/** The names of the properties under {@code rate-limit}, as the records have them that they are bound to. */
final class KnownProperties {

    /** The prefix of every property. */
    public static final ConfigurationPropertyName PREFIX = ConfigurationPropertyName.of("rate-limit");

    /** Where a property that does not exist changes what a limit does: it fails startup. */
    private static final Set<String> OF_LIMITS = Set.of("defaults", "limits", "routes", "clients");

    private KnownProperties() {}

    /**
     * A property that does not exist.
     *
     * @param parent the part of its name that exists
     * @param element the first element of its name that does not exist
     * @param siblings the names that exist there, in lower case with dashes; none where no property can be
     * @param isNamed whether the parent has a name that the application chooses, such as that of a limit
     */
    public record Unknown(ConfigurationPropertyName parent, String element, Set<String> siblings, boolean isNamed) {

        /** Whether the property is part of a limit, a route, a client or the defaults, or of one of these misspelt. */
        public boolean isOfLimit() {
            return parent.equals(PREFIX)
                    ? SimilarName.find(element, siblings)
                            .filter(OF_LIMITS::contains)
                            .isPresent()
                    : OF_LIMITS.contains(parent.getElement(1, Form.UNIFORM));
        }
    }

    /**
     * Looks for the first element of a name that does not exist.
     *
     * @param name below {@link #PREFIX}
     */
    public static Optional<Unknown> unknown(ConfigurationPropertyName name) {
        Type type = RateLimitProperties.class;
        boolean named = false;
        for (int i = PREFIX.getNumberOfElements(); i < name.getNumberOfElements(); i++) {
            Map<String, Type> known = properties(type);
            String element = name.getElement(i, Form.UNIFORM);
            Type next = known.isEmpty() ? elementOf(type) : typeOf(known, element);
            if (next == null) {
                return Optional.of(new Unknown(name.chop(i), name.getElement(i, Form.DASHED), known.keySet(), named));
            }
            named |= known.isEmpty() && !name.isNumericIndex(i);
            type = next;
        }
        return Optional.empty();
    }

    /**
     * The nearest name that exists, if one is near: below the same parent; that of a limit, if only {@code limits} is missing;
     * or, for a property that is not part of a limit, anywhere outside of maps and lists. The same property of another branch
     * would change other limits.
     */
    static Optional<String> similar(ConfigurationPropertyName name, Unknown unknown) {
        StringBuilder rest = new StringBuilder();
        for (int i = unknown.parent.getNumberOfElements(); i < name.getNumberOfElements(); i++) {
            rest.append(name.getElement(i, Form.UNIFORM));
        }
        for (String sibling : unknown.siblings) {
            // An environment variable has a dot in place of each dash.
            if (uniform(sibling).contentEquals(rest)) {
                return Optional.of(unknown.parent.append(sibling).toString());
            }
        }
        Optional<String> sibling = SimilarName.find(unknown.element, unknown.siblings);
        if (sibling.isPresent() || unknown.isOfLimit()) {
            return sibling.map(near -> unknown.parent.append(near).toString());
        }
        ConfigurationPropertyName ofLimit = PREFIX.append("limits").append(name.subName(PREFIX.getNumberOfElements()));
        if (ofLimit.getNumberOfElements() > 3
                && unknown.parent.equals(PREFIX)
                && unknown(ofLimit).isEmpty()) {
            return Optional.of(ofLimit.toString());
        }
        Map<String, String> byLastElement = new TreeMap<>();
        for (String path : paths()) {
            byLastElement.putIfAbsent(path.substring(path.lastIndexOf('.') + 1), path);
        }
        String last = name.getLastElement(Form.DASHED);
        return Optional.ofNullable(byLastElement.get(last))
                .or(() -> SimilarName.find(last, byLastElement.keySet()).map(byLastElement::get));
    }

    /** The names right below the prefix. */
    static Set<String> members() {
        return properties(RateLimitProperties.class).keySet();
    }

    /** All names outside of maps and lists. */
    static Set<String> paths() {
        Set<String> paths = new LinkedHashSet<>();
        addPaths(PREFIX.toString(), RateLimitProperties.class, paths);
        return paths;
    }

    private static void addPaths(String parent, Type type, Set<String> paths) {
        properties(type).forEach((name, next) -> {
            paths.add(parent + "." + name);
            addPaths(parent + "." + name, next, paths);
        });
    }

    /** The records that the properties are bound to. */
    static Set<Class<?>> records() {
        Set<Class<?>> records = new LinkedHashSet<>();
        addRecords(RateLimitProperties.class, records);
        return records;
    }

    private static void addRecords(Type type, Set<Class<?>> records) {
        Type element = elementOf(type);
        if (element != null) {
            addRecords(element, records);
        } else if (type instanceof Class<?> properType && properType.isRecord() && records.add(properType)) {
            properties(properType).values().forEach(next -> addRecords(next, records));
        }
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

    private static @Nullable Type typeOf(Map<String, Type> known, String uniform) {
        for (Map.Entry<String, Type> each : known.entrySet()) {
            if (uniform(each.getKey()).equals(uniform)) {
                return each.getValue();
            }
        }
        return null;
    }

    private static String uniform(String dashed) {
        return dashed.replace("-", "");
    }

    /** The type of the values of a map or of the elements of a list; null for other types. */
    private static @Nullable Type elementOf(Type type) {
        Type[] arguments = type instanceof ParameterizedType generic ? generic.getActualTypeArguments() : new Type[0];
        return arguments.length == 0 ? null : arguments[arguments.length - 1];
    }
}
