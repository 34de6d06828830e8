package io.ratelimited.redis;

import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Health of the backend. Immutable.
 *
 * @param state whether Redis decides
 * @param since the time since which Redis decides, or is unavailable
 * @param lastError the last failure; null if there was none
 * @param calls script calls that were sent to Redis
 * @param timeouts script calls without a response within the timeout, and calls whose script calls took longer
 *     than that together
 * @param errors calls that failed for another reason
 * @param nodes number of nodes that share the limits, counted or expected; 0 if it is not known yet
 * @param problems reasons why this node does not know all changes of limits or all other nodes, although Redis decides; empty
 *     if there are none
 */
public record RedisHealth(
        State state,
        Instant since,
        @Nullable String lastError,
        long calls,
        long timeouts,
        long errors,
        int nodes,
        List<String> problems) {

    /** State of Redis. */
    public enum State {
        /** Redis decides. */
        UP,
        /** Part of a Redis Cluster is unavailable; the {@link OnFailure} policy applies to its keys. */
        DEGRADED,
        /** Redis is unavailable; the {@link OnFailure} policy applies. */
        DOWN
    }
}
