package io.ratelimited.spring.limit;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Limit.Attribute;
import io.ratelimited.core.Policy;
import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.MissingKey;
import io.ratelimited.spring.overload.ClassTexts;
import io.ratelimited.spring.text.PropertyText;
import java.time.Duration;
import java.time.ZoneId;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The table of the properties of a limit, in which each has a row. It is also a component of {@link LimitProperties} and,
 * where code may state it, an attribute of {@code @RateLimited}, of the same name.
 */
@SuppressWarnings("ImmutableEnumChecker") // the functions of the rows have no state
public enum LimitProperty {
    ALGORITHM(Algorithm.class, Scope.LIMIT),
    RATE(
            String.class,
            Attribute.RATE,
            Limit.Builder::rate,
            limit -> limit.rate().toString()),
    BURST(Long.class, Attribute.BURST, Limit.Builder::burst, Limit::burst),
    WARMUP(Duration.class, Attribute.WARMUP, Limit.Builder::warmup, Limit::warmup),
    MAX_CONCURRENT(Integer.class, Attribute.MAX_CONCURRENT, Limit.Builder::maxConcurrent, Limit::maxConcurrent),
    MIN_CONCURRENT(Integer.class, Attribute.MIN_CONCURRENT, Limit.Builder::minConcurrent, Limit::minConcurrent),
    LATE_AFTER(Duration.class, Attribute.LATE_AFTER, Limit.Builder::lateAfter, Limit::lateAfter),
    KEY(String.class, Scope.USE, algorithm -> !algorithm.findsItsLimit()),
    PERMITS(String.class, Scope.USE),
    WHEN(String.class, Scope.USE),
    CHARGE(String.class, Scope.USE),
    TIER(String.class, Scope.USE),
    PRIORITY(String.class, Scope.USE, Algorithm::countsCallsInFlight),
    PRIORITIES(
            List.class,
            Attribute.PRIORITIES,
            (builder, value) -> builder.priorities(ClassTexts.names(value)),
            limit -> limit.priorities().isEmpty() ? null : limit.priorities()),
    SHARES(
            Map.class,
            Attribute.SHARES,
            (builder, value) -> builder.shares(ClassTexts.shares(value)),
            limit -> limit.shares().isEmpty() ? null : ClassTexts.percentages(limit.shares())),
    POLICY(Policy.class, Scope.WHOLE),
    MAX_WAIT(Duration.class, Scope.WHOLE),
    FALLBACK(String.class, Scope.USE),
    BLOCK(Duration.class, Attribute.BLOCK, (limit, block) -> limit.block(block.isZero() ? null : block), Limit::block),
    BLOCK_FACTOR(
            Double.class,
            Attribute.BLOCK_FACTOR,
            Limit.Builder::blockFactor,
            limit -> limit.block() == null ? null : limit.blockFactor()),
    BLOCK_MAX(
            Duration.class,
            Attribute.BLOCK_MAX,
            Limit.Builder::blockMax,
            limit -> limit.block() == null ? null : limit.blockMax()),
    BLOCK_UNLESS(String.class, Scope.USE, algorithm -> algorithm.uses(Attribute.BLOCK)),
    ZONE(ZoneId.class, Attribute.ZONE, Limit.Builder::zone, Limit::zone),
    STARTS_ON(String.class, Attribute.STARTS_ON, Limit.Builder::startsOn, Limit::startsOn),
    SLOTS(Integer.class, Attribute.SLOTS, Limit.Builder::slots, Limit::slots),
    COLD_FACTOR(Double.class, Attribute.COLD_FACTOR, Limit.Builder::coldFactor, Limit::coldFactor),
    LEASE(Duration.class, Attribute.LEASE, Limit.Builder::lease, Limit::lease),
    MAX_WAITING(Integer.class, null, Limit.Builder::maxWaiting, Limit::maxWaiting),
    MISSING_KEY(MissingKey.class, Scope.WHOLE),
    TIERS(Map.class, Scope.WHOLE),
    HTTP_HEADERS(LimitProperties.HttpHeaders.class, Scope.WHOLE),
    BACKEND(String.class, Scope.START),
    ON_FAILURE(LimitProperties.OnFailure.class, Scope.BACKEND),
    MAX_OVERSHOOT(String.class, Scope.BACKEND, Algorithm::canBeLeased);

    /** The object that has the value of a property. */
    private enum Scope {
        /** Each use of the limit, as long as the application runs. */
        USE(false, false),
        /** The limit as a whole. */
        WHOLE(true, false),
        /** The limit, and each of its tiers. */
        LIMIT(true, true),
        /** The limit as a whole, as long as the application runs. */
        START(false, false),
        /** The limit and each of its tiers, on the backends that read it, as long as the application runs. */
        BACKEND(false, true);

        private final boolean changeable;
        private final boolean ofTiers;

        Scope(boolean changeable, boolean ofTiers) {
            this.changeable = changeable;
            this.ofTiers = ofTiers;
        }
    }

    private final String label;
    private final String kebab;
    private final Class<?> type;
    private final Scope scope;
    private final Predicate<Algorithm> algorithms;
    private final @Nullable BiConsumer<Limit.Builder, Object> setter;
    private final @Nullable Function<Limit, @Nullable Object> getter;

    LimitProperty(Class<?> type, Scope scope) {
        this(type, scope, algorithm -> true);
    }

    LimitProperty(Class<?> type, Scope scope, Predicate<Algorithm> algorithms) {
        this(type, scope, algorithms, null, null);
    }

