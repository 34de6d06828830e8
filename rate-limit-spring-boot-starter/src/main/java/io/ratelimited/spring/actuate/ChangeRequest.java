package io.ratelimited.spring.actuate;

import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.text.PropertyText;
import io.ratelimited.spring.internals.text.SimilarName;
import java.time.Duration;
import java.util.EnumMap;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The members of a request to change a limit: the properties that change, named as in JSON, and some of its own.
 *
 * @param limit its name
 * @param members by name, as text; as a list where the query has a parameter several times
 */
record ChangeRequest(String limit, Map<String, ?> members) {

    /** The member that takes back changes. */
    private static final String REVERT = "revert";

    /** The member that names the caller whose limit is meant. */
    private static final String TIER = "tier";

    /** All but the algorithm, which would begin every budget anew, and the tiers, of which a request changes one. */
    private static final Set<String> PROPERTIES = Stream.of(LimitProperty.values())
            .filter(LimitProperty::isChangeable)
            .filter(property -> property != LimitProperty.ALGORITHM && property != LimitProperty.TIERS)
            .map(LimitProperty::label)
            .collect(Collectors.toCollection(TreeSet::new));

    /** The member that states the length of a budget. */
    private static final String FOR = "for";

    /** The member that states rates to try beside the limit, which are no change of it. */
    private static final String CANDIDATES = "candidates";

    /** The member that names the key of a caller, in a text. */
    static final String KEY = "key";

    /** The members that are no properties. */
    private static final Set<String> OTHERS = Set.of(KEY, TIER, REVERT, FOR, CANDIDATES);

    /** The members of a caller's own budget. */
    private static final Set<String> OF_CALLER = new TreeSet<>(Set.of(TIER, "rate", "burst", FOR, REVERT));

    /** Refuses members that are null: another limit than the one that is meant would be changed without a tier. */
    ChangeRequest {
        members.forEach((name, value) -> {
            if (value == null) {
                throw new IllegalArgumentException(
                        name + " of rate limit '" + limit + "' is null: set a value, or omit it; nothing was changed");
            }
        });
    }

    /**
     * The members that a text has, as in {@code rate=200/s, burst=400}. Commas also separate the elements of a list or map.
     *
     * @throws IllegalArgumentException when the text does not begin with a member
     */
    static Map<String, String> members(String text) {
        Map<String, String> members = new LinkedHashMap<>();
        String last = null;
        for (String part : text.split(",", -1)) {
            int equals = part.indexOf('=');
            String name = part.substring(0, Math.max(0, equals)).strip();
            if (last != null && (equals < 0 || isElement(last, name))) {
                members.merge(last, part, (value, element) -> value + "," + element);
                continue;
            }
            if (equals < 0) {
                throw new IllegalArgumentException(
                        "\"" + part.strip() + "\" is not a change; write it as in rate=200/s, burst=400");
            }
            members.put(name, part.substring(equals + 1).strip());
            last = name;
        }
        return members;
    }

    /** Returns whether a name is in the map that is the value of a member. */
    private static boolean isElement(String member, String name) {
        return member.equals(LimitProperty.SHARES.label()) && !PROPERTIES.contains(name) && !OTHERS.contains(name);
    }

    /**
     * The members as the budget of a caller: its tier, or its rate and burst.
     *
     * @throws IllegalArgumentException when one is unknown, or cannot be read
     */
    Map<LimitProperty, Object> budget() {
        Set<String> unknown = new TreeSet<>(members.keySet());
        unknown.removeAll(OF_CALLER);
        if (!unknown.isEmpty()) {
            throw new IllegalArgumentException("an override has no " + unknown
                    + SimilarName.hint(unknown.iterator().next(), OF_CALLER) + "; use members of " + OF_CALLER
                    + "; nothing was changed");
        }
        return values();
    }

    /**
     * Returns the time for which a caller has its budget; null for ever.
     *
     * @throws IllegalArgumentException when it cannot be read
     */
    @Nullable
    Duration lasting() {
        Object text = members.get(FOR);
        if (text == null) {
            return null;
        }
        try {
            return (Duration) PropertyText.read(text.toString(), Duration.class);
        } catch (IllegalArgumentException ex) {
            throw new IllegalArgumentException(
                    FOR + " of rate limit '" + limit + "' cannot be \"" + text
                            + "\"; use a duration with its unit, such as 24h; nothing was changed",
                    ex);
        }
    }

    /**
     * The rates to try beside the limit.
     *
     * @return null if the request says nothing about them
     * @throws IllegalArgumentException when it says something else, too
     */
    @Nullable
    String candidates() {
        Object texts = members.get(CANDIDATES);
        if (texts != null && !Set.of(CANDIDATES, FOR).containsAll(members.keySet())) {
            throw new IllegalArgumentException(
                    "candidates of rate limit '" + limit + "' can only be combined with for; nothing was changed");
        }
        return texts == null ? null : PropertyText.text(texts);
    }

    /**
     * Returns whether changes are to be taken back.
     *
     * @throws IllegalArgumentException when the request says something else, too
     */
    boolean reverts() {
        Object revert = members.get(REVERT);
        if (revert == null) {
            return false;
        }
        if (members.size() > 1 || !revert.toString().equals("true")) {
            throw new IllegalArgumentException("\"" + REVERT + "\" of rate limit '" + limit
                    + "' can only be true, without other members; nothing was changed");
        }
        return true;
    }

    /**
     * The members as properties.
     *
     * @throws IllegalArgumentException when there is none, one is unknown, or one cannot be read
     */
    Map<LimitProperty, Object> properties() {
        Set<String> unknown = new TreeSet<>(members.keySet());
        unknown.removeAll(PROPERTIES);
        unknown.remove(TIER);
        if (!unknown.isEmpty()) {
            Set<String> known = new TreeSet<>(PROPERTIES);
            known.addAll(Set.of(TIER, REVERT, CANDIDATES));
            throw new IllegalArgumentException("a limit has no " + unknown
                    + SimilarName.hint(unknown.iterator().next(), known) + "; use members of " + known
                    + "; nothing was changed");
        }
        if (PROPERTIES.stream().noneMatch(members::containsKey)) {
            throw new IllegalArgumentException("nothing to change in rate limit '" + limit
                    + "': the request has none of " + PROPERTIES + "; set at least one");
        }
        return values();
    }

    private Map<LimitProperty, Object> values() {
        Map<LimitProperty, Object> values = new EnumMap<>(LimitProperty.class);
        members.forEach((name, value) -> {
            LimitProperty property = LimitProperty.of(name);
            if (property != null) {
                values.put(property, read(property, PropertyText.text(value)));
            }
        });
        return values;
    }

    private Object read(LimitProperty property, String text) {
        try {
            return property.read(property.label(), text);
        } catch (IllegalArgumentException ex) {
            throw new IllegalArgumentException(
                    property.label() + " of rate limit '" + limit + "' cannot be \"" + text + "\"; use "
                            + PropertyText.expected(property.type()) + "; nothing was changed",
                    ex);
        }
    }
}
