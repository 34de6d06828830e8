/** Internal. Auto-configuration of annotated methods, the properties, their ranges, and the hints for ahead-of-time processing. */
@NullMarked
package io.ratelimited.spring.autoconfigure;

import org.jspecify.annotations.NullMarked;
