package io.ratelimited.spring.internals.limit;

import io.ratelimited.spring.internals.text.PropertyText;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.EnumMap;
import java.util.Map;
import java.util.StringJoiner;
import java.util.TreeMap;

/**
 * Changed properties as the text that instances share: {@code rate=200%2Fs&burst=400}, with {@code tiers/gold/rate=} for a
 * tier. Values are written as in properties.
 */
final class ChangeText {

    private static final String TIERS = LimitProperty.TIERS.label() + "/";

    private ChangeText() {}

    /** @param configured the properties below the change: only differences from their tiers are written */
    static String of(Map<LimitProperty, ?> changes, Map<LimitProperty, ?> configured) {
        StringJoiner text = new StringJoiner("&");
        changes.forEach((property, value) -> {
            if (property != LimitProperty.TIERS) {
                text.add(of(property, value));
            }
        });
        Map<String, Map<LimitProperty, Object>> below = LimitProperty.tiers(configured);
        LimitProperty.tiers(changes).forEach((tier, changed) -> {
            Map<LimitProperty, Object> values = new EnumMap<>(changed);
            values.entrySet().removeAll(below.getOrDefault(tier, Map.of()).entrySet());
            values.forEach((property, value) -> text.add(TIERS + encode(tier) + "/" + of(property, value)));
        });
        return text.toString();
    }

    private static String of(LimitProperty property, Object value) {
        return property.label() + "=" + encode(PropertyText.text(value));
    }

    /**
     * The changed properties.
     *
     * @param configured the properties below the change
     * @throws IllegalArgumentException when this version of the application has no such property, value or tier
     */
    static Map<LimitProperty, Object> read(String text, Map<LimitProperty, ?> configured) {
        Map<String, String> texts = new TreeMap<>();
        for (String part : text.split("&", -1)) {
            String[] nameAndValue = part.split("=", 2);
            String[] path = nameAndValue[0].split("/", -1);
            String property = path[path.length - 1];
            texts.put(
                    path.length == 1 ? property : LimitProperty.ofTier(decode(path[1]), property),
                    nameAndValue.length == 1 ? "" : decode(nameAndValue[1]));
        }
        Map<LimitProperty, Object> changes = LimitProperty.read(texts);
        if (changes.containsKey(LimitProperty.TIERS)) {
            changes.put(LimitProperty.TIERS, changed(LimitProperty.tiers(configured), LimitProperty.tiers(changes)));
        }
        return changes;
    }

    /**
     * Tiers with some of their properties changed.
     *
     * @throws IllegalArgumentException when there is no tier of a name
     */
    static Map<String, Map<LimitProperty, Object>> changed(
            Map<String, Map<LimitProperty, Object>> tiers, Map<String, ? extends Map<LimitProperty, ?>> changes) {
        Map<String, Map<LimitProperty, Object>> changed = new TreeMap<>(tiers);
        changes.forEach((tier, values) -> {
            Map<LimitProperty, Object> stated = tiers.get(tier);
            if (stated == null) {
                throw new IllegalArgumentException(
                        "there is no tier '" + tier + "'; there are " + new TreeMap<>(tiers).keySet());
            }
            Map<LimitProperty, Object> all = new EnumMap<>(stated);
            all.putAll(values);
            changed.put(tier, all);
        });
        return changed;
    }

    private static String encode(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    private static String decode(String text) {
        return URLDecoder.decode(text, StandardCharsets.UTF_8);
    }
}
