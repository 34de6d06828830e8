package io.ratelimited.redis;

import java.time.Instant;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The health of the backend. Immutable.
 *
 * @param state whether Redis decides
 * @param since the time at which Redis began to decide, or ceased to
 * @param lastError the last failure; null if there was none
 * @param calls scripts sent to Redis
 * @param timeouts calls that Redis did not respond in time
 * @param errors calls that failed otherwise
 * @param nodes nodes of this cluster, counted or as expected; 0 when not known yet
 * @param problems reasons why this node does not know all changes of limits or all other nodes, though Redis decides; empty
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

    /** The state of Redis: all, a part or none of it decides. */
    public enum State {
        /** All limits are decided by Redis. */
        UP,
        /** Part of a Redis Cluster does not answer; its keys are decided as {@link OnFailure} says. */
        DEGRADED,
        /** Redis does not answer; limits are decided as {@link OnFailure} says. */
        DOWN
    }
}
