/** Internal. Overload: what {@code ADAPTIVE} is told of the end of a call, and what it reports of the limit that it finds. */
@NullMarked
package io.ratelimited.spring.internals.overload;

import org.jspecify.annotations.NullMarked;
