package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Limit.Attribute;
import io.ratelimited.core.Policy;
import io.ratelimited.spring.MissingKey;
import io.ratelimited.spring.internals.overload.ClassTexts;
import io.ratelimited.spring.internals.text.PropertyText;
import java.time.Duration;
import java.time.ZoneId;
import java.util.Collections;
import java.util.EnumMap;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The table of the properties of a limit, in which each has a row: annotations, configuration, tiers, changes and overrides
 * are texts by name of a property, which are read here and nowhere else. A property that code may state is an attribute of
 * {@code @RateLimited} of the same name.
 */
@SuppressWarnings("ImmutableEnumChecker") // the functions of the rows have no state
public enum LimitProperty {
    ALGORITHM(Algorithm.class, Scope.LIMIT, Algorithm.TOKEN_BUCKET),
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
    PERMITS(String.class, Scope.USE, "1"),
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
    MAX_WAIT(Duration.class, Scope.WHOLE, Duration.ofSeconds(1)),
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
    MISSING_KEY(MissingKey.class, Scope.WHOLE, MissingKey.SHARED),
    TIERS(Map.class, Scope.WHOLE),
    CANDIDATES(List.class, Scope.START, algorithm -> !algorithm.countsCallsInFlight()),
    CANDIDATES_FOR(Duration.class, Scope.START, Duration.ofHours(24)),
    HTTP_HEADERS(ShownHeaders.class, Scope.WHOLE, ShownHeaders.SHOWN),
    BACKEND(String.class, Scope.START),
    ON_FAILURE(OnFailure.class, Scope.BACKEND),
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

    /** {@code rate}, {@code tiers.gold.rate}, or {@code tiers[10% off].rate}. */
    private static final Pattern PATH =
            Pattern.compile("(?:tiers(?:\\[(?<any>.+)]|[.](?<plain>[^.]+))[.])?(?<property>[^.]+)", Pattern.DOTALL);

    private final String label;
    private final String kebab;
    private final Class<?> type;
    private final Scope scope;
    private final Predicate<Algorithm> algorithms;
    private final @Nullable BiConsumer<Limit.Builder, Object> setter;
    private final @Nullable Function<Limit, @Nullable Object> getter;
    private final @Nullable Object defaultValue;

    LimitProperty(Class<?> type, Scope scope) {
        this(type, scope, algorithm -> true);
    }

    LimitProperty(Class<?> type, Scope scope, Predicate<Algorithm> algorithms) {
        this(type, scope, algorithms, null, null, null);
    }

