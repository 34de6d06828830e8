/**
 * The names that users write: the annotation, the aspect that limits annotated methods, the properties, and the {@link io.ratelimited.spring.RateLimits}
 * bean for code without annotations. Start reading at {@link io.ratelimited.spring.RateLimited}, then {@link
 * io.ratelimited.spring.RateLimitAspect}, then {@link io.ratelimited.spring.aop.LimitedMethod}.
 */
@NullMarked
package io.ratelimited.spring;

import org.jspecify.annotations.NullMarked;
