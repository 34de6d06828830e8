/**
 * Internal: the rule of blocks of keys that keep trying ({@link io.ratelimited.core.Limit#block}), and those who hear of
 * each block that begins. A block is part of the cell of its key.
 */
@NullMarked
package io.ratelimited.core.internals.memory.block;

import org.jspecify.annotations.NullMarked;
