/**
 * For authors of backends: a bean of type {@link io.ratelimited.spring.backend.LimiterFactory} makes the limiters of the limits
 * that name it. Applications do not need this package.
 */
@NullMarked
package io.ratelimited.spring.backend;

import org.jspecify.annotations.NullMarked;
