/** The limiter in memory, {@link io.ratelimited.core.memory.InMemoryRateLimiter}. */
@NullMarked
package io.ratelimited.core.memory;

import org.jspecify.annotations.NullMarked;
