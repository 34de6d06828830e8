/** The cluster mode on virtual time: shipped limiters, connections and scripts, a simulated network, faults by seed. */
@NullMarked
package io.ratelimited.redis.simulation;

import org.jspecify.annotations.NullMarked;
