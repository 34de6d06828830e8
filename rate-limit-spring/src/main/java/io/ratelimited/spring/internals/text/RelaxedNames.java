package io.ratelimited.spring.internals.text;

import java.util.Collection;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** Finds names as Spring Boot binds them: case, dashes and underscores tell no names apart. */
public final class RelaxedNames {

    private RelaxedNames() {}

    /**
     * The name that a value means: one that is equal to its text, or else one that differs in case, dashes and underscores
     * only. An enum constant means its text or its name.
     *
     * @return null if it means none of the names
     */
    public static @Nullable String find(Collection<String> names, Object value) {
        String text = value.toString();
        if (names.contains(text)) {
            return text;
        }
        String found = find(names, text);
        return found == null && value instanceof Enum<?> constant ? find(names, constant.name()) : found;
    }

    private static @Nullable String find(Collection<String> names, String text) {
        if (names.contains(text)) {
            return text;
        }
        String wanted = uniform(text);
        return names.stream()
                .filter(name -> uniform(name).equals(wanted))
                .findFirst()
                .orElse(null);
    }

    private static String uniform(String name) {
        return name.replace("-", "").replace("_", "").toLowerCase(Locale.ROOT);
    }
}
