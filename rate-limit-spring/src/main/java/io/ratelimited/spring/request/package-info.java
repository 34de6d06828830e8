/**
 * The web request of a call, in three parts: its facts, which expressions read; what the decisions of limits are written to;
 * and its end. Implemented for each web stack; a bean {@link io.ratelimited.spring.request.CurrentRequest.Source} adds another.
 */
@NullMarked
package io.ratelimited.spring.request;

import org.jspecify.annotations.NullMarked;
