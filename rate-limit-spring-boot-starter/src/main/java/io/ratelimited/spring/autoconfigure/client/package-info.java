/** Internal. Auto-configuration of the limits of client. */
@NullMarked
package io.ratelimited.spring.autoconfigure.client;

import org.jspecify.annotations.NullMarked;
