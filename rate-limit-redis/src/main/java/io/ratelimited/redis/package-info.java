/**
 * The same limits for a whole cluster, on Redis or Valkey: a {@link io.ratelimited.redis.RedisBackend} makes a limiter for
 * each limit, and a script in Redis decides, one call a decision. Depends on the core, and on Lettuce
 * with its Netty.
 */
@NullMarked
package io.ratelimited.redis;

import org.jspecify.annotations.NullMarked;
