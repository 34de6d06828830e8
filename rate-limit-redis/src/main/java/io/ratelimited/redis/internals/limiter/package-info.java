/**
 * Internal. Limits that are decided in Redis: a limiter for what counts over time and one for calls in flight. Callers of one key
 * are decided together, refusals are remembered, permits of hot keys are leased, and this process decides by itself while
 * Redis is away.
 */
@NullMarked
package io.ratelimited.redis.internals.limiter;

import org.jspecify.annotations.NullMarked;
