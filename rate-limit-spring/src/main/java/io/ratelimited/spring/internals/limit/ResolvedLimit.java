package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.InvalidLimitException;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.core.Rate;
import io.ratelimited.core.calendar.CalendarPeriod;
import io.ratelimited.core.internals.candidates.Candidates;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.MissingKey;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.internals.limit.LimitProperty.ShownHeaders;
import io.ratelimited.spring.internals.text.PropertyText;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/** The properties of a limit as several layers set them, each with the layer that it comes from. Immutable. */
public final class ResolvedLimit {

    /** Those that have a meaning with blocks only. */
    private static final Set<LimitProperty> OF_BLOCKS =
            Set.of(LimitProperty.BLOCK_FACTOR, LimitProperty.BLOCK_MAX, LimitProperty.BLOCK_UNLESS);

    private final String name;
    private final String place;
    private final List<Layer> layers;
    private final Algorithm algorithm;
    private final Map<LimitProperty, Object> values = new EnumMap<>(LimitProperty.class);
    /** The values as text, made when they are first asked for. */
    private @Nullable Map<String, String> texts;

    /**
     * Takes each property from the strongest layer that sets it. Nothing is checked before {@link #limit}.
     *
     * @param place of the limit, for messages
     * @param layers the strongest first
     */
    ResolvedLimit(String name, String place, List<Layer> layers) {
        this.name = name;
        this.place = place;
        this.layers = layers;
        this.algorithm = Layer.algorithm(layers);
        for (LimitProperty property : LimitProperty.values()) {
            Layer origin = origin(property);
            Object value = origin == null ? null : origin.values().get(property);
            if (value != null) {
                values.put(property, value);
            }
        }
        if (values.get(LimitProperty.BLOCK) instanceof Duration block && block.isZero()) {
            // The expression stays, since a change may set the block later.
            values.keySet().removeAll(Set.of(LimitProperty.BLOCK_FACTOR, LimitProperty.BLOCK_MAX));
        }
    }

    /** The strongest layer that sets a property and means this limit; null if none does. */
    @Nullable
    Layer origin(LimitProperty property) {
        for (int i = 0; i < layers.size(); i++) {
            Layer layer = layers.get(i);
            if (layer.values().containsKey(property)
                    && !isLeftOut(property, i)
                    && !isPolicyOfOthers(property, layer)
                    && !isChargeOfOthers(property, layer)
                    && !isOfOthersBlocks(property, layer)
                    && !isOfOtherWindows(property, layer, layers.subList(i, layers.size()))) {
                return layer;
            }
        }
        return null;
    }

    private Layer originOrStrongest(LimitProperty property) {
        Layer origin = origin(property);
        return origin == null ? layers.get(0) : origin;
    }

    /** Returns whether the value of a layer has no meaning for the algorithm that the layers choose. */
    private boolean isLeftOut(LimitProperty property, int layer) {
        return !property.hasMeaningFor(algorithm)
                && layers.get(layer).leavesOut(algorithm, layers.subList(layer, layers.size()));
    }

    /** A queue waits where most limits reject; a dry run is one of all limits. */
    private boolean isPolicyOfOthers(LimitProperty property, Layer layer) {
        return property == LimitProperty.POLICY
                && algorithm.queues()
                && layer.strength() == Layer.Strength.DEFAULT
                && layer.values().get(property) == Policy.REJECT;
    }

    /** A call in flight costs nothing when it has ended. */
    private boolean isChargeOfOthers(LimitProperty property, Layer layer) {
        return property == LimitProperty.CHARGE
                && algorithm.countsCallsInFlight()
                && layer.strength() == Layer.Strength.DEFAULT;
    }

    /** Most limits with blocks may have a longest one that says nothing about a limit without. */
    private boolean isOfOthersBlocks(LimitProperty property, Layer layer) {
        return layer.strength() == Layer.Strength.DEFAULT
                && OF_BLOCKS.contains(property)
                && layers.stream().noneMatch(other -> other.values().get(LimitProperty.BLOCK) != null);
    }

    /** The first day of a year says nothing about the months or days that a stronger layer has chosen with its rate. */
    private boolean isOfOtherWindows(LimitProperty property, Layer layer, List<Layer> fromThere) {
        if (property != LimitProperty.STARTS_ON) {
            return false;
        }
        CalendarPeriod chosen = period(rate(layers));
        Object own = rate(fromThere);
        return layer.strength() == Layer.Strength.DEFAULT ? chosen == null : own != null && period(own) != chosen;
    }

