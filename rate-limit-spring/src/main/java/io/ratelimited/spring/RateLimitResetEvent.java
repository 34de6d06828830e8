package io.ratelimited.spring;

import org.jspecify.annotations.Nullable;

/**
 * An application event: the used permits of a key have been reset, and its block has ended ({@link
 * RateLimitOperations#reset}). It is published on the thread that made the reset, on that instance only; also if the reset has
 * failed, because Redis may have made it, or a part of it. Exceptions of listeners are logged, and the reset stays in effect.
 * Immutable.
 *
 * @param limit name of the limit
 * @param key mask of the key, as the endpoint {@code ratelimits} shows it; null for the calls without a key
 * @param scope where the reset applies
 * @param principal name of the author of the reset; null if it is unknown
 */
public record RateLimitResetEvent(
        String limit,
        @Nullable String key,
        RateLimitChangedEvent.Scope scope,
        @Nullable String principal) {}
