/** Tools for tests of an application's own limits, without sleeping. */
@NullMarked
package io.ratelimited.core.testing;

import org.jspecify.annotations.NullMarked;
