package io.ratelimited.redis.limiter;

import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import java.time.Duration;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.ObjLongConsumer;
import java.util.function.Predicate;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Decides for a limit that counts over time by this node's share, while Redis does not: {@link LocalBudgets} says what that
 * may give. What is admitted here is charged in Redis as soon as that answers, for a bounded number of keys: those with the
 * fewest permits are forgotten first. Thread-safe.
 */
final class LocalFallback {

    private static final int MAX_KEYS = 10_000;
    private static final long CHARGE_MILLIS = 500;
    /** Keys that are charged at a time, so that charges do not crowd out the ends of calls. */
    private static final int MAX_CHARGES = 1_000;

    private static final long NEXT_CHARGE_MILLIS = 20;

    private final LimiterContext context;
    private final long maximumKeys;
    private final Supplier<ScriptParameters> parameters;
    private final WaitingRoom waitingRoom;
    private final Function<@Nullable String, String> names;
    private final ObjLongConsumer<String> charges;
    /** By the address of the server that has the keys, since each has outages of its own; windows have one for all servers. */
    private final ConcurrentHashMap<String, LocalBudgets> budgets = new ConcurrentHashMap<>();
    /** What is to be charged, by the key in Redis. */
    private final ConcurrentHashMap<String, Spent> spent = new ConcurrentHashMap<>();

    private final WhileOwing owing;
    private final AtomicBoolean chargeIsDue = new AtomicBoolean();
    /** The callers with the fewest permits are being forgotten. */
    private final AtomicBoolean forgetting = new AtomicBoolean();

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
     * @param parameters those of the limit as it is
     * @param names the keys of callers in Redis
     * @param charges takes permits of a key there
     */
    LocalFallback(
            LimiterContext context,
            long maximumKeys,
            Supplier<ScriptParameters> parameters,
            WaitingRoom waitingRoom,
            Function<@Nullable String, String> names,
            ObjLongConsumer<String> charges) {
        this.context = context;
        this.maximumKeys = maximumKeys;
        this.parameters = parameters;
        this.waitingRoom = waitingRoom;
        this.names = names;
        this.charges = charges;
        // Loads classes that the first caller of an outage would have to wait for.
        reply(
                        new LocalBudgets(context.ticker(), 1)
                                .forCall(() -> this, limit(), 1)
                                .reserve("", 1, 0)
                                .decision(),
                        1)
                .decision();
        this.owing = new WhileOwing(context.connection(), () -> !spent.isEmpty(), () -> chargeSpent(true));
    }

    private InMemoryRateLimiter local(String name) {
        Limit limit = limit();
        // A window needs no time of a server, and keeps what it holds when its slot moves.
        String server = limit.algorithm().family() == Family.WINDOW
                ? ""
                : context.connection().address(name);
        return budgets.computeIfAbsent(server, any -> new LocalBudgets(context.ticker(), maximumKeys))
                .forCall(
                        () -> context.connection().outage(name),
                        limit,
                        context.nodes().sharers());
    }

    private Limit limit() {
        return parameters.get().limit();
    }

    long keys() {
        return budgets.values().stream().mapToLong(LocalBudgets::keys).sum();
    }

    void reset(@Nullable String caller) {
        spent.remove(names.apply(caller));
        budgets.values().forEach(each -> each.reset(caller));
    }

    Reservation reserve(@Nullable String caller, long permits, long maxWait) {
        String name = names.apply(caller);
        Reservation decided = local(name).reserve(caller, permits, maxWait);
        Object batch = decided.isRefused() || permits == 0 ? "" : spend(name, permits, 0);
        return new RedisReservation(
                context.ticker(),
                waitingRoom,
                caller,
                permits,
                reply(decided.decision(), permits),
                (excess, elapsed) -> {
                    decided.settle(permits + excess);
                    if (excess > 0) {
                        charge(name, excess);
                    } else {
                        // What has been charged in Redis already stays charged: it may have lapsed there.
                        spent.computeIfPresent(name, (key, now) -> now.batch == batch ? now.less(-excess) : now);
                    }
                    return reply(decided.decision(), permits);
                });
    }

    Decision peek(@Nullable String caller, long permits, long maxWait) {
        return reply(local(names.apply(caller)).peek(caller, permits, maxWait), permits)
                .decision();
    }

    /** What is too much for this node alone, but not for the whole limit, is not refused for good. */
    private ScriptReply reply(Decision decided, long permits) {
        ScriptParameters current = parameters.get();
        Duration retry = decided.retryAfter();
        long outcome = decided.admitted()
                ? decided.waitTime().toNanos()
                : retry != null
                        ? ~retry.toNanos()
                        : decided.never() && permits > current.limit().capacity()
                                ? ScriptReply.NEVER
                                : ScriptReply.UNKNOWN;
        return new ScriptReply(outcome, decided.remaining(), decided.reset().toNanos(), "", current, Source.FALLBACK);
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
        if (spent.size() > 2 * MAX_KEYS && !forgetting.getAndSet(true)) {
            largestFirst(any -> true)
                    .skip(MAX_KEYS)
                    .forEach(charge -> spent.remove(charge.getKey(), charge.getValue()));
            forgetting.set(false);
        }
        owing.begin();
        // A single late answer is decided here without an outage, after which nothing else would ask for the charge.
        chargeAfter(CHARGE_MILLIS);
        return all.batch;
    }

    private void chargeAfter(long millis) {
        if (!chargeIsDue.getAndSet(true)) {
            context.connection().later(millis, () -> {
                chargeIsDue.set(false);
                chargeSpent(false);
            });
        }
    }

    /**
     * Takes in Redis what was given away here, the largest first. Callers go on meanwhile.
     *
     * @param back Redis answers again, though nobody is asked yet: the charges have to come first
     */
    private void chargeSpent(boolean back) {
        long max = maxCharged();
        List<String> due = largestFirst(name -> back || !context.connection().isDown(name))
                .limit(MAX_CHARGES)
                .map(Map.Entry::getKey)
                .toList();
        for (String name : due) {
            Spent charge = spent.remove(name);
            if (charge != null) {
                charges.accept(name, new Spent(charge.batch, Math.min(max, charge.admitted), charge.excess).permits());
            }
        }
        if (owing.goesOn()) {
            chargeAfter(due.size() == MAX_CHARGES ? NEXT_CHARGE_MILLIS : CHARGE_MILLIS);
        }
    }

    private Stream<Map.Entry<String, Spent>> largestFirst(Predicate<String> wanted) {
        return spent.entrySet().stream()
                .filter(charge -> wanted.test(charge.getKey()))
                .map(Map.Entry::copyOf)
                .sorted(Map.Entry.comparingByValue(
                        Comparator.comparingLong(Spent::permits).reversed()));
    }

    /** This node's share of what the limit holds. What was given away beyond that has been refilled meanwhile. */
    private long maxCharged() {
        Limit shared = limit();
        long held = Math.min(
                shared.capacity(), Math.max(shared.burst(), shared.rate().permits()));
        return Math.max(1, held / Math.max(1, context.nodes().sharers()));
    }
}
