package io.ratelimited.redis;

import io.ratelimited.core.KeyDigest;
import java.lang.reflect.Method;
import org.jspecify.annotations.Nullable;

/**
 * Names of keys in Redis: {@code prefix:{caller key}:limit}, and {@code prefix:{limit}} for a limit without keys, with
 * {@code {tier}} behind it for one of a tier. All limits of one caller are in one hash slot. Braces in names and keys are
 * escaped, so that no caller chooses the slot; an empty key is a percent sign, since Redis ignores empty braces.
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

    /**
     * @param tier empty for the limit itself
     * @param caller as {@link #text} returns it
     */
    String of(String limit, String tier, @Nullable String caller) {
        String behind = tier.isEmpty() ? "" : '{' + escape(tier) + '}';
        if (caller == null) {
            return prefix + escape(limit) + '}' + behind;
        }
        return prefix + (caller.isEmpty() ? "%" : escape(caller)) + "}:" + escape(limit) + behind;
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
        if (text.indexOf('{') < 0 && text.indexOf('}') < 0 && text.indexOf('%') < 0) {
            return text;
        }
        return text.replace("%", "%25").replace("{", "%7B").replace("}", "%7D");
    }
}
