/** What users need to test their own limits without sleeping. */
@NullMarked
package io.ratelimited.core.testing;

import org.jspecify.annotations.NullMarked;
