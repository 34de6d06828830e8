package io.ratelimited.redis.limiter;

import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.InMemoryRateLimiter;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Permits;
import io.ratelimited.core.Reservation;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
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
 * is admitted here, and what calls have used beyond what they had reserved, is charged in Redis as soon as that answers, for a
 * bounded number of keys: those with the fewest permits are forgotten first. Thread-safe.
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
    /** What is to be charged, by the key in Redis. */
    private final ConcurrentHashMap<String, Spent> spent = new ConcurrentHashMap<>();

    private final AtomicBoolean chargeIsDue = new AtomicBoolean();
    /** The callers with the fewest permits are being forgotten. */
    private final AtomicBoolean forgetting = new AtomicBoolean();

    private Limit limit;
    private @Nullable InMemoryRateLimiter local;
    /** The outage and the number of nodes for which {@link #local} was made. */
    private int outage;

    private int nodes;

    /**
     * Permits of a key.
     *
     * @param batch what has the same one is charged by one command
     * @param admitted given away here
     * @param excess used by calls beyond what they had reserved
     */
    private record Spent(Object batch, long admitted, long excess) {

        private Spent plus(Spent more) {
            return new Spent(batch, sum(admitted, more.admitted), sum(excess, more.excess));
        }

        private @Nullable Spent less(long unused) {
            return admitted <= unused && excess == 0 ? null : new Spent(batch, Math.max(0, admitted - unused), excess);
        }

        private long permits() {
            return sum(admitted, excess);
        }

        private static long sum(long a, long b) {
            return a + b < 0 ? Long.MAX_VALUE : a + b;
        }
    }

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
        new LocalReservation(unused, "", 1, new Object()).decision();
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
        Object batch = decided.isRefused() ? "" : spend(name, permits, 0);
        return new LocalReservation(decided, name, permits, batch);
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

    /** Charges in Redis what a call has used beyond what it had reserved, now or as soon as Redis answers. */
    void charge(String name, long excess) {
        if (context.connection().isDown(name)) {
            spend(name, 0, excess);
        } else {
            charges.accept(name, excess);
        }
    }

    /** Returns the batch with which the permits will be charged. */
    private Object spend(String name, long admitted, long excess) {
        Spent all = Objects.requireNonNull(spent.merge(name, new Spent(new Object(), admitted, excess), Spent::plus));
        if (spent.size() > 2 * MOST_KEYS && !forgetting.getAndSet(true)) {
            dearest(any -> true).skip(MOST_KEYS).forEach(charge -> spent.remove(charge.getKey(), charge.getValue()));
            forgetting.set(false);
        }
        // A single late answer is decided here without an outage, after which nothing else would ask for the charge.
        chargeAfter(CHARGE_MILLIS);
        return all.batch;
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
            Spent charge = spent.remove(name);
            if (charge != null) {
                charges.accept(name, new Spent(charge.batch, Math.min(most, charge.admitted), charge.excess).permits());
            }
        }
        if (!spent.isEmpty()) {
            chargeAfter(due.size() == MOST_CHARGES ? NEXT_CHARGE_MILLIS : CHARGE_MILLIS);
        }
    }

    private Stream<Map.Entry<String, Spent>> dearest(Predicate<String> wanted) {
        return spent.entrySet().stream()
                .filter(charge -> wanted.test(charge.getKey()))
                .map(Map.Entry::copyOf)
                .sorted(Map.Entry.comparingByValue(
                        Comparator.comparingLong(Spent::permits).reversed()));
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
        private final Object batch;
        private final AtomicBoolean ended = new AtomicBoolean();

        private LocalReservation(Reservation reservation, String name, long permits, Object batch) {
            this.reservation = reservation;
            this.name = name;
            this.permits = permits;
            this.batch = batch;
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
        public void settle(long cost) {
            long excess = Permits.requireCharge(cost) - permits;
            if (reservation.isRefused() || ended.getAndSet(true)) {
                return;
            }
            reservation.settle(cost);
            if (excess > 0) {
                charge(name, excess);
            } else {
                giveBack(-excess);
            }
        }

        /** What has been charged in Redis already stays charged: it may have lapsed there. */
        private void giveBack(long unused) {
            spent.computeIfPresent(name, (key, now) -> now.batch == batch ? now.less(unused) : now);
        }

        @Override
        public void cancel() {
            if (!reservation.isRefused() && !ended.getAndSet(true)) {
                giveBack(permits);
            }
            reservation.cancel();
        }

        @Override
        public void release() {
            reservation.release();
        }
    }
}
