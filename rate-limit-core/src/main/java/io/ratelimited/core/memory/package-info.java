/**
 * Internal. The limiter in memory for what counts over time. A limiter has one cell a key; a cell is the state of one algorithm,
 * and its parameters are the limit in the units of that algorithm. Arrows point down: limiter, map of cells, algorithms,
 * {@link io.ratelimited.core.memory.Cell}.
 */
@NullMarked
package io.ratelimited.core.memory;

import org.jspecify.annotations.NullMarked;
