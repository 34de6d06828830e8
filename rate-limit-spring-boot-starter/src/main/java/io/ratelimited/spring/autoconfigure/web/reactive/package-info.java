/** Internal. Auto-configuration of the limits of web on reactive. */
@NullMarked
package io.ratelimited.spring.autoconfigure.web.reactive;

import org.jspecify.annotations.NullMarked;
