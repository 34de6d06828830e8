package io.ratelimited.core.internals.memory;

import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/** Cells whose keys are objects of tests: some share a place, and some act when they are looked up. */
final class AnyKeys extends CellRateLimiter {

    AnyKeys(Limit limit, Ticker ticker, LongSupplier maximumKeys) {
        super(limit, ticker, maximumKeys);
    }

    @Override
    @Nullable
    Object cellKey(@Nullable Object key) {
        return key;
    }
}
