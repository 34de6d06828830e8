/** Internal. The checks at start-up: invalid limits stop the application, and calls that no limit sees are logged as warnings. */
@NullMarked
package io.ratelimited.spring.internals.check;

import org.jspecify.annotations.NullMarked;
