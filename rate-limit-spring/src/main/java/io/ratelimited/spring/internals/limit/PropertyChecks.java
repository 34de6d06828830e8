package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.PropertyText;
import java.time.Duration;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Checks properties of a limit that the core does not know. */
final class PropertyChecks {

    private static final LogText.Lines LOG = LogText.lines(PropertyChecks.class);
    private static final Duration MAX_MAX_WAIT = Duration.ofDays(365);

    private PropertyChecks() {}

    /** @throws InvalidRateLimitException when one is invalid, or has no meaning for the algorithm or the policy */
    static void check(ResolvedLimit limit) {
        checkMaxWait(limit);
        checkOvershoot(limit);
        checkUses(limit);
    }

    /** Checks the properties of uses that depend on the algorithm. */
    private static void checkUses(ResolvedLimit limit) {
        if (limit.values().containsKey(LimitProperty.CHARGE)
                && limit.algorithm().countsCallsInFlight()) {
            throw limit.invalid(
                    LimitProperty.CHARGE,
                    "is \"" + limit.values().get(LimitProperty.CHARGE) + "\", but " + limit.algorithm()
                            + " counts calls in flight and does not support it",
                    "Remove it, or use an algorithm that counts over time.");
        }
        if (limit.values().containsKey(LimitProperty.BLOCK_UNLESS)
                && !limit.values().containsKey(LimitProperty.BLOCK)) {
            throw limit.invalid(
                    LimitProperty.BLOCK_UNLESS,
                    "is \"" + limit.values().get(LimitProperty.BLOCK_UNLESS) + "\", but has no effect without block",
                    "Set block, or remove it.");
        }
        if (limit.values().containsKey(LimitProperty.KEY) && !LimitProperty.KEY.hasMeaningFor(limit.algorithm())) {
            throw limit.invalid(
                    LimitProperty.KEY,
                    "is \"" + limit.values().get(LimitProperty.KEY) + "\", but " + limit.algorithm()
                            + " has one limit for all calls of this instance and does not support it",
                    "Remove it, and add a second limit with this key to the same call.");
        }
        if (!limit.values().containsKey(LimitProperty.PRIORITY)) {
            return;
        }
        if (!LimitProperty.PRIORITY.hasMeaningFor(limit.algorithm())) {
            throw limit.invalid(
                    LimitProperty.PRIORITY,
                    "is \"" + limit.values().get(LimitProperty.PRIORITY) + "\", but " + limit.algorithm()
                            + " does not support it",
                    "Remove it, or use ADAPTIVE or CONCURRENCY.");
        }
        Layer origin = limit.origin(LimitProperty.PRIORITY);
        boolean meansOthers = origin != null && origin.strength() == Layer.Strength.DEFAULT;
        if (!meansOthers
                && !(limit.values().get(LimitProperty.PRIORITIES) instanceof List<?> classes && !classes.isEmpty())) {
            throw new InvalidRateLimitException(
                    limit.name(),
                    limit.place(LimitProperty.PRIORITY),
                    "priority is \"" + limit.values().get(LimitProperty.PRIORITY)
                            + "\", but there are no priorities to choose from",
                    "Set " + PropertyText.limit(limit.name())
                            + ".priorities, the highest first, as in [critical, batch]. [RL-117]");
        }
    }

