/**
 * Internal. The threads of all limits of a JVM: one that keeps time, and those that run what callers have attached. No pool
 * of others, such as the common pool, is between a decision and its caller.
 */
@NullMarked
package io.ratelimited.core.internals.threads;

import org.jspecify.annotations.NullMarked;
