package io.ratelimited.spring.check;

import io.ratelimited.spring.call.LimitUse;
import io.ratelimited.spring.text.LogText;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Warns of keys that callers can invent, and of tiers, conditions and permits that they can choose, unless another limit of the
 * same call bounds these callers; and of classes that they can choose. Thread-safe.
 */
public final class InventedKeys {

    private static final LogText.Lines LOG = LogText.lines(InventedKeys.class);

    private final Set<String> reported = ConcurrentHashMap.newKeySet();

    /**
     * Warns if callers can invent a key of these limits, or choose a tier, a condition, a priority or an exemption.
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
                    "invent the ",
                    limit.inventedKey(),
                    ", and each new key has a new budget.",
                    "key up, as in @keys.owner(header('X-Api-Key'))");
            warn(
                    place,
                    "choose the ",
                    limit.inventedTier(),
                    ", and with it their budget.",
                    "tier up, as in @plans.of(principal)");
            warn(
                    place,
                    "choose the ",
                    limit.inventedCondition(),
                    ", and so be without the limit.",
                    "condition up, as in @callers.areLimited(principal)");
            warn(
                    place,
                    "choose the ",
                    limit.inventedPermits(),
                    ", and so pay nothing for a call, by 0.",
                    "permits up, as in @costs.of(#order); or charge what the call has really cost, by charge");
        }
    }

    /** A bound on each caller is no remedy: a few calls of the best class go before all others. */
    private void warnOfPriority(String place, @Nullable String expression) {
        if (expression != null && reported.add(place + expression)) {
            LOG.warn(place + ": callers can choose the " + expression + ", and so go before all others."
                    + " Let a bean look the class up, as in @classes.of(principal). [RL-209]");
        }
    }

    /** Another limit is no remedy: the key is never blocked for them. */
    private void warnOfExemption(String place, @Nullable String expression) {
        if (expression != null && reported.add(place + expression)) {
            LOG.warn(place + ": callers can choose the " + expression + ", and so are never blocked."
                    + " Let a bean verify it, as in @devices.isKnown(#name, #cookie). [RL-209]");
        }
    }

    private void warn(String place, String does, @Nullable String expression, String effect, String remedy) {
        if (expression != null && reported.add(place + expression)) {
            LOG.warn(place + ": callers can " + does + expression + effect
                    + " Add a limit with the key clientIp to the same call, or let a bean look the " + remedy
                    + ". [RL-209]");
        }
    }
}
