package io.ratelimited.spring.actuate;

import io.ratelimited.core.CanonicalKey;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.internals.text.KeyMask;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.jspecify.annotations.Nullable;

/**
 * Keys as the endpoint shows them, and back. A key is found without looking at the others, however many there are: a mask
 * only if it is one of the last {@value #MASKS} that were shown. Thread-safe.
 */
final class ShownKeys {

    static final int MASKS = 1_000;

    private final boolean masked;
    /** Texts of keys by their masks, the mask that was shown or used least recently first. */
    private final Map<String, String> masks = Collections.synchronizedMap(new LinkedHashMap<>(16, 0.75f, true) {
        private static final long serialVersionUID = 1;

        @Override
        protected boolean removeEldestEntry(Map.Entry<String, String> eldest) {
            return size() > MASKS;
        }
    });

    ShownKeys(boolean masked) {
        this.masked = masked;
    }

    /** @param key its text, or a key that a limiter knows */
    String show(Object key) {
        String text = key.toString();
        if (!masked) {
            return text;
        }
        String shown = KeyMask.mask(text);
        masks.put(shown, text);
        return shown;
    }

    /**
     * The keys that an operator may mean by a text, or by a mask: {@code 42} may be a string or a number. The text itself is the
     * first. All of them have the same {@link io.ratelimited.spring.RateLimitOperations#override override}.
     *
     * @throws IllegalArgumentException for a mask that is none of the last that were shown, and a blank text: calls with a
     *     blank key have none
     */
    Set<Object> find(NamedLimit limit, String text) {
        if (text.isBlank()) {
            throw new IllegalArgumentException(
                    "the key is blank: name one, or omit it for calls without a key; nothing was changed");
        }
        if (masked && KeyMask.isMask(text)) {
            return Set.of(CanonicalKey.ofText(unmasked(limit, text)));
        }
        Set<Object> meant = new LinkedHashSet<>();
        meant.add(CanonicalKey.ofText(text));
        Long number = number(text);
        if (number != null) {
            meant.add(number);
            if (number == number.intValue()) {
                meant.add(number.intValue());
            }
        } else if (text.matches("\\p{XDigit}{8}(-\\p{XDigit}{4}){3}-\\p{XDigit}{12}")) {
            meant.add(UUID.fromString(text));
        }
        return meant;
    }

    /** The number that has this text; null if none has. */
    private static @Nullable Long number(String text) {
        try {
            long number = Long.parseLong(text);
            return Long.toString(number).equals(text) ? number : null;
        } catch (NumberFormatException ex) {
            return null;
        }
    }

    private String unmasked(NamedLimit limit, String text) {
        String key = masks.get(text);
        if (key == null) {
            throw new IllegalArgumentException("there is no key with the mask '" + text + "' under rate limit '"
                    + limit.name() + "': use one of the last " + MASKS
                    + " masks that the endpoint of this instance has shown");
        }
        return key;
    }
}
