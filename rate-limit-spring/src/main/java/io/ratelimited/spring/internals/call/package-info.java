/** Internal. One call under its limits: its expressions are evaluated, its limits are asked, and their policies are applied. */
@NullMarked
package io.ratelimited.spring.internals.call;

import org.jspecify.annotations.NullMarked;
