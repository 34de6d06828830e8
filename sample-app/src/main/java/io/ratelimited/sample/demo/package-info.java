/** One endpoint for each algorithm, for the live page and for curl. */
@NullMarked
package io.ratelimited.sample.demo;

import org.jspecify.annotations.NullMarked;
