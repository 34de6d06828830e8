/** Starts the sample: a small shop whose calls are limited, and a page that shows what each algorithm does. */
@NullMarked
package io.ratelimited.sample;

import org.jspecify.annotations.NullMarked;
