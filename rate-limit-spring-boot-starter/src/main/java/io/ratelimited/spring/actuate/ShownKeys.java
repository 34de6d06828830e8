package io.ratelimited.spring.actuate;

import io.ratelimited.core.KeyDigest;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.spring.NamedLimit;
import java.util.List;
import java.util.Set;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Keys as text, and back. An operator knows a key by its text only, while the key may be a number or a record: so the
 * keys in memory are searched for the text, and only a text that none of them has is taken for the key itself.
 */
final class ShownKeys {

    private final RefusedKeys refused;
    private final KeyMask mask = new KeyMask();
    private final boolean masked;

    ShownKeys(RefusedKeys refused, boolean masked) {
        this.refused = refused;
        this.masked = masked;
    }

    String show(Object key) {
        return masked ? mask.mask(key) : String.valueOf(key);
    }

    /**
     * The keys that a text, or a mask, stands for: as a rule one.
     *
     * @throws IllegalArgumentException for a mask that stands for no key known here
     */
    Set<Object> find(NamedLimit limit, String text) {
        String kept = String.valueOf(KeyDigest.shorten(text));
        Set<Object> found = known(limit, key -> String.valueOf(key).equals(kept));
        if (found.isEmpty() && mask.isMask(text)) {
            found = known(limit, key -> mask.mask(key).equals(text));
            if (found.isEmpty()) {
                throw new IllegalArgumentException("there is no key with the mask '" + text + "' under rate limit '"
                        + limit.name() + "': masks are those of this instance since its start");
            }
        }
        return found.isEmpty() ? Set.of(text) : found;
    }

    private Set<Object> known(NamedLimit limit, Predicate<Object> wanted) {
        Stream<Object> inMemory = LimitMeters.limiters(limit).flatMap(RateLimiter::knownKeys);
        List<TopKeys.Top> mostRefused = refused.top(limit, RefusedKeys.COUNTERS);
        return Stream.concat(mostRefused.stream().map(TopKeys.Top::key), inMemory)
                .filter(wanted)
                .collect(Collectors.toSet());
    }
}
