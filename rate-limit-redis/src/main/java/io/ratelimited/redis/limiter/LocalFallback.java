package io.ratelimited.redis.limiter;

import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.InMemoryRateLimiter;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Decides for a limit that counts over time while Redis does not. The local limiter has this node's share. Buckets begin
 * empty with each outage and windows keep what they hold from one outage to the next, so that an outage gives nobody a
 * burst again. What is admitted here is charged in Redis when it is back. Thread-safe.
 */
final class LocalFallback {

    private final LimiterContext context;
    private final LimiterOptions options;
    private final LocalCharges charges = new LocalCharges();
    private Limit limit;
    private @Nullable InMemoryRateLimiter local;
    /** The outage and the number of nodes for which {@link #local} was made. */
    private int outage;

    private int nodes;

    LocalFallback(LimiterContext context, LimiterOptions options, Limit limit) {
        this.context = context;
        this.options = options;
        this.limit = limit;
        if (options.onFailure() == FailureMode.LOCAL) {
            // Loads classes that the first caller of an outage would have to wait for.
            Reservation unused = InMemoryRateLimiter.startingEmpty(limit, context.ticker(), 1)
                    .reserve("", 1, 0);
            new LocalReservation(unused, true, new LocalCharges(), "", 1).decision();
        }
    }

    private synchronized InMemoryRateLimiter local() {
        InMemoryRateLimiter current = local;
        int recoveries = context.connection().recoveries();
        int sharers = context.nodes().getAsInt();
        boolean window = limit.algorithm().family() == Family.WINDOW;
        if (current == null || (outage != recoveries && !window)) {
            current = InMemoryRateLimiter.startingEmpty(
                    NodeShare.of(limit, sharers), context.ticker(), options.maximumKeys());
        } else if (nodes != sharers) {
            current.update(NodeShare.of(limit, sharers));
        }
        outage = recoveries;
        nodes = sharers;
        local = current;
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
        charges.forget(caller);
        InMemoryRateLimiter current;
        synchronized (this) {
            current = local;
        }
        if (current != null) {
            current.reset(caller);
        }
    }

    /** What has been admitted here since the last time, to be charged in Redis. */
    LocalCharges charges() {
        return charges;
    }

    Reservation reserve(@Nullable String caller, long permits, long maxWait, Throwable failure) {
        return switch (options.onFailure()) {
            case LOCAL -> {
                Reservation decided = local().reserve(caller, permits, maxWait);
                if (!decided.isRefused()) {
                    charges.add(caller, permits);
                }
                yield new LocalReservation(decided, fits(permits), charges, caller, permits);
            }
            case ALLOW -> new FixedReservation(fixed(limit().name(), true));
            case DENY -> new FixedReservation(fixed(limit().name(), false));
            case THROW -> throw unavailable(failure);
        };
    }

    Decision peek(@Nullable String caller, long permits, long maxWait, Throwable failure) {
        return switch (options.onFailure()) {
            case LOCAL -> LocalReservation.described(local().peek(caller, permits, maxWait), fits(permits));
            case ALLOW -> fixed(limit().name(), true);
            case DENY -> fixed(limit().name(), false);
            case THROW -> throw unavailable(failure);
        };
    }

    private boolean fits(long permits) {
        return permits <= limit().capacity();
    }

    private synchronized Limit limit() {
        return limit;
    }

    static Decision fixed(String limit, boolean admitted) {
        return new Decision(
                limit, admitted, Duration.ZERO, null, false, admitted ? 1 : 0, Duration.ZERO, Source.FALLBACK);
    }

    private RuntimeException unavailable(Throwable failure) {
        return context.unavailable().apply("limit '" + limit().name() + "' could not be decided", failure);
    }

    /** Decided by this process. */
    private static final class LocalReservation implements Reservation {

        private final Reservation reservation;
        private final boolean fits;
        private final LocalCharges charges;
        private final @Nullable String caller;
        private final long permits;
        private final AtomicBoolean ended = new AtomicBoolean();

        /** @param fits the whole limit has so many permits: what is too much for this node alone is not refused for good */
        private LocalReservation(
                Reservation reservation, boolean fits, LocalCharges charges, @Nullable String caller, long permits) {
            this.reservation = reservation;
            this.fits = fits;
            this.charges = charges;
            this.caller = caller;
            this.permits = permits;
        }

        private static Decision described(Decision decision, boolean fits) {
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
            return described(reservation.decision(), fits);
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
            if (!reservation.isRefused() && !ended.getAndSet(true)) {
                charges.remove(caller, permits);
            }
            reservation.cancel();
        }

        @Override
        public void release() {
            reservation.release();
        }
    }
}
