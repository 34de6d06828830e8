/** Internal. Auto-configuration of the limits of web on servlet. */
@NullMarked
package io.ratelimited.spring.autoconfigure.web.servlet;

import org.jspecify.annotations.NullMarked;
