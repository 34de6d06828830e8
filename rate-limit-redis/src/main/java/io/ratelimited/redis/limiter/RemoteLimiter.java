package io.ratelimited.redis.limiter;

import io.ratelimited.core.Decision;
import io.ratelimited.core.JointRateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.redis.connection.GuardedConnection;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/** A limiter whose decisions a {@link MultiLimitCall} puts together. */
interface RemoteLimiter extends JointRateLimiter {

    GuardedConnection connection();

    /** What {@link #reserve} would decide; fails when Redis does not answer in time. */
    CompletableFuture<Decision> peekInRedis(@Nullable Object key, long permits, long maxWaitNanos);

    /** As {@link #reserve}; fails when Redis does not answer in time. */
    CompletableFuture<Reservation> reserveInRedis(@Nullable Object key, long permits, long maxWaitNanos);

    /** What {@link #reserveWithoutRedis} would decide. */
    Decision peekWithoutRedis(@Nullable Object key, long permits, long maxWaitNanos, Throwable failure);

    /** As {@link #reserve}, by this process alone. */
    Reservation reserveWithoutRedis(@Nullable Object key, long permits, long maxWaitNanos, Throwable failure);
}
