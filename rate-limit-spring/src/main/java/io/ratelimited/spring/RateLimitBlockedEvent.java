package io.ratelimited.spring;

import java.time.Duration;

/**
 * An application event: a limit has blocked a key, and rejects each of its calls until the block ends. It is published once for
 * each block, on the instance and in the thread of the offending call, which waits for its listeners: one that takes long should
 * be {@code @Async}. A listener that throws is logged. Immutable.
 *
 * @param limit name of the limit
 * @param key mask of the blocked key, as the endpoint {@code ratelimits} shows it; a {@link DecisionObserver} sees keys
 * @param lasting how long the block lasts
 * @param level how many blocks of the key have followed each other without a quiet time, 1 or more
 * @param shadow whether the limit only counts: under the policy SHADOW a block rejects nobody
 */
public record RateLimitBlockedEvent(String limit, String key, Duration lasting, int level, boolean shadow) {}