    /** A parameter of {@link Limit}: which algorithms it has a meaning for, how it is set, and how it is read. */
    <T> LimitProperty(
            Class<T> type,
            @Nullable Attribute attribute,
            BiConsumer<Limit.Builder, T> setter,
            Function<Limit, @Nullable Object> getter) {
        this(
                type,
                Scope.LIMIT,
                algorithm -> attribute == null || algorithm.uses(attribute),
                (builder, value) -> setter.accept(builder, type.cast(value)),
                getter);
    }

    LimitProperty(
            Class<?> type,
            Scope scope,
            Predicate<Algorithm> algorithms,
            @Nullable BiConsumer<Limit.Builder, Object> setter,
            @Nullable Function<Limit, @Nullable Object> getter) {
        this.kebab = name().toLowerCase(Locale.ROOT).replace('_', '-');
        this.label = Pattern.compile("-(.)")
                .matcher(kebab)
                .replaceAll(letter -> letter.group(1).toUpperCase(Locale.ROOT));
        this.type = type;
        this.scope = scope;
        this.algorithms = algorithms;
        this.setter = setter;
        this.getter = getter;
    }

    private static final Map<String, LimitProperty> BY_LABEL =
            Stream.of(values()).collect(Collectors.toUnmodifiableMap(LimitProperty::label, property -> property));

    /** The property of a name in camel case; null if there is none. */
    public static @Nullable LimitProperty of(String label) {
        return BY_LABEL.get(label);
    }

    /**
     * The property of a name in kebab case.
     *
     * @throws IllegalArgumentException when there is none
     */
    static LimitProperty ofKebab(String kebab) {
        return valueOf(kebab.toUpperCase(Locale.ROOT).replace('-', '_'));
    }

    /** The values that are set, in the order of the rows; those of a tier are such a map, too. */
    static Map<LimitProperty, Object> values(LimitProperties properties) {
        Map<LimitProperty, Object> values = new EnumMap<>(LimitProperty.class);
        properties.values().forEach((label, value) -> values.put(BY_LABEL.get(label), value));
        if (properties.tiers() != null) {
            Map<String, Map<LimitProperty, Object>> tiers = new LinkedHashMap<>();
            properties.tiers().forEach((tier, own) -> tiers.put(tier, values(own)));
            values.put(TIERS, tiers);
        }
        return values;
    }

    /** The properties of values, for code that knows a limit by its interface. */
    static LimitProperties properties(Map<LimitProperty, ?> values) {
        Map<String, Object> labelled = new HashMap<>();
        values.forEach((property, value) -> labelled.put(property.label, value));
        if (values.containsKey(TIERS)) {
            Map<String, LimitProperties> tiers = new LinkedHashMap<>();
            tiers(values).forEach((tier, own) -> tiers.put(tier, properties(own)));
            labelled.put(TIERS.label, tiers);
        }
        return LimitProperties.of(labelled);
    }

    /** The values of the tiers, by name. */
    @SuppressWarnings("unchecked") // values holds no other map
    static Map<String, Map<LimitProperty, Object>> tiers(Map<LimitProperty, ?> values) {
        Object tiers = values.get(TIERS);
        return tiers == null ? Map.of() : (Map<String, Map<LimitProperty, Object>>) tiers;
    }

    /** The values that define a limit, without those of its uses. */
    public static Map<LimitProperty, Object> definition(Map<LimitProperty, Object> values) {
        return values.entrySet().stream()
                .filter(value -> value.getKey().scope != Scope.USE)
                .collect(Collectors.toUnmodifiableMap(Map.Entry::getKey, Map.Entry::getValue));
    }

    /** The name in the annotation, in code and in JSON: {@code maxWait}. */
    public String label() {
        return label;
    }

    /** The name in {@code application.yml}: {@code max-wait}. */
    String kebab() {
        return kebab;
    }

    public Class<?> type() {
        return type;
    }

    /** Returns whether a limit in use can change it. */
    public boolean isChangeable() {
        return scope.changeable;
    }

    /** Returns whether a tier can have a value of its own. */
    boolean isOfTiers() {
        return scope.ofTiers;
    }

    /** Returns whether a tier has the value of its limit. */
    boolean isInherited() {
        // With a charge, tiers block for what was charged, too.
        return (scope != Scope.USE || this == CHARGE) && this != TIERS;
    }

    /** Returns whether only some backends read it. */
    boolean isOfSomeBackends() {
        return scope == Scope.BACKEND;
    }

    /** The names of those that only some backends read. */
    public static Set<String> ofSomeBackends() {
        return Stream.of(values())
                .filter(LimitProperty::isOfSomeBackends)
                .map(LimitProperty::label)
                .collect(Collectors.toSet());
    }

    boolean hasMeaningFor(Algorithm algorithm) {
        return algorithms.test(algorithm);
    }

    /** The algorithm of a limit and the parameters that it counts with, on one line. */
    static String text(Limit limit) {
        StringBuilder text = new StringBuilder(PropertyText.of(limit.algorithm()));
        for (LimitProperty property : values()) {
            Object value = property == MAX_WAITING || property == ALGORITHM ? null : property.of(limit);
            if (value != null) {
                text.append(", ").append(property.kebab).append(' ').append(PropertyText.text(value));
            }
        }
        return text.toString();
    }

    /** Sets a parameter of a limit; any other property is none. */
    void set(Limit.Builder builder, Object value) {
        if (setter != null) {
            setter.accept(builder, value);
        }
    }

    /** The parameter of a limit that is in force; null for any other property, and where it has no meaning. */
    public @Nullable Object of(Limit limit) {
        return getter == null || !hasMeaningFor(limit.algorithm()) ? null : getter.apply(limit);
    }
}
