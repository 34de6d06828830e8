package io.ratelimited.spring;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * An application event: a limit has been changed while it is in use, and the change is in force. It is published on the
 * thread that made the change; on each other instance, if it shares the change, on one of its own. A listener that throws is
 * logged; the change stands. Immutable.
 *
 * @param limit name of the limit
 * @param key mask of the key whose own budget was changed, as the endpoint {@code ratelimits} shows it; null if the limit
 *     itself was changed
 * @param before the members that have changed as they were, named as the endpoint names them and with its values: {@code
 *     rate} is {@code "100/s"}, and that of a tier is {@code tiers.gold.rate}. A member that was not there is absent
 * @param after the same members as they are; a member that is no longer there is absent
 * @param scope where the change is in force
 * @param principal the name of the author of the change; null if nobody is known. It is the same on
 *     every instance
 */
public record RateLimitChangedEvent(
        String limit,
        @Nullable String key,
        Map<String, Object> before,
        Map<String, Object> after,
        Scope scope,
        @Nullable String principal) {

    /** Makes an event with copies of the maps. */
    public RateLimitChangedEvent {
        before = Collections.unmodifiableMap(new LinkedHashMap<>(before));
        after = Collections.unmodifiableMap(new LinkedHashMap<>(after));
    }

    /** Where a change is in force. */
    public enum Scope {
        /** In this instance, until it stops. */
        INSTANCE,
        /** On every instance that shares the limit. */
        FLEET
    }
}
