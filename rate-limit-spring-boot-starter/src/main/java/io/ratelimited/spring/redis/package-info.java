/**
 * Internal. Limits on Redis or Valkey: the backend plugs itself in where the module {@code rate-limit-redis} is on the class path
 * and a property says {@code backend: redis}. It has a client of its own, set up as the application's is.
 */
@NullMarked
package io.ratelimited.spring.redis;

import org.jspecify.annotations.NullMarked;