    LimitProperty(Class<?> type, Scope scope, Object defaultValue) {
        this(type, scope, algorithm -> true, null, null, defaultValue);
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
                getter,
                null);
    }

    LimitProperty(
            Class<?> type,
            Scope scope,
            Predicate<Algorithm> algorithms,
            @Nullable BiConsumer<Limit.Builder, Object> setter,
            @Nullable Function<Limit, @Nullable Object> getter,
            @Nullable Object defaultValue) {
        this.kebab = name().toLowerCase(Locale.ROOT).replace('_', '-');
        this.label = Pattern.compile("-(.)")
                .matcher(kebab)
                .replaceAll(letter -> letter.group(1).toUpperCase(Locale.ROOT));
        this.type = type;
        this.scope = scope;
        this.algorithms = algorithms;
        this.setter = setter;
        this.getter = getter;
        this.defaultValue = defaultValue;
    }

    private static final Map<String, LimitProperty> BY_NAME = new HashMap<>();

    static {
        for (LimitProperty property : values()) {
            BY_NAME.put(property.label, property);
            BY_NAME.put(property.kebab, property);
        }
    }

    /** The property of a name, in camel case or kebab case; null if there is none. */
    public static @Nullable LimitProperty of(String name) {
        return BY_NAME.get(name);
    }

    /**
     * Reads values as they are written in properties.
     *
     * @param texts by name of the property, those of tiers as {@code tiers.gold.rate}
     * @throws IllegalArgumentException when there is no property of a name, or one cannot have the value
     */
    public static Map<LimitProperty, Object> read(Map<String, String> texts) {
        Map<LimitProperty, Object> values = new EnumMap<>(LimitProperty.class);
        Map<String, Map<LimitProperty, Object>> tiers = new TreeMap<>();
        texts.forEach((name, text) -> {
            Matcher path = PATH.matcher(name);
            LimitProperty property = path.matches() ? of(path.group("property")) : null;
            if (property == null || property == TIERS) {
                throw new IllegalArgumentException(
                        "a limit has no property " + (path.matches() ? path.group("property") : name));
            }
            String tier = path.group("any") == null ? path.group("plain") : path.group("any");
            Map<LimitProperty, Object> place =
                    tier == null ? values : tiers.computeIfAbsent(tier, key -> new EnumMap<>(LimitProperty.class));
            place.put(property, property.read(name, text));
        });
        if (!tiers.isEmpty()) {
            values.put(TIERS, tiers);
        }
        return values;
    }

    /** Values as {@link #read} takes them, by name in kebab case. */
    static Map<String, String> texts(Map<LimitProperty, ?> values) {
        Map<String, String> texts = new LinkedHashMap<>();
        values.forEach((property, value) -> {
            if (property != TIERS) {
                texts.put(property.kebab, PropertyText.text(value));
            }
        });
        tiers(values).forEach((tier, own) -> texts(own).forEach((name, text) -> texts.put(ofTier(tier, name), text)));
        return Collections.unmodifiableMap(texts);
    }

    /** The name of a property of a tier, as {@link #read} takes it. */
    static String ofTier(String tier, String property) {
        return TIERS.kebab + PropertyText.element(tier) + "." + property;
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
    public String kebab() {
        return kebab;
    }

    public Class<?> type() {
        return type;
    }

    /** The value where no place sets one; null if there is none, or a {@link Limit} has it. */
    @Nullable
    Object defaultValue() {
        return defaultValue;
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

    /** Returns whether it is evaluated for each call of a method or of a route, and by no call in code. */
    boolean isOfCalls() {
        return scope == Scope.USE || this == MISSING_KEY;
    }

    /** Returns whether only some backends read it. */
    boolean isOfSomeBackends() {
        return scope == Scope.BACKEND;
    }

    /** The names of those that only some backends read. */
    public static Set<String> ofSomeBackends() {
        return Stream.of(values())
                .filter(LimitProperty::isOfSomeBackends)
                .map(LimitProperty::kebab)
                .collect(Collectors.toSet());
    }

    boolean hasMeaningFor(Algorithm algorithm) {
        return algorithms.test(algorithm);
    }

    /**
     * Reads a value as it is written in properties.
     *
     * @param as the name of the property for messages
     * @throws IllegalArgumentException when the property cannot have it
     */
    public Object read(String as, String text) {
        try {
            return PropertyText.read(text, type);
        } catch (IllegalArgumentException ex) {
            throw new IllegalArgumentException(
                    as + " is \"" + text + "\", but must be " + PropertyText.expected(type), ex);
        }
    }

    /** The algorithm of a limit and the parameters that have a meaning for it, as JSON shows them, by label. */
    public static Map<String, Object> terms(Limit limit) {
        Map<String, Object> terms = new LinkedHashMap<>();
        terms.put(ALGORITHM.label, PropertyText.of(limit.algorithm()));
        for (LimitProperty property : values()) {
            Object value = property.of(limit);
            if (value != null) {
                terms.put(property.label, PropertyText.of(value));
            }
        }
        return terms;
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

    /** Whether responses have the rate limit headers of a limit. */
    public enum ShownHeaders {
        /** Those that {@code rate-limit.http.headers} chooses. */
        SHOWN,
        /** None: what is left of the limit is nobody else's business. A rejection has its status and {@code Retry-After}. */
        NONE
    }

    /** Source of decisions while Redis does not answer. */
    public enum OnFailure {
        /** A limiter in this process, with the limit divided by the number of instances. */
        LOCAL,
        /** Nobody: every call goes. */
        ALLOW,
        /** Nobody: every call is rejected. */
        DENY,
        /** The error of Redis is thrown. */
        THROW;

        /** The source of these decisions; null if there is no decision. */
        public Decision.@Nullable Source source() {
            return switch (this) {
                case LOCAL, ALLOW -> Decision.Source.FALLBACK;
                case DENY -> Decision.Source.UNAVAILABLE;
                case THROW -> null;
            };
        }
    }
}
