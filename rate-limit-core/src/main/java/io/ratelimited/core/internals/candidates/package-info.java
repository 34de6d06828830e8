/**
 * Internal. Which number: what other rates of a limit would have done with the same calls. Decides about none of them.
 * Experimental: may change in a minor release.
 */
@NullMarked
package io.ratelimited.core.internals.candidates;

import org.jspecify.annotations.NullMarked;
