package io.ratelimited.redis.connection;

import io.ratelimited.core.KeyDigest;
import java.util.HexFormat;
import org.jspecify.annotations.Nullable;

/**
 * Names of keys in Redis: {@code prefix:{caller key}:limit}, and {@code prefix:{limit}} for a limit without keys, with
 * {@code {tier}} behind it for one of a tier. What stores a state adds a tilde and how it counts. All limits of one caller are in one hash slot. Braces in names and keys are
 * escaped, so that no caller chooses the slot, and tildes, with which the names of internal keys begin. An empty key is a
 * percent sign, since Redis ignores empty braces. Different texts have different names: what has no encoding in UTF-8
 * is escaped too.
 */
public final class KeyNames {

    /** Whether instances of a class with the same value have the same text. */
    private static final ClassValue<Boolean> HAS_TEXT = new ClassValue<>() {
        @Override
        protected Boolean computeValue(Class<?> type) {
            if (type.isArray()) {
                return false;
            }
            try {
                return type.isEnum()
                        || type.isRecord()
                        || type.getMethod("toString").getDeclaringClass() != Object.class;
            } catch (NoSuchMethodException ex) {
                return true; // in a native image, which has the methods that hints name
            }
        }
    };

    /** Of a key that is not kept by its digest, in characters. */
    private static final int LONGEST = 256;

    private final String prefix;

    public KeyNames(String prefix) {
        this.prefix = escape(prefix).replace("%7E", "~") + ":{";
    }

    /**
     * The key of a caller's budget.
     *
     * @param tier empty for the limit itself
     * @param caller as {@link #text} returns it
     */
    public String of(String limit, String tier, @Nullable String caller) {
        String behind = tier.isEmpty() ? "" : '{' + escape(tier) + '}';
        if (caller == null) {
            return prefix + escape(limit) + '}' + behind;
        }
        return prefix + (caller.isEmpty() ? "%" : escape(caller)) + "}:" + escape(limit) + behind;
    }

    /** A key of the backend itself. */
    public String internal(String name) {
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
    public static @Nullable String text(@Nullable Object key) {
        if (key == null) {
            return null;
        }
        if (!(key instanceof String) && !HAS_TEXT.get(key.getClass())) {
            throw new IllegalArgumentException("a key on Redis must have a text of its own, which "
                    + key.getClass().getName() + " has not: give it a toString(), or use a property of it");
        }
        String text = key.toString();
        // A digest of what has no encoding would be that of a question mark.
        return text.length() <= LONGEST ? text : KeyDigest.shorten(escape(text)).toString();
    }

    private static String escape(String text) {
        if (text.chars().noneMatch(next -> isReserved(next) || Character.isSurrogate((char) next))) {
            return text;
        }
        StringBuilder all = new StringBuilder();
        text.codePoints().forEach(point -> {
            if (isReserved(point) || (point >= Character.MIN_SURROGATE && point <= Character.MAX_SURROGATE)) {
                all.append('%').append(HexFormat.of().withUpperCase().toHexDigits(point, point < 256 ? 2 : 4));
            } else {
                all.appendCodePoint(point);
            }
        });
        return all.toString();
    }

    private static boolean isReserved(int point) {
        return point == '{' || point == '}' || point == '%' || point == '~';
    }
}