    /** The rate that the strongest layer with one sets. */
    private static @Nullable Object rate(List<Layer> layers) {
        return layers.stream()
                .flatMap(layer -> Stream.ofNullable(layer.values().get(LimitProperty.RATE)))
                .findFirst()
                .orElse(null);
    }

    /** Null for a period of fixed length, and where no valid rate is set. */
    private static @Nullable CalendarPeriod period(@Nullable Object rate) {
        try {
            return rate == null ? null : Rate.parse(rate.toString()).calendar();
        } catch (InvalidLimitException ex) {
            return null;
        }
    }

    /**
     * The properties of one use of a limit.
     *
     * @param place the place of the annotation
     * @param declared its values
     */
    public static ResolvedLimit ofUse(
            LimitSettings properties, String name, String place, Map<LimitProperty, Object> declared) {
        return new ResolvedLimit(
                name, place, Layer.ofConfiguration(properties, name, Layer.ofAnnotation(name, place, declared)));
    }

    /** The values as text, by name of the property in kebab case, those of tiers as {@code tiers.gold.rate}. */
    Map<String, String> texts() {
        Map<String, String> known = texts;
        if (known == null) {
            known = LimitProperty.texts(values);
            texts = known; // who comes at the same time makes an equal map
        }
        return known;
    }

    /** The value of a property that is a text, such as an expression; null if it is not set. */
    public @Nullable String text(LimitProperty property) {
        return get(property, String.class);
    }

    /**
     * The place that sets a property, for messages; that of the limit if none does.
     *
     * @param label its name as in the annotation
     */
    public String place(String label) {
        LimitProperty property = LimitProperty.of(label);
        return property == null ? place : place(property);
    }

    String place(LimitProperty property) {
        Layer origin = origin(property);
        return origin == null || origin.place().isEmpty() ? place : origin.place(property);
    }

    /** Returns whether a value is that of {@code rate-limit.defaults}. */
    boolean hasDefaults() {
        return values.keySet().stream()
                .map(this::origin)
                .anyMatch(origin -> origin != null && origin.place().equals(Layer.DEFAULTS));
    }

    String name() {
        return name;
    }

    String place() {
        return place;
    }

    List<Layer> layers() {
        return layers;
    }

    Algorithm algorithm() {
        return algorithm;
    }

    boolean ignoresAnnotation() {
        for (int i = 0; i < layers.size(); i++) {
            Layer layer = layers.get(i);
            if (layer.strength() == Layer.Strength.DECLARED) {
                for (LimitProperty property : layer.values().keySet()) {
                    if (isLeftOut(property, i)) {
                        return true;
                    }
                }
            }
        }
        return false;
    }

    Map<LimitProperty, Object> values() {
        return values;
    }

    /** The value of a property that has a default. */
    private <T> T inForce(LimitProperty property, Class<T> type) {
        Object stated = values.get(property);
        return type.cast(Objects.requireNonNull(stated == null ? property.defaultValue() : stated));
    }

    private <T> @Nullable T get(LimitProperty property, Class<T> type) {
        return type.cast(values.get(property));
    }

    Policy policy() {
        Policy policy = get(LimitProperty.POLICY, Policy.class);
        return policy == null ? algorithm.defaultPolicy() : policy;
    }

    /**
     * The policy when a dry run has ended, by which it judges: that of the layers below. A limit that sets the longest wait lets calls
     * wait, although the dry run stands where that was said.
     */
    Policy enforcedPolicy() {
        Policy policy = policy();
        if (policy != Policy.SHADOW) {
            return policy;
        }
        for (Layer layer : layers) {
            Object stated = layer.values().get(LimitProperty.POLICY);
            if (stated instanceof Policy other
                    && other != Policy.SHADOW
                    && !isPolicyOfOthers(LimitProperty.POLICY, layer)) {
                return other;
            }
            if (layer.strength() != Layer.Strength.DEFAULT && layer.values().get(LimitProperty.MAX_WAIT) != null) {
                return Policy.WAIT;
            }
        }
        return algorithm.defaultPolicy();
    }

    @Nullable
    Duration maxWait() {
        return get(LimitProperty.MAX_WAIT, Duration.class);
    }

    /** The longest wait of a call, also of one that does not wait because of a dry run; 0 if calls never wait. */
    long maxWaitNanos() {
        // A call in flight of a dry run waits for no other one to end.
        return enforcedPolicy() == Policy.WAIT && !(policy() == Policy.SHADOW && algorithm.countsCallsInFlight())
                ? inForce(LimitProperty.MAX_WAIT, Duration.class).toNanos()
                : 0;
    }

    MissingKey missingKey() {
        return inForce(LimitProperty.MISSING_KEY, MissingKey.class);
    }

