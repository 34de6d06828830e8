/** Internal. Text for people: log lines, values as they stand in properties, and names that may be meant. */
@NullMarked
package io.ratelimited.spring.internals.text;

import org.jspecify.annotations.NullMarked;
