/**
 * Internal: blocks of keys that keep trying ({@link io.ratelimited.core.Limit#block}), around a limiter that knows nothing of
 * them. A limit without blocks uses nothing of this.
 */
@NullMarked
package io.ratelimited.core.memory.block;

import org.jspecify.annotations.NullMarked;
