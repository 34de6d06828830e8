package io.ratelimited.spring;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * An application event: a limit has been changed at run time, and the change is in effect. It is published on the thread that
 * made the change, or that of a change before it whose events are still being published; on other instances that share the
 * change, on a separate thread. Exceptions of listeners are logged, and the change stays in effect. Immutable.
 *
 * @param limit name of the limit
 * @param key mask of the key whose override was changed, as the endpoint {@code ratelimits} shows it; null if the limit
 *     itself was changed
 * @param before the previous values of the changed members, with the names and values of the endpoint: {@code rate} is {@code
 *     "100/s"}, and that of a tier is {@code tiers.gold.rate}. A member without a previous value is absent
 * @param after the new values of the same members; a member without a new value is absent
 * @param scope where the change applies
 * @param principal name of the author of the change; null if it is unknown. It is the same on every instance
 */
public record RateLimitChangedEvent(
        String limit,
        @Nullable String key,
        Map<String, Object> before,
        Map<String, Object> after,
        Scope scope,
        @Nullable String principal) {

    /** Creates an event with copies of the maps. */
    public RateLimitChangedEvent {
        before = Collections.unmodifiableMap(new LinkedHashMap<>(before));
        after = Collections.unmodifiableMap(new LinkedHashMap<>(after));
    }

    /** Where a change applies. */
    public enum Scope {
        /** On this instance, until it stops. */
        INSTANCE,
        /** On every instance that shares the limit. */
        FLEET
    }
}
