package io.ratelimited.spring.check;

import io.ratelimited.spring.call.LimitUse;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/** Warns of keys that callers can invent, unless another limit of the same call bounds these callers. Thread-safe. */
public final class InventedKeys {

    private static final Log LOG = LogFactory.getLog(InventedKeys.class);

    private final Set<String> reported = ConcurrentHashMap.newKeySet();

    /**
     * Warns if callers can invent a key of these limits.
     *
     * @param place where the limits are declared
     * @param ofEveryRequest limits that each such call passes too
     */
    public void warnOf(String place, List<LimitUse> limits, List<LimitUse> ofEveryRequest) {
        if (limits.stream().anyMatch(LimitUse::boundsEveryCaller)
                || ofEveryRequest.stream().anyMatch(LimitUse::boundsEveryCaller)) {
            return;
        }
        for (LimitUse limit : limits) {
            String key = limit.inventedKey();
            if (key != null && reported.add(place + key)) {
                LOG.warn(place + ": callers can invent the " + key + ", and each new key has a new budget. Add a limit"
                        + " with the key clientIp to the same call, or let a bean look the key up, as in"
                        + " @keys.owner(header('X-Api-Key')).");
            }
        }
    }
}
