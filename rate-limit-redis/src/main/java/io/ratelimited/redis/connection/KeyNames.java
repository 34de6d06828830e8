package io.ratelimited.redis.connection;

import io.ratelimited.core.CanonicalKey;
import java.util.HexFormat;
import org.jspecify.annotations.Nullable;

/**
 * Names of keys in Redis: {@code prefix:{digest of the caller's key}:limit}, and {@code prefix:{limit}} for a limit without
 * keys. The budget of a tier has {@code {tier}} behind it, and a key that holds a state ends with a tilde and the way in which
 * its limit counts.
 *
 * <p>A caller's key may be an API key or a session id, so its text is never in a name; a digest is also short, however long the
 * key is. All limits of one caller are in one hash slot. In the names of limits and tiers braces are escaped, and tildes, with
 * which the names of internal keys begin; so is what has no encoding in UTF-8, so that different limits have different names.
 */
public final class KeyNames {

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
        return ofLimit(limit, tier).of(caller);
    }

    /**
     * The keys of the budgets of a limit.
     *
     * @param tier empty for the limit itself
     */
    public OfLimit ofLimit(String limit, String tier) {
        String behind = tier.isEmpty() ? "" : '{' + escape(tier) + '}';
        return new OfLimit(prefix + escape(limit) + '}' + behind, prefix, "}:" + escape(limit) + behind);
    }

    /**
     * The keys of the budgets of one limit, which is escaped once.
     *
     * @param shared the key of a limit without keys
     * @param beginning what stands before the digest of a caller, and {@code end} behind it
     */
    public record OfLimit(String shared, String beginning, String end) {

        /** The key of a caller's budget, as of {@link KeyNames#of}. */
        public String of(@Nullable String caller) {
            return caller == null ? shared : beginning + CanonicalKey.digest(caller) + end;
        }
    }

    /** A key of the backend itself. */
    public String internal(String name) {
        return prefix + "~" + name + '}';
    }

    /** A key of the backend itself in the slot of another key. */
    public String beside(String key, String name) {
        return key.substring(0, key.indexOf('}') + 1) + ":~" + name;
    }

    /**
     * The text of a caller's key.
     *
     * @throws IllegalArgumentException for an object that is no key
     */
    public static @Nullable String text(@Nullable Object key) {
        return key == null ? null : CanonicalKey.text(key);
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