    /** Returns whether responses have the rate limit headers of the limit. */
    boolean showsHeaders() {
        return policy() != Policy.SHADOW
                && inForce(LimitProperty.HTTP_HEADERS, ShownHeaders.class) == ShownHeaders.SHOWN;
    }

    /** The layer of the properties that are read only once, when the limit is made or first used. */
    Layer fixed() {
        // Null for those that have their default for as long as the application runs.
        Map<LimitProperty, @Nullable Object> fixed = new EnumMap<>(LimitProperty.class);
        Stream.of(LimitProperty.values())
                .filter(property -> !property.isChangeable())
                .forEach(property -> fixed.put(property, values.get(property)));
        return new Layer(Layer.Strength.KEPT, place, "Correct the configuration and restart.", fixed);
    }

    /**
     * The limit with the properties that its backend reads.
     *
     * @throws InvalidRateLimitException when one is invalid, or is set by the place that chooses the backend and not read
     *     by it
     */
    ResolvedLimit on(LimiterFactory backend) {
        PropertyChecks.checkOvershoot(this); // also where the backend does not read it
        ResolvedLimit suited = new ResolvedLimit(name, place, layers);
        Layer chosenBy = origin(LimitProperty.BACKEND);
        List<LimitProperty> read =
                backend.properties().stream().map(LimitProperty::of).toList();
        values.forEach((property, value) -> {
            if (!property.isOfSomeBackends() || read.contains(property)) {
                return;
            }
            Layer origin = origin(property);
            if (origin != null && origin.strength() == Layer.Strength.STATED && origin.equals(chosenBy)) {
                throw invalid(
                        property,
                        "is " + PropertyText.of(value) + ", but backend " + backend.backend() + " does not support it",
                        "Remove it, or set backend to redis or another one that supports it.");
            }
            suited.values.remove(property);
        });
        return suited;
    }

    /**
     * The limit that the properties describe.
     *
     * @throws InvalidRateLimitException when they are invalid
     */
    Limit limit() {
        PropertyChecks.check(this);
        try {
            Limit.Builder builder = Limit.of(name, algorithm);
            values.forEach((property, value) -> property.set(builder, value));
            builder.charged(values.containsKey(LimitProperty.CHARGE));
            return builder.build();
        } catch (InvalidLimitException ex) {
            LimitProperty property = LimitProperty.of(ex.attribute());
            Layer origin = property == null ? layers.get(0) : originOrStrongest(property);
            throw new InvalidRateLimitException(
                    name, place(ex.attribute()), String.valueOf(ex.getMessage()), origin.remedy(), ex);
        }
    }

    /**
     * Checks all that {@link #on} leaves: the limit, its tiers, and its candidates.
     *
     * @throws InvalidRateLimitException when something is invalid, or the backend does not support it
     */
    void check(LimiterFactory backend) {
        Backends.requireSupport(backend, this, limit(), "[RL-111]");
        tiers().values().forEach(tier -> Backends.requireSupport(backend, tier, tier.limit(), "[RL-111]"));
        String rates = candidates();
        if (rates != null) {
            LimitCandidates.read(limit(), rates, candidatesFor(), place(LimitProperty.CANDIDATES));
        }
    }

    /** @throws InvalidRateLimitException when they are invalid */
    void startCandidates(LimitCandidates candidates) {
        String rates = candidates();
        if (rates != null) {
            candidates.start(rates, candidatesFor(), place(LimitProperty.CANDIDATES));
        }
    }

    /** Starts the configured candidates, or none, and forgets the result of those before. */
    void restartCandidates(LimitCandidates candidates) {
        String rates = candidates();
        candidates.start(rates == null ? "off" : rates, candidatesFor(), place(LimitProperty.CANDIDATES));
    }

    /** Null for none: there are no rates around that of an unlimited limit, or of one that is closed, as in an emergency. */
    private @Nullable String candidates() {
        String rates = texts().get(LimitProperty.CANDIDATES.kebab());
        boolean around = rates != null && rates.strip().equals(Candidates.AUTO);
        return around && (limit().isClosed() || limit().isUnlimited()) ? null : rates;
    }

    private Duration candidatesFor() {
        return inForce(LimitProperty.CANDIDATES_FOR, Duration.class);
    }

    /** Returns whether a place that means this limit or tier, and no other, sets its blocks. */
    boolean statesBlocks() {
        Layer origin = origin(LimitProperty.BLOCK);
        return origin != null
                && (origin.strength() == Layer.Strength.STATED || origin.strength() == Layer.Strength.DECLARED);
    }

