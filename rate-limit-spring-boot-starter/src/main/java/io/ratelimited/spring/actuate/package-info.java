/**
 * Internal. For operators: meters of decisions, and the actuator endpoint {@code ratelimits} that shows limits, changes them and
 * forgets what a key has used. Each part is there only where Micrometer or Spring Boot's actuator is.
 */
@NullMarked
package io.ratelimited.spring.actuate;

import org.jspecify.annotations.NullMarked;
