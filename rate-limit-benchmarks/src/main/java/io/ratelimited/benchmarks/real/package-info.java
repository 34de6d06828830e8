/** Overload of a real application on Tomcat, with a PostgreSQL or a pool that is as slow, and its load in another process. */
@NullMarked
package io.ratelimited.benchmarks.real;

import org.jspecify.annotations.NullMarked;
