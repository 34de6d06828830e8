package io.ratelimited.spring;

import java.time.Duration;

/**
 * An application event: a limit has blocked a key, and rejects all of its calls until the block ends. It is published once
 * per block, on the instance and on the thread of the violating call, which waits for its listeners: slow listeners should be
 * {@code @Async}. Exceptions of listeners are logged. Immutable.
 *
 * @param limit name of the limit
 * @param key mask of the blocked key, as the endpoint {@code ratelimits} shows it; a {@link DecisionObserver} receives keys
 * @param lasting duration of the block
 * @param level number of consecutive blocks of the key without a violation-free time in between, 1 or more
 * @param shadow whether the policy is SHADOW, under which a block rejects no call
 */
public record RateLimitBlockedEvent(String limit, String key, Duration lasting, int level, boolean shadow) {}
