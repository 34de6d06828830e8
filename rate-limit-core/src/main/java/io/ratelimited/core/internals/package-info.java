/** Internal. What every limiter checks of its arguments. */
@NullMarked
package io.ratelimited.core.internals;

import org.jspecify.annotations.NullMarked;
