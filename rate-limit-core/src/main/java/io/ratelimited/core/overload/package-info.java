/** The limit that {@code ADAPTIVE} finds: what is known of it, how it changes, and the step that decides on a change. */
@NullMarked
package io.ratelimited.core.overload;

import org.jspecify.annotations.NullMarked;