    private static void checkMaxWait(ResolvedLimit limit) {
        Duration maxWait = limit.maxWait();
        Layer origin = limit.origin(LimitProperty.MAX_WAIT);
        if (maxWait == null || origin == null) {
            return;
        }
        if (maxWait.isNegative() || maxWait.compareTo(MAX_MAX_WAIT) > 0) {
            throw limit.invalid(
                    LimitProperty.MAX_WAIT,
                    "is " + PropertyText.of(maxWait) + ", but must be from 0s to 365d",
                    "Correct the duration.");
        }
        boolean stated = origin.strength() == Layer.Strength.STATED || origin.strength() == Layer.Strength.DECLARED;
        // A stronger layer may end the waiting without a word about its length.
        List<Layer> fromThere = limit.layers()
                .subList(limit.layers().indexOf(origin), limit.layers().size());
        if (stated
                && limit.enforcedPolicy() != Policy.WAIT
                && new ResolvedLimit(limit.name(), limit.place(), fromThere).enforcedPolicy() != Policy.WAIT) {
            throw limit.invalid(
                    LimitProperty.MAX_WAIT,
                    "is " + PropertyText.of(maxWait) + ", but policy " + limit.policy() + " does not support it",
                    "Set the policy to WAIT, or remove maxWait.");
        }
    }

    static void checkOvershoot(ResolvedLimit limit) {
        String overshoot = (String) limit.values().get(LimitProperty.MAX_OVERSHOOT);
        if (overshoot == null) {
            return;
        }
        if (!overshoot.strip().matches("(100|\\d{1,2}([.]\\d+)?)\\s*%")) {
            throw limit.invalid(
                    LimitProperty.MAX_OVERSHOOT,
                    "is \"" + overshoot + "\", but must be from 0% to 100%",
                    "Write it as in 5%.");
        }
        if (!LimitProperty.MAX_OVERSHOOT.hasMeaningFor(limit.algorithm())) {
            throw limit.invalid(
                    LimitProperty.MAX_OVERSHOOT,
                    "is " + overshoot + ", but " + limit.algorithm() + " is always exact and does not support it",
                    "Remove it, or use one of "
                            + Algorithm.all().stream()
                                    .filter(LimitProperty.MAX_OVERSHOOT::hasMeaningFor)
                                    .map(Algorithm::name)
                                    .collect(Collectors.joining(", "))
                            + ".");
        }
    }

    /**
     * Warns of properties of a limit that calls in code do not read.
     *
     * @param keyed whether code passes a key
     */
    static void warnOfUnread(String limit, Map<LimitProperty, ?> stated, boolean keyed) {
        Set<LimitProperty> unread = EnumSet.noneOf(LimitProperty.class);
        stated.forEach((property, value) -> {
            if (property.isOfCalls()
                    && !value.equals(property.defaultValue())
                    && !value.toString().isBlank()) {
                unread.add(property);
            }
        });
        if (keyed) {
            unread.remove(LimitProperty.KEY);
        }
        if (stated.containsKey(LimitProperty.BLOCK)) {
            unread.remove(LimitProperty.CHARGE); // says that what code settles are the violations
        }
        if (!unread.isEmpty()) {
            LOG.warn("Rate limit '" + limit + "' sets "
                    + unread.stream().map(LimitProperty::kebab).collect(Collectors.joining(", "))
                    + ", which RateLimits ignores: code passes the key, the permits and the priority of each call."
                    + " Origin: " + PropertyText.limit(limit) + ". Remove these properties, define a separate limit for"
                    + " code, or limit an annotated method instead. [RL-219]");
        }
    }

    /** Warns of tiers without an expression that selects one, and of an expression without tiers. */
    static void warnOfTiersWithout(
            @Nullable String expression, Set<String> tiers, boolean countsInFlight, String limit, String usedAt) {
        if (expression == null && !tiers.isEmpty()) {
            LOG.warn("Rate limit '" + limit + "' (" + usedAt + ") has the tiers " + tiers
                    + " but no tier expression, so the limit itself applies to every caller. Set"
                    + " one, as in tier: \"#user.plan\". [RL-208]");
        } else if (expression != null && tiers.isEmpty() && countsInFlight) {
            // Under another algorithm it may yield numbers.
            LOG.warn("Rate limit '" + limit + "' (" + usedAt + ") has the tier expression \"" + expression
                    + "\" but no tiers, so the limit itself applies to every caller. Define "
                    + PropertyText.limit(limit) + ".tiers. [RL-208]");
        }
    }
}
