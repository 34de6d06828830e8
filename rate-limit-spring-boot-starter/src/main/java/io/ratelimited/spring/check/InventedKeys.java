package io.ratelimited.spring.check;

import io.ratelimited.spring.call.LimitUse;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.commons.logging.Log;
import org.apache.commons.logging.LogFactory;

/** Warns of keys that callers invent where no other limit of the same call bounds them. Thread-safe. */
public final class InventedKeys {

    private static final Log LOG = LogFactory.getLog(InventedKeys.class);

    private final Set<String> reported = ConcurrentHashMap.newKeySet();

    /**
     * Looks at the limits of a call.
     *
     * @param place where the limits are declared
     * @param beside limits that every such call passes, too
     */
    public void warnOf(String place, List<LimitUse> limits, List<LimitUse> beside) {
        if (limits.stream().anyMatch(LimitUse::boundsEveryCaller)
                || beside.stream().anyMatch(LimitUse::boundsEveryCaller)) {
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
