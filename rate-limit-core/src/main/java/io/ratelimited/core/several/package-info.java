/**
 * Several limits on one call: all of them admit it, or none is charged. {@link io.ratelimited.core.several.AllOf} asks, takes and
 * undoes.
 */
@NullMarked
package io.ratelimited.core.several;

import org.jspecify.annotations.NullMarked;
