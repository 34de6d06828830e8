/**
 * Internal. The one place where a command is sent to Redis: connections, a circuit breaker for each server, timeouts, the server's
 * time, scripts and their arguments. Knows no limits.
 */
@NullMarked
package io.ratelimited.redis.internals.connection;

import org.jspecify.annotations.NullMarked;
