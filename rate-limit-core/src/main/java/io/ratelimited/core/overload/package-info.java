/** The limit that {@code ADAPTIVE} finds: what is known of it, and how it changes. */
@NullMarked
package io.ratelimited.core.overload;

import org.jspecify.annotations.NullMarked;
