/** The limit that {@code ADAPTIVE} finds: what is known of it, and how it changes. Experimental: may change in a minor release. */
@NullMarked
package io.ratelimited.core.overload;

import org.jspecify.annotations.NullMarked;
