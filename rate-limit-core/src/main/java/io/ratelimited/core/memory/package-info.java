/**
 * The limiter in memory, {@link io.ratelimited.core.memory.InMemoryRateLimiter}. It has one cell a key; a cell is the state of
 * one algorithm, and its parameters are the limit in the units of that algorithm.
 */
@NullMarked
package io.ratelimited.core.memory;

import org.jspecify.annotations.NullMarked;
