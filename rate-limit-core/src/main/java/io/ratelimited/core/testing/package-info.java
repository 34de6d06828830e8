/** Tools for tests of an application's own limits, without waiting. */
@NullMarked
package io.ratelimited.core.testing;

import org.jspecify.annotations.NullMarked;
