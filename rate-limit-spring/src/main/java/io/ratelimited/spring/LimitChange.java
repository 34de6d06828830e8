package io.ratelimited.spring;

import java.util.LinkedHashMap;
import java.util.Map;

/**
 * New values for a limit in use, or for one of its callers: as text, in the form that {@code application.yml} takes. As in
 * {@code LimitChange.rate("200/s").burst(400)} or {@code LimitChange.tier("gold")}. Values are checked when the change is made.
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
     * A change of the rate.
     *
     * @param rate permits per period, such as {@code 200/s}
     */
    public static LimitChange rate(String rate) {
        return of("rate", rate);
    }

    /**
     * The limit of a tier. For {@link RateLimitOperations#override} the plan of the caller; for {@link
     * RateLimitOperations#change} the tier whose other values change, as in {@code LimitChange.tier("gold").with("rate", "2/s")}.
     */
    public static LimitChange tier(String tier) {
        return of("tier", tier);
    }

    /**
     * A change of one property.
     *
     * @param property its name as in {@code rate-limit.limits.<name>}, such as {@code max-wait} or {@code tiers.gold.rate}
     * @param value its value as text, such as {@code 2s}
     */
    public static LimitChange of(String property, String value) {
        return new LimitChange(Map.of(property, value));
    }

    /**
     * A change of some properties.
     *
     * @param values by name of the property, as {@link #of(String, String)} takes them
     */
    public static LimitChange of(Map<String, String> values) {
        return new LimitChange(Map.copyOf(values));
    }

    /**
     * This change, and a new burst capacity.
     *
     * @param permits from 1 to 10<sup>15</sup>
     */
    public LimitChange burst(long permits) {
        return with("burst", Long.toString(permits));
    }

    /** This change, and one of another property, as {@link #of(String, String)} takes it. */
    public LimitChange with(String property, String value) {
        Map<String, String> more = new LinkedHashMap<>(values);
        more.put(property, value);
        return new LimitChange(more);
    }

    /** The values by name of the property, unmodifiable. */
    public Map<String, String> values() {
        return Map.copyOf(values);
    }

    @Override
    public String toString() {
        return values.toString();
    }
}
