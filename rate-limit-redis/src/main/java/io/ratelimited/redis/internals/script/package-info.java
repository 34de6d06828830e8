/**
 * Internal. How each family of algorithms is asked for decisions in its script, and how the replies are read: the arguments of a limit,
 * the time that permits cost, and the offsets of time zones.
 */
@NullMarked
package io.ratelimited.redis.internals.script;

import org.jspecify.annotations.NullMarked;
