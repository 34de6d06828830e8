package io.ratelimited.redis.limiter;

import io.ratelimited.core.Limit;
import java.util.AbstractMap;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The permits that this process has given away by itself, for each key. Bounded in number: the keys with the fewest permits
 * are forgotten first. Thread-safe.
 */
final class LocalCharges {

    private static final int MOST_KEYS = 10_000;

    private final Map<@Nullable String, Long> charges = new HashMap<>();

    synchronized void add(@Nullable String caller, long permits) {
        charges.merge(caller, permits, (before, more) -> Math.max(before, before + more));
        if (charges.size() > 2 * MOST_KEYS) {
            List<Map.Entry<@Nullable String, Long>> dearest = dearest();
            charges.clear();
            dearest.subList(0, MOST_KEYS).forEach(entry -> charges.put(entry.getKey(), entry.getValue()));
        }
    }

    synchronized void remove(@Nullable String caller, long permits) {
        charges.computeIfPresent(caller, (key, before) -> before > permits ? before - permits : null);
    }

    synchronized void forget(@Nullable String caller) {
        charges.remove(caller);
    }

    /** Takes out all charges, the dearest first. */
    synchronized List<Map.Entry<@Nullable String, Long>> drain() {
        List<Map.Entry<@Nullable String, Long>> dearest = dearest();
        charges.clear();
        return dearest.subList(0, Math.min(MOST_KEYS, dearest.size()));
    }

    private List<Map.Entry<@Nullable String, Long>> dearest() {
        List<Map.Entry<@Nullable String, Long>> all = new ArrayList<>();
        charges.forEach((key, permits) -> all.add(new AbstractMap.SimpleEntry<>(key, permits)));
        all.sort(Comparator.comparing((Map.Entry<@Nullable String, Long> entry) -> entry.getValue())
                .reversed());
        return all;
    }

    /**
     * The most that a node is charged: its share of what the limit holds. What it has given away beyond that has been
     * refilled meanwhile.
     */
    static long most(Limit limit, int nodes) {
        long whole =
                Math.min(limit.capacity(), Math.max(limit.burst(), limit.rate().permits()));
        return Math.max(1, whole / Math.max(1, nodes));
    }
}
