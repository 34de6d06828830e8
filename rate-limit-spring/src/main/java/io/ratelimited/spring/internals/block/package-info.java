/** Internal. Reports of the keys that limits block. */
@NullMarked
package io.ratelimited.spring.internals.block;

import org.jspecify.annotations.NullMarked;
