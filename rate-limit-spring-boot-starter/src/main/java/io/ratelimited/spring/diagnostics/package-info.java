/** Internal. Explanations of starts that fail because of a rate limit. */
@NullMarked
package io.ratelimited.spring.diagnostics;

import org.jspecify.annotations.NullMarked;
