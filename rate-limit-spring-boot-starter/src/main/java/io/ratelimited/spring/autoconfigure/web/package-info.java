/** Internal. Auto-configuration of the limits of web. */
@NullMarked
package io.ratelimited.spring.autoconfigure.web;

import org.jspecify.annotations.NullMarked;
