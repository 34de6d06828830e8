/** Overload in virtual time: the limit that finds itself beside the peers, no limit, and the best fixed limit known afterwards. */
@NullMarked
package io.ratelimited.benchmarks.overload;

import org.jspecify.annotations.NullMarked;
