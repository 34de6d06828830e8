/** Overload of a real application on Tomcat, with a pool that is as slow as a database, and its load in another process. */
@NullMarked
package io.ratelimited.benchmarks.real;

import org.jspecify.annotations.NullMarked;
