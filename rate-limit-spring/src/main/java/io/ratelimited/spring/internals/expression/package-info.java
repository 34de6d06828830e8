/** Internal. The expressions of limits: parsed once, evaluated for each call. */
@NullMarked
package io.ratelimited.spring.internals.expression;

import org.jspecify.annotations.NullMarked;
