/**
 * Limits, algorithms, decisions and the in-memory limiter. Knows nothing of Spring, Redis or Reactor. Start reading at
 * {@link io.ratelimited.core.RateLimiter}, then {@link io.ratelimited.core.internals.memory.CellRateLimiter}, then the cell of
 * one algorithm.
 */
@NullMarked
package io.ratelimited.core;

import org.jspecify.annotations.NullMarked;
