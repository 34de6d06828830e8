/** What deciding costs, beside the floor of the machine and the other libraries, in one run. */
@NullMarked
package io.ratelimited.benchmarks;

import org.jspecify.annotations.NullMarked;
