package io.ratelimited.spring.internals.check;

import io.ratelimited.spring.internals.call.LimitUse;
import io.ratelimited.spring.internals.text.LogText;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Warns of keys that clients control, and of tiers, conditions and permits that they can choose, unless another limit of the
 * same call bounds these callers; and of classes that they can choose. Thread-safe.
 */
public final class InventedKeys {

    private static final LogText.Lines LOG = LogText.lines(InventedKeys.class);

    private final Set<String> reported = ConcurrentHashMap.newKeySet();

    /**
     * Warns if clients control a key of these limits, or a tier, a condition, a priority or an exemption.
     *
     * @param place where the limits are declared
     * @param ofEveryRequest limits that each such call passes too
     */
    public void warnOf(String place, List<LimitUse> limits, List<LimitUse> ofEveryRequest) {
        limits.forEach(limit -> warnOfPriority(place, limit.inventedPriority()));
        limits.forEach(limit -> warnOfExemption(place, limit.inventedExemption()));
        if (limits.stream().anyMatch(LimitUse::boundsEveryCaller)
                || ofEveryRequest.stream().anyMatch(LimitUse::boundsEveryCaller)) {
            return;
        }
        for (LimitUse limit : limits) {
            warn(
                    place,
                    limit.inventedKey(),
                    ", and each new key gets a fresh limit.",
                    "key up in a bean, as in @keys.owner(header('X-Api-Key'))");
            warn(
                    place,
                    limit.inventedTier(),
                    ", and with it their limit.",
                    "tier up in a bean, as in @plans.of(principal)");
            warn(
                    place,
                    limit.inventedCondition(),
                    ", so they can avoid the limit.",
                    "condition up in a bean, as in @callers.areLimited(principal)");
            warn(
                    place,
                    limit.inventedPermits(),
                    ", so they can make calls free with 0 permits.",
                    "permits up in a bean, as in @costs.of(#order); or set charge to the actual cost");
        }
    }

    /** A bound on each caller is no remedy: a few calls of the best class go before all others. */
    private void warnOfPriority(String place, @Nullable String expression) {
        if (expression != null && reported.add(place + expression)) {
            LOG.warn(place + ": clients control the " + expression + ", so they can claim the highest priority."
                    + " Look the priority up in a bean, as in @classes.of(principal). [RL-209]");
        }
    }

    /** Another limit is no remedy: the key is never blocked for them. */
    private void warnOfExemption(String place, @Nullable String expression) {
        if (expression != null && reported.add(place + expression)) {
            LOG.warn(place + ": clients control the " + expression + ", so they can avoid every block."
                    + " Verify it in a bean, as in @devices.isKnown(#name, #cookie). [RL-209]");
        }
    }

    private void warn(String place, @Nullable String expression, String effect, String remedy) {
        if (expression != null && reported.add(place + expression)) {
            LOG.warn(place + ": clients control the " + expression + effect
                    + " Add a limit with the key clientIp to the same call, or look the " + remedy
                    + ". [RL-209]");
        }
    }
}
