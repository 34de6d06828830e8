package io.ratelimited.redis;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.InMemoryRateLimiter;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import org.jspecify.annotations.Nullable;

/**
 * Decides while Redis does not. A local limiter begins empty with each outage, as far as its algorithm allows, so that
 * the outage itself gives nobody a burst.
 */
final class Fallback {

    private final RedisBackend backend;
    private final RedisLimitOptions options;
    private Limit limit;
    private @Nullable InMemoryRateLimiter local;
    /** The outage and the number of nodes for which {@link #local} was made. */
    private int outage;

    private int nodes;

    Fallback(RedisBackend backend, RedisLimitOptions options, Limit limit) {
        this.backend = backend;
        this.options = options;
        this.limit = limit;
        if (options.onFailure() == OnFailure.LOCAL) {
            // Used by nobody: loads what the first caller of an outage would have to wait for.
            InMemoryRateLimiter.startingEmpty(limit, backend.ticker(), 1).reserve("", 1, 0);
        }
    }

    private synchronized InMemoryRateLimiter local() {
        InMemoryRateLimiter current = local;
        if (current == null || outage != backend.recoveries() || nodes != backend.nodes()) {
            outage = backend.recoveries();
            nodes = backend.nodes();
            current = InMemoryRateLimiter.startingEmpty(
                    NodeShare.of(limit, nodes), backend.ticker(), options.maximumKeys());
            local = current;
        }
        return current;
    }

    synchronized void update(Limit next) {
        limit = next;
        local = null;
    }

    synchronized long keys() {
        return local == null ? 0 : local.keys();
    }

    synchronized int waiting() {
        return local == null ? 0 : local.waiting();
    }

    void reset(@Nullable String caller) {
        InMemoryRateLimiter current;
        synchronized (this) {
            current = local;
        }
        if (current != null) {
            current.reset(caller);
        }
    }

    Reservation reserve(@Nullable String caller, long permits, long maxWait, Throwable failure) {
        return switch (options.onFailure()) {
            case LOCAL -> new Local(local().reserve(caller, permits, maxWait), permits <= limit().capacity());
            case ALLOW -> new Fixed(fixed(true));
            case DENY -> new Fixed(fixed(false));
            case THROW -> throw unavailable(failure);
        };
    }

    Decision peek(@Nullable String caller, long permits, long maxWait, Throwable failure) {
        return switch (options.onFailure()) {
            case LOCAL -> Local.told(local().peek(caller, permits, maxWait), permits <= limit().capacity());
            case ALLOW -> fixed(true);
            case DENY -> fixed(false);
            case THROW -> throw unavailable(failure);
        };
    }

    private synchronized Limit limit() {
        return limit;
    }

    private Decision fixed(boolean admitted) {
        return new Decision(
                limit().name(), admitted, Duration.ZERO, null, false, admitted ? 1 : 0, Duration.ZERO, Source.FALLBACK);
    }

    private RedisUnavailableException unavailable(Throwable failure) {
        return new RedisUnavailableException("limit '" + limit().name() + "' could not be decided", failure);
    }

    /** Always the same. */
    private record Fixed(Decision decision) implements Reservation {

        @Override
        public boolean isRefused() {
            return !decision.admitted();
        }

        @Override
        public long waitNanos() {
            return 0;
        }

        @Override
        public boolean await() {
            return decision.admitted();
        }

        @Override
        public CompletableFuture<Boolean> awaitAsync() {
            return CompletableFuture.completedFuture(decision.admitted());
        }

        @Override
        public void cancel() {
            // Nothing was taken.
        }

        @Override
        public void release() {
            // Nothing is counted.
        }
    }

    /**
     * Decided by this process.
     *
     * @param fits the permits could be had of the whole limit: what is too much for this node alone is not refused for
     *     good
     */
    private record Local(Reservation reservation, boolean fits) implements Reservation {

        static Decision told(Decision decision, boolean fits) {
            return new Decision(
                    decision.limit(),
                    decision.admitted(),
                    decision.waitTime(),
                    decision.retryAfter(),
                    decision.never() && !fits,
                    decision.remaining(),
                    decision.reset(),
                    Source.FALLBACK);
        }

        @Override
        public boolean isRefused() {
            return reservation.isRefused();
        }

        @Override
        public long waitNanos() {
            return reservation.waitNanos();
        }

        @Override
        public boolean mayWait() {
            return reservation.mayWait();
        }

        @Override
        public Decision decision() {
            return told(reservation.decision(), fits);
        }

        @Override
        public boolean await() throws InterruptedException {
            return reservation.await();
        }

        @Override
        public CompletableFuture<Boolean> awaitAsync() {
            return reservation.awaitAsync();
        }

        @Override
        public void cancel() {
            reservation.cancel();
        }

        @Override
        public void release() {
            reservation.release();
        }
    }
}
