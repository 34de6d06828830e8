package io.ratelimited.redis.limiter;

import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.InMemoryRateLimiter;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.ObjLongConsumer;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Decides for a limit that counts over time by this node's share, while Redis does not. Buckets begin empty with each
 * outage and windows keep what they hold from one outage to the next, so that an outage gives nobody a burst again. What
 * is admitted here is charged in Redis as soon as that answers, for a bounded number of keys: those with the fewest permits
 * are forgotten first. Thread-safe.
 */
final class LocalFallback {

    private static final int MOST_KEYS = 10_000;
    private static final long CHARGE_MILLIS = 500;
    /** Keys that are charged at a time, so that charges do not crowd out the ends of calls. */
    private static final int MOST_CHARGES = 1_000;

    private static final long NEXT_CHARGE_MILLIS = 20;

    private final LimiterContext context;
    private final long maximumKeys;
    private final Function<@Nullable String, String> names;
    private final ObjLongConsumer<String> charges;
    /** Permits that were given away here, by the key in Redis. */
    private final ConcurrentHashMap<String, Long> spent = new ConcurrentHashMap<>();

    private final AtomicBoolean chargeIsDue = new AtomicBoolean();
    /** The callers with the fewest permits are being forgotten. */
    private final AtomicBoolean forgetting = new AtomicBoolean();

    private Limit limit;
    private @Nullable InMemoryRateLimiter local;
    /** The outage and the number of nodes for which {@link #local} was made. */
    private int outage;

    private int nodes;

    /**
     * @param names the keys of callers in Redis
     * @param charges takes permits of a key there
     */
    LocalFallback(
            LimiterContext context,
            Limit limit,
            long maximumKeys,
            Function<@Nullable String, String> names,
            ObjLongConsumer<String> charges) {
        this.context = context;
        this.limit = limit;
        this.maximumKeys = maximumKeys;
        this.names = names;
        this.charges = charges;
        // Loads classes that the first caller of an outage would have to wait for.
        Reservation unused =
                InMemoryRateLimiter.startingEmpty(limit, context.ticker(), 1).reserve("", 1, 0);
        new LocalReservation(unused, "", 1).decision();
        context.connection().onRecovery(() -> charge(true));
    }

    private synchronized InMemoryRateLimiter local() {
        InMemoryRateLimiter current = local;
        int recoveries = context.connection().recoveries();
        int sharers = context.nodes().getAsInt();
        boolean window = limit.algorithm().family() == Family.WINDOW;
        if (current == null || (outage != recoveries && !window)) {
            current = InMemoryRateLimiter.startingEmpty(NodeShare.of(limit, sharers), context.ticker(), maximumKeys);
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

    private synchronized Limit limit() {
        return limit;
    }

    private synchronized @Nullable InMemoryRateLimiter current() {
        return local;
    }

    long keys() {
        InMemoryRateLimiter current = current();
        return current == null ? 0 : current.keys();
    }

    int waiting() {
        InMemoryRateLimiter current = current();
        return current == null ? 0 : current.waiting();
    }

    void reset(@Nullable String caller) {
        spent.remove(names.apply(caller));
        InMemoryRateLimiter current = current();
        if (current != null) {
            current.reset(caller);
        }
    }

    Reservation reserve(@Nullable String caller, long permits, long maxWait) {
        Reservation decided = local().reserve(caller, permits, maxWait);
        String name = names.apply(caller);
        if (!decided.isRefused()) {
            spend(name, permits);
        }
        return new LocalReservation(decided, name, permits);
    }

    Decision peek(@Nullable String caller, long permits, long maxWait) {
        return described(local().peek(caller, permits, maxWait), permits);
    }

    /** What is too much for this node alone, but not for the whole limit, is not refused for good. */
    private Decision described(Decision decision, long permits) {
        return new Decision(
                decision.limit(),
                decision.admitted(),
                decision.waitTime(),
                decision.retryAfter(),
                decision.never() && permits > limit().capacity(),
                decision.remaining(),
                decision.reset(),
                Source.FALLBACK);
    }

    private void spend(String name, long permits) {
        spent.merge(name, permits, (before, more) -> Math.max(before, before + more));
        if (spent.size() > 2 * MOST_KEYS && !forgetting.getAndSet(true)) {
            dearest(any -> true).skip(MOST_KEYS).forEach(charge -> spent.remove(charge.getKey(), charge.getValue()));
            forgetting.set(false);
        }
        // A single late answer is decided here without an outage, after which nothing else would ask for the charge.
        chargeAfter(CHARGE_MILLIS);
    }

    private void chargeAfter(long millis) {
        if (!chargeIsDue.getAndSet(true)) {
            context.connection().later(millis, () -> {
                chargeIsDue.set(false);
                charge(false);
            });
        }
    }

    /**
     * Takes in Redis what was given away here, the dearest first. Callers go on meanwhile.
     *
     * @param back Redis answers again, though nobody is asked yet: the charges have to come first
     */
    private void charge(boolean back) {
        long most = mostCharged();
        List<String> due = dearest(name -> back || !context.connection().isDown(name))
                .limit(MOST_CHARGES)
                .map(Map.Entry::getKey)
                .toList();
        for (String name : due) {
            Long permits = spent.remove(name);
            if (permits != null) {
                charges.accept(name, Math.min(most, permits));
            }
        }
        if (!spent.isEmpty()) {
            chargeAfter(due.size() == MOST_CHARGES ? NEXT_CHARGE_MILLIS : CHARGE_MILLIS);
        }
    }

    private Stream<Map.Entry<String, Long>> dearest(Predicate<String> wanted) {
        return spent.entrySet().stream()
                .filter(charge -> wanted.test(charge.getKey()))
                .map(Map.Entry::copyOf)
                .sorted(Map.Entry.<String, Long>comparingByValue().reversed());
    }

    /** This node's share of what the limit holds. What was given away beyond that has been refilled meanwhile. */
    private long mostCharged() {
        Limit whole = limit();
        long held =
                Math.min(whole.capacity(), Math.max(whole.burst(), whole.rate().permits()));
        return Math.max(1, held / Math.max(1, context.nodes().getAsInt()));
    }

    /** Decided by this process. */
    private final class LocalReservation implements Reservation {

        private final Reservation reservation;
        private final String name;
        private final long permits;
        private final AtomicBoolean ended = new AtomicBoolean();

        private LocalReservation(Reservation reservation, String name, long permits) {
            this.reservation = reservation;
            this.name = name;
            this.permits = permits;
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
            return described(reservation.decision(), permits);
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
        public void settle(long permits) {
            throw new UnsupportedOperationException("built next");
        }

        @Override
        public void cancel() {
            if (!reservation.isRefused() && !ended.getAndSet(true)) {
                spent.computeIfPresent(name, (key, before) -> before > permits ? before - permits : null);
            }
            reservation.cancel();
        }

        @Override
        public void release() {
            reservation.release();
        }
    }
}
