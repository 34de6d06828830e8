package io.ratelimited.spring.internals.check;

import io.ratelimited.spring.internals.call.LimitUse;
import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.text.LogText;
import java.util.EnumSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;

/**
 * Warns of keys that clients control, and of tiers, conditions and permits that they can choose, unless another limit of the
 * same call bounds these callers; and of classes that they can choose. Thread-safe.
 */
public final class InventedKeys {

    private static final LogText.Lines LOG = LogText.lines(InventedKeys.class);

    private static final String BOUND =
            " Add a limit with the key clientIp (in WebSocket messages: principal) to the same call, or look the ";

    /** What callers gain who control a property, and the remedy. */
    private static final Map<LimitProperty, String> EFFECTS = Map.of(
            LimitProperty.KEY,
            ", and each new key gets a fresh limit." + BOUND
                    + "key up in a bean, as in @keys.owner(header('X-Api-Key'))",
            LimitProperty.TIER,
            ", and with it their limit." + BOUND + "tier up in a bean, as in @plans.of(principal)",
            LimitProperty.WHEN,
            ", so they can avoid the limit." + BOUND + "condition up in a bean, as in @callers.areLimited(principal)",
            LimitProperty.PERMITS,
            ", so they can make calls free with 0 permits." + BOUND
                    + "permits up in a bean, as in @costs.of(#order); or set charge to the actual cost",
            LimitProperty.PRIORITY,
            ", so they can claim the highest priority. Look the priority up in a bean, as in @classes.of(principal)",
            LimitProperty.BLOCK_UNLESS,
            ", so they can avoid every block. Verify it in a bean, as in @devices.isKnown(#name, #cookie)");

    /** Another limit is no remedy: a few calls of the best class go before all others, and a key is never blocked. */
    private static final Set<LimitProperty> WHATEVER_BOUNDS =
            EnumSet.of(LimitProperty.PRIORITY, LimitProperty.BLOCK_UNLESS);

    private final Set<String> reported = ConcurrentHashMap.newKeySet();

    /**
     * Warns if clients control a key of these limits, or a tier, a condition, a priority or an exemption.
     *
     * @param place where the limits are declared
     * @param ofEveryRequest limits that each such call passes too
     */
    public void warnOf(String place, List<LimitUse> limits, List<LimitUse> ofEveryRequest) {
        List<LimitUse> bounds = Stream.concat(limits.stream(), ofEveryRequest.stream())
                .filter(LimitUse::boundsEveryCaller)
                .toList();
        limits.forEach(limit -> limit.invented().forEach((property, expression) -> {
            if ((!isBounded(limit, bounds) || WHATEVER_BOUNDS.contains(property)) && reported.add(place + expression)) {
                LOG.warn(place + ": clients control the " + expression + EFFECTS.get(property) + ". [RL-209]");
            }
        }));
    }

    /** Limits on calls in flight bound only each other: short calls can be made as often as a caller likes. */
    private static boolean isBounded(LimitUse limit, List<LimitUse> bounds) {
        return bounds.stream()
                .anyMatch(bound ->
                        limit.limit().countsInFlight() || !bound.limit().countsInFlight());
    }
}
