/** Internal. What limiters in memory and calls under several limits agree on: two steps, and locks between them. */
@NullMarked
package io.ratelimited.core.internals.several;

import org.jspecify.annotations.NullMarked;
