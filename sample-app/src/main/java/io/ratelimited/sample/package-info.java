/** A small shop whose calls are limited, and one endpoint for each algorithm to try it. */
@NullMarked
package io.ratelimited.sample;

import org.jspecify.annotations.NullMarked;
