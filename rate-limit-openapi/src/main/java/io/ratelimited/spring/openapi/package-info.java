/**
 * Internal. What limits mean to clients, in the OpenAPI document that springdoc writes. Start reading at {@link
 * io.ratelimited.spring.openapi.LimitedOperations}. Nothing here is loaded without springdoc.
 */
@NullMarked
package io.ratelimited.spring.openapi;

import org.jspecify.annotations.NullMarked;
