package io.ratelimited.redis;

import io.ratelimited.core.KeyDigest;
import java.lang.reflect.Method;
import org.jspecify.annotations.Nullable;

/**
 * Names of keys in Redis: {@code prefix:{caller key}:limit}, and {@code prefix:{limit}} for a limit without keys. All
 * limits of one caller are in one hash slot. Braces in names and keys are escaped, so that no caller chooses the slot.
 */
final class RedisKeys {

    /** Whether instances of a class with the same value have the same text. */
    private static final ClassValue<Boolean> HAS_TEXT = new ClassValue<>() {
        @Override
        protected Boolean computeValue(Class<?> type) {
            if (type.isArray()) {
                return false;
            }
            try {
                Method toString = type.getMethod("toString");
                return toString.getDeclaringClass() != Object.class;
            } catch (NoSuchMethodException ex) {
                return false;
            }
        }
    };

    private final String prefix;

    RedisKeys(String prefix) {
        this.prefix = escape(prefix) + ":{";
    }

    /** @param caller as {@link #text} returns it */
    String of(String limit, @Nullable String caller) {
        return caller == null ? prefix + escape(limit) + '}' : prefix + escape(caller) + "}:" + escape(limit);
    }

    /** A key of the backend itself. */
    String internal(String name) {
        return prefix + "~" + name + '}';
    }

    /** A key of the backend itself in the slot of another key. */
    String beside(String key, String name) {
        return key.substring(0, key.indexOf('}') + 1) + ":~" + name;
    }

    /**
     * The text by which a caller's key is known to the cluster; long ones by their SHA-256.
     *
     * @throws IllegalArgumentException when the key's class has no text of its own, so that every instance would have
     *     a budget for itself
     */
    static @Nullable String text(@Nullable Object key) {
        if (key == null) {
            return null;
        }
        if (!(key instanceof String) && !HAS_TEXT.get(key.getClass())) {
            throw new IllegalArgumentException("a key on Redis must have a text of its own, which "
                    + key.getClass().getName() + " has not: give it a toString(), or use a property of it");
        }
        return KeyDigest.shorten(key.toString()).toString();
    }

    private static String escape(String text) {
        if (text.isEmpty()) {
            // Between braces nothing would be no hash tag.
            return "%";
        }
        if (text.indexOf('{') < 0 && text.indexOf('}') < 0 && text.indexOf('%') < 0) {
            return text;
        }
        return text.replace("%", "%25").replace("{", "%7B").replace("}", "%7D");
    }
}
