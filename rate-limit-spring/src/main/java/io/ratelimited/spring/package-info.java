/**
 * The names that users write: the annotation {@link io.ratelimited.spring.RateLimited}, the bean {@link
 * io.ratelimited.spring.RateLimits} for calls without annotations, the bean {@link io.ratelimited.spring.RateLimitOperations} for
 * operators, events and observers.
 */
@NullMarked
package io.ratelimited.spring;

import org.jspecify.annotations.NullMarked;
