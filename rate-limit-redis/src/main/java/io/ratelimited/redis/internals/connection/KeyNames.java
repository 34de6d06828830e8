package io.ratelimited.redis.internals.connection;

import io.ratelimited.core.CanonicalKey;
import java.util.HexFormat;
import org.jspecify.annotations.Nullable;

/**
 * Names of keys in Redis: {@code prefix:{digest of the key}:limit}, and {@code prefix:{limit}} for a limit without
 * keys. A key of a tier has {@code {tier}} behind it, and the name of a state ends with a tilde and the way in which
 * its limit counts.
 *
 * <p>A key may be an API key or a session id, so its text is never in a name; a digest is also short, however long the
 * key is. All limits of one key are in one hash slot. In the names of limits and tiers braces are escaped, and tildes, with
 * which the names of internal keys begin; so are characters that have no encoding in UTF-8, so that different limits have
 * different names.
 */
public final class KeyNames {

    private final String prefix;

    public KeyNames(String prefix) {
        this.prefix = escape(prefix).replace("%7E", "~") + ":{";
    }

    /**
     * The names of the keys of a limit.
     *
     * @param tier empty for the limit itself
     */
    public OfLimit ofLimit(String limit, String tier) {
        String behind = tier.isEmpty() ? "" : '{' + escape(tier) + '}';
        return new OfLimit(prefix + escape(limit) + '}' + behind, prefix, "}:" + escape(limit) + behind);
    }

    /**
     * The names of the keys of one limit, which is escaped once.
     *
     * @param shared the name of a limit without keys
     * @param beginning the part before the digest of a key; {@code end} is the part behind it
     */
    public record OfLimit(String shared, String beginning, String end) {

        /**
         * The name of a key.
         *
         * @param text as {@link CanonicalKey#textOrNull} returns it; null for the only key of a limit without keys
         */
        public String of(@Nullable String text) {
            return text == null ? shared : beginning + CanonicalKey.digest(text) + end;
        }
    }

    /** The name of a key of the backend itself. */
    public String internal(String name) {
        return prefix + "~" + name + '}';
    }

    /** The name of a key of the backend itself, in the slot of another key. */
    public String beside(String key, String name) {
        return key.substring(0, key.indexOf('}') + 1) + ":~" + name;
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
