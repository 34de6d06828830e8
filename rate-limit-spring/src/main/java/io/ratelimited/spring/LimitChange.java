package io.ratelimited.spring;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * New values for a limit in use, or for one of its callers, as text in the form of {@code application.yml}. Examples: {@code
 * LimitChange.rate("200/s").burst(400)}, {@code LimitChange.tier("gold")}. Values are checked when the change is made.
 * Immutable.
 *
 * @see RateLimitOperations#change
 * @see RateLimitOperations#override
 */
public final class LimitChange {

    private final Map<String, String> values;

    private LimitChange(Map<String, String> values) {
        this.values = values;
    }

    /**
     * Creates a change of the rate.
     *
     * @param rate permits per period, such as {@code 200/s}
     */
    public static LimitChange rate(String rate) {
        return of("rate", rate);
    }

    /**
     * Selects a tier. For {@link RateLimitOperations#override}, this is the plan of the caller. For {@link
     * RateLimitOperations#change}, the other values apply to this tier, as in {@code LimitChange.tier("gold").with("rate",
     * "2/s")}.
     */
    public static LimitChange tier(String tier) {
        return of("tier", tier);
    }

    /**
     * Creates a change of one property.
     *
     * @param property its name as in {@code rate-limit.limits.<name>}, such as {@code max-wait} or {@code tiers.gold.rate}
     * @param value its value as text, such as {@code 2s}
     */
    public static LimitChange of(String property, String value) {
        return new LimitChange(Map.of(property, value));
    }

    /**
     * Creates a change of several properties.
     *
     * @param values values by name of the property, as in {@link #of(String, String)}
     */
    public static LimitChange of(Map<String, String> values) {
        return new LimitChange(Map.copyOf(values));
    }

    /**
     * Returns this change with a new burst capacity.
     *
     * @param permits from 1 to 10<sup>15</sup>
     */
    public LimitChange burst(long permits) {
        return with("burst", Long.toString(permits));
    }

    /** Returns this change with a value of another property, as in {@link #of(String, String)}. */
    public LimitChange with(String property, String value) {
        Map<String, String> more = new LinkedHashMap<>(values);
        more.put(property, value);
        return new LimitChange(more);
    }

    /** Returns the values by name of the property, unmodifiable. */
    public Map<String, String> values() {
        return Map.copyOf(values);
    }

    @Override
    public String toString() {
        return values.toString();
    }
}
