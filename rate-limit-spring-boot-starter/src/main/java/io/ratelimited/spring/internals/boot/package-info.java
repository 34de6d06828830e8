/** Internal. What several auto-configurations use. */
@NullMarked
package io.ratelimited.spring.internals.boot;

import org.jspecify.annotations.NullMarked;