    InvalidRateLimitException invalid(LimitProperty property, String problem, String remedy) {
        return new InvalidRateLimitException(
                name, place(property), property.label() + " " + problem, remedy + " [RL-103]");
    }

    /**
     * The tiers: each has the values that it sets, and those that it inherits from the limit.
     *
     * @throws InvalidRateLimitException when one sets a property of the limit as a whole
     */
    Map<String, ResolvedLimit> tiers() {
        Map<String, ResolvedLimit> tiers = new TreeMap<>();
        LimitProperty.tiers(values).forEach((tier, stated) -> tiers.put(tier, tier(tier, stated)));
        return tiers;
    }

    private ResolvedLimit tier(String tier, Map<LimitProperty, Object> stated) {
        Layer origin = originOrStrongest(LimitProperty.TIERS);
        return part(place + ", tier '" + tier + "'", origin.tierPlace(tier), origin.remedy(), stated);
    }

    /**
     * The limit of some callers, with the values that are stated for them; they inherit the rest.
     *
     * @param partPlace of the callers, for messages
     * @param statedAt the place where it is stated
     * @param remedy the remedy for an invalid value
     */
    ResolvedLimit part(String partPlace, String statedAt, String remedy, Map<LimitProperty, ?> stated) {
        stated.forEach((property, value) -> {
            if (!property.isOfTiers()) {
                throw new InvalidRateLimitException(
                        name,
                        partPlace,
                        "tiers cannot set " + property.kebab() + ", which is " + value,
                        "Set it for the whole limit, under " + PropertyText.limit(name) + ". [RL-110]");
            }
        });
        Object rate = stated.get(LimitProperty.RATE);
        boolean unlimited = "unlimited".equalsIgnoreCase(String.valueOf(rate).strip());
        Map<LimitProperty, Object> own = new EnumMap<>(LimitProperty.class);
        own.putAll(stated);
        if (unlimited) {
            // Such a tier limits a rate, whatever the algorithm of its limit is.
            own.putIfAbsent(LimitProperty.ALGORITHM, Algorithm.TOKEN_BUCKET);
        }
        Map<LimitProperty, Object> inherited = new EnumMap<>(values);
        // With a rate of its own it has a burst of its own.
        inherited
                .keySet()
                .removeIf(property -> !property.isInherited() || (property == LimitProperty.BURST && rate != null));
        List<Layer> all = new ArrayList<>();
        all.add(new Layer(Layer.Strength.STATED, statedAt, remedy, own));
        all.add(new Layer(Layer.Strength.KEPT, partPlace, remedy, inherited));
        if (values.containsKey(LimitProperty.RATE)) {
            firstDays(partPlace, remedy).forEach(all::add);
        }
        ResolvedLimit part = new ResolvedLimit(name, partPlace, all);
        if (!unlimited) {
            requireKind(part);
        }
        return part;
    }

    /** Whether calls end, and whether they have keys, depends on the limit, whoever calls. */
    private void requireKind(ResolvedLimit part) {
        if (!algorithm.canChangeTo(part.algorithm)) {
            String possible = Algorithm.all().stream()
                    .filter(algorithm::canChangeTo)
                    .map(Algorithm::name)
                    .collect(Collectors.joining(", "));
            throw new InvalidRateLimitException(
                    name,
                    part.place(LimitProperty.ALGORITHM),
                    LimitProperty.ALGORITHM.label() + " is " + part.algorithm + ", but must be "
                            + (possible.contains(",") ? "one of " + possible : possible) + ", because the limit uses "
                            + algorithm,
                    "Correct it, or add a second limit with " + part.algorithm + " to the same calls. [RL-110]");
        }
    }

    /**
     * The first days that were stated for the limit, each with the rate that it was stated for: a part of it may still count by
     * the months for which the limit itself, since its rate was changed, has no first day any more.
     */
    private Stream<Layer> firstDays(String partPlace, String remedy) {
        return IntStream.range(0, layers.size())
                .filter(i -> layers.get(i).strength() != Layer.Strength.DEFAULT
                        && layers.get(i).values().get(LimitProperty.STARTS_ON) != null)
                .mapToObj(i -> {
                    Map<LimitProperty, Object> stated = new EnumMap<>(LimitProperty.class);
                    stated.put(
                            LimitProperty.STARTS_ON,
                            Objects.requireNonNull(layers.get(i).values().get(LimitProperty.STARTS_ON)));
                    Object rate = rate(layers.subList(i, layers.size()));
                    if (rate != null) {
                        stated.put(LimitProperty.RATE, rate);
                    }
                    return new Layer(Layer.Strength.KEPT, partPlace, remedy, stated);
                });
    }
}
