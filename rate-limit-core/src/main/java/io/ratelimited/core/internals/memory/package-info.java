/**
 * Internal. The limiter in memory behind {@link io.ratelimited.core.memory.InMemoryRateLimiter}. It has one cell a key; a cell is the state of
 * one algorithm, and its parameters are the limit in the units of that algorithm.
 */
@NullMarked
package io.ratelimited.core.internals.memory;

import org.jspecify.annotations.NullMarked;
