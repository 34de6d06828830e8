package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.spring.backend.LimiterFactory;
import java.util.Map;
import java.util.Set;
import java.util.function.ToLongFunction;

/**
 * Limits in memory, under the name of a backend.
 *
 * @param maximumKeys asked when the first key of a limit comes
 */
public record InMemoryLimiterFactory(
        String backend, Set<String> properties, Ticker ticker, ToLongFunction<Limit> maximumKeys)
        implements LimiterFactory {

    @Override
    public boolean blocks() {
        return true;
    }

    @Override
    public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
        return new InMemoryRateLimiter(limit, ticker, () -> maximumKeys.applyAsLong(limit));
    }
}
