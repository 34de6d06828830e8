package io.ratelimited.spring.limit;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.LimitProperties;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;
import org.jspecify.annotations.Nullable;

/** A change of one limit at run time: checked when it is made up, so that nothing is refused once it is applied. */
final class LimitUpdate {

    private static final Log LOG = LogFactory.getLog(LimitUpdate.class);

    private static final String CORRECT = "Nothing was changed; correct the value and try again.";
    private static final String RESTART = "Nothing was changed; change the configuration and restart.";

    /** Properties that are read only once, when the limit is made or first used. */
    private static final Set<String> FIXED =
            Set.of("key", "permits", "when", "charge", "tier", "fallback", "backend", "onFailure", "maxOvershoot");

    private final ConfiguredLimit limit;
    private final LimitProperties next;
    private final Limit target;
    private final Map<String, Limit> tierTargets = new TreeMap<>();

    private LimitUpdate(ConfiguredLimit limit, LimitProperties next, @Nullable Limit adjusted) {
        this.limit = limit;
        this.next = next;
        this.target = adjusted != null ? adjusted : LimitSettings.limit(limit.name(), attribute -> place(limit), next);
        checkKind(limit.limiter(), target);
        check();
        tiers(next).forEach((tier, stated) -> {
            RateLimiter limiter = limit.tiers().get(tier);
            if (limiter != null) {
                String tierPlace = place(limit) + ", tier '" + tier + "'";
                LimitProperties ofTier = LimitSettings.tierProperties(limit.name(), tierPlace, stated, next);
                Limit tierTarget = LimitSettings.limit(limit.name(), attribute -> tierPlace, ofTier);
                checkKind(limiter, tierTarget);
                limit.requireRoom(tierTarget, " of tier '" + tier + "'", place(limit), CORRECT);
                tierTargets.put(tier, tierTarget);
            }
        });
    }

    /**
     * Changes the given properties.
     *
     * @throws InvalidRateLimitException when that is not a valid limit, or cannot be changed at run time
     */
    static LimitUpdate of(ConfiguredLimit limit, LimitProperties changes) {
        Set<String> fixed = fixed(changes).keySet();
        if (!fixed.isEmpty()) {
            throw invalid(limit, String.join(", ", fixed) + " cannot be changed at run time", RESTART);
        }
        Map<String, LimitProperties> tiers = new TreeMap<>(tiers(limit.properties()));
        tiers(changes).forEach((tier, change) -> {
            LimitProperties stated = tiers.get(tier);
            if (stated == null) {
                throw invalid(limit, "there is no tier '" + tier + "'; there are " + tiers.keySet(), RESTART);
            }
            tiers.put(tier, LimitMerge.over(change, stated));
        });
        Algorithm other = changes.algorithm();
        LimitProperties now = other == null ? limit.properties() : LimitMerge.suitedTo(limit.properties(), other);
        Map<String, Object> values = now.values();
        values.putAll(changes.values());
        values.put("tiers", tiers);
        LimitProperties next = LimitProperties.of(values);
        return new LimitUpdate(limit, next, adjusted(limit, changes));
    }

    /**
     * Changes the limit itself.
     *
     * @throws InvalidRateLimitException when it cannot be changed so at run time
     */
    static LimitUpdate to(ConfiguredLimit limit, Limit changed) {
        return new LimitUpdate(limit, limit.properties(), changed);
    }

    /**
     * Changes what differs between two states of the configuration.
     *
     * @throws InvalidRateLimitException when the outcome is not a valid limit
     */
    static LimitUpdate between(ConfiguredLimit limit, LimitProperties old, LimitProperties changed) {
        LimitProperties next = rebased(limit.properties(), old, changed);
        warn(limit, "", fixed(old), fixed(changed));
        warn(
                limit,
                "the set of ",
                Map.of("tiers", tiers(old).keySet()),
                Map.of("tiers", tiers(next).keySet()));
        boolean removed = !LimitMerge.over(changed, old).equals(changed);
        return new LimitUpdate(
                limit, next, removed ? null : adjusted(limit, rebased(LimitProperties.NONE, old, changed)));
    }

    private static void warn(ConfiguredLimit limit, String part, Map<String, ?> old, Map<String, ?> changed) {
        if (!old.equals(changed)) {
            LOG.warn("Rate limit '" + limit.name() + "': a change of " + part + "properties takes effect at the next"
                    + " start, from " + old + " to " + changed);
        }
    }

    /** The limit in use with some changes, so that what was changed elsewhere stays; null for another algorithm. */
    private static @Nullable Limit adjusted(ConfiguredLimit limit, LimitProperties changes) {
        if (changes.algorithm() != null && changes.algorithm() != limit.limit().algorithm()) {
            return null;
        }
        try {
            return LimitSettings.apply(changes, limit.limit().toBuilder()).build();
        } catch (IllegalArgumentException ex) {
            throw new InvalidRateLimitException(
                    limit.name(), place(limit), String.valueOf(ex.getMessage()), CORRECT, ex);
        }
    }

    private void checkKind(RateLimiter limiter, Limit changed) {
        Algorithm from = limiter.limit().algorithm();
        Algorithm to = changed.algorithm();
        if (!from.canChangeTo(to)) {
            throw invalid(
                    limit,
                    "algorithm cannot change from " + from + " to " + to
                            + " at run time: calls in flight cannot be counted over time",
                    RESTART);
        }
    }

    private void check() {
        limit.requireRoom(target, "", place(limit), CORRECT);
        LimitSettings.check(limit.name(), attribute -> place(limit), next);
        Duration maxWait = next.maxWait();
        Policy policy = next.policy() == null ? target.algorithm().defaultPolicy() : next.policy();
        if (policy != Policy.WAIT
                && maxWait != null
                && !maxWait.equals(limit.properties().maxWait())) {
            throw invalid(
                    limit,
                    "maxWait has no meaning for policy " + policy + ": " + maxWait,
                    "Nothing was changed; set policy to WAIT as well, or leave maxWait out.");
        }
    }

    private static InvalidRateLimitException invalid(ConfiguredLimit limit, String problem, String remedy) {
        return new InvalidRateLimitException(limit.name(), place(limit), problem, remedy);
    }

    private static String place(ConfiguredLimit limit) {
        return "change at run time, of " + limit.place();
    }

    String name() {
        return limit.name();
    }

    /** Changes the limit and its tiers, as far as they differ from what is in use. */
    void apply() {
        if (!target.equals(limit.limit())) {
            limit.limiter().update(target);
        }
        tierTargets.forEach((tier, tierTarget) -> {
            if (!tierTarget.equals(limit.limiterOfTier(tier).limit())) {
                limit.limiterOfTier(tier).update(tierTarget);
            }
        });
        limit.properties(next);
    }

    private static Map<String, LimitProperties> tiers(LimitProperties properties) {
        return properties.tiers() == null ? Map.of() : properties.tiers();
    }

    /** The values of the properties in {@link #FIXED}. */
    private static Map<String, Object> fixed(LimitProperties properties) {
        Map<String, Object> values = properties.values();
        values.keySet().retainAll(FIXED);
        return values;
    }

    /** The properties as they are now, and where old and new configuration differ, those of the new one. */
    private static LimitProperties rebased(LimitProperties now, LimitProperties old, LimitProperties changed) {
        Map<String, @Nullable Object> difference = LimitMerge.difference(old, changed);
        difference.keySet().removeAll(FIXED);
        Map<String, @Nullable Object> values = new HashMap<>(now.values());
        values.putAll(difference);
        return LimitProperties.of(values);
    }
}
