/** Internal. The limits of the application: made from annotations and properties, found by name, changed at run time. */
@NullMarked
package io.ratelimited.spring.internals.limit;

import org.jspecify.annotations.NullMarked;
