/**
 * Internal. The HTTP side of limits, for servlet and WebFlux alike: the request that keys are read from, the {@code RateLimit}
 * fields of responses, the answer to a refusal, and limits on routes. Start reading at {@link
 * io.ratelimited.spring.internals.web.LimitHeaders}, then the filter of either stack.
 */
@NullMarked
package io.ratelimited.spring.internals.web;

import org.jspecify.annotations.NullMarked;
