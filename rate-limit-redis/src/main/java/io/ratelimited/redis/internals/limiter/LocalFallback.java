package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.internals.memory.CellRateLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.several.Claim;
import io.ratelimited.redis.internals.limiter.LocalBudgets.Share;
import io.ratelimited.redis.internals.limiter.Spent.Bucket;
import io.ratelimited.redis.internals.script.ScriptBlocks;
import java.time.Duration;
import java.util.Objects;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Decides for a limit that counts over time by this node's share, while Redis does not: {@link LocalBudgets} describes that
 * share. The connection owes Redis the charge for calls that are admitted here. Thread-safe.
 */
final class LocalFallback {

    /** The call that the thread settles as evidence: of a violation, the evidence knows only the key. */
    private static final ThreadLocal<@Nullable Counted> SETTLING = new ThreadLocal<>();

    private static final Duration MOMENT = Duration.ofNanos(1_000);

    private final LimiterContext context;
    private final long maximumKeys;
    private final WaitingRoom waitingRoom;
    private final InstanceBlocks blocks;
    /**
     * Budgets by the address of the server that has the keys, since each has its own outages; windows have one for all
     * servers.
     */
    private final ConcurrentHashMap<String, LocalBudgets> budgets = new ConcurrentHashMap<>();

    /** For violations of limits with blocks; null until a call needs it. Guarded by this. */
    private @Nullable InMemoryRateLimiter evidence;
    /** The limit that {@link #evidence} has. Guarded by this. */
    private @Nullable ScriptParameters evidenceOf;

    LocalFallback(
            LimiterContext context,
            ScriptParameters parameters,
            WaitingRoom waitingRoom,
            InstanceBlocks blocks,
            long maximumKeys) {
        this.blocks = blocks;
        this.context = context;
        this.maximumKeys = maximumKeys;
        this.waitingRoom = waitingRoom;
        // Loads classes that the first caller of an outage would have to wait for.
        reply(
                        parameters,
                        new LocalBudgets(context.ticker(), 1)
                                .forCall(() -> this, parameters.limit(), 1)
                                .limiter()
                                .reserve("", 1, 0)
                                .decision(),
                        1)
                .decision();
    }

    private Share local(ScriptParameters current, String name) {
        Limit limit = current.whole().limit();
        int sharers = context.nodes().sharers();
        // A window needs no time of a server, and keeps its permits when its slot moves.
        String server = limit.algorithm().family() == Family.WINDOW
                ? ""
                : context.connection().address(name);
        Share all = budgets(server).forCall(() -> context.connection().outage(name), limit, sharers);
        return new Share(current.callers(all.limiter(), sharers), all.begunAt());
    }

    private LocalBudgets budgets(String server) {
        LocalBudgets known = budgets.get(server);
        if (known != null) {
            return known;
        }
        // Each primary that starts may have another address.
        budgets.keySet()
                .removeIf(address -> !address.isEmpty() && !context.connection().isPrimary(address));
        return budgets.computeIfAbsent(server, any -> new LocalBudgets(context.ticker(), maximumKeys));
    }

    long keys() {
        return budgets.values().stream().mapToLong(LocalBudgets::keys).sum();
    }

    void reset(@Nullable String text, String fullName) {
        context.connection().changeCharge(fullName, owed -> null);
        budgets.values().forEach(each -> each.reset(text));
        synchronized (this) {
            if (evidence != null) {
                evidence.reset(key(text));
            }
        }
    }

    /** @param latest the numbers of the key when Redis is charged, be it for what the call has cost beyond its permits */
    Reservation reserve(
            ScriptParameters current,
            @Nullable String text,
            String name,
            Wanted wanted,
            Supplier<ScriptParameters> latest) {
        long permits = wanted.permits();
        Share own = local(current, name);
        Reservation decided = own.limiter().reserve(text, permits, wanted.maxWait());
        ScriptReply reply = reply(current, decided.decision(), permits);
        Counted counted = new Counted(current, text, wanted);
        boolean undecided = wanted.undecided() && !decided.isRefused();
        if (!undecided && counted.violates(decided.isRefused())) {
            reply = reply.withBlock(counted.offend());
        }
        String fullName = current.fullName(name);
        Object batch = decided.isRefused() || permits == 0
                ? ""
                : owe(fullName, spent(current, latest, 1, permits, 0, 0, Bucket.of(own, text, 0)));
        if (decided.isRefused()) {
            oweLacked(current, latest, fullName, permits, decided.decision(), Bucket.of(own, text, 0));
        }
        RedisReservation.Charge charge = end -> {
            boolean here = end.excess() < 0 || context.connection().isDown(name);
            if (here && end.excess() != 0) {
                decided.settle(permits + end.excess());
            }
            if (end.excess() > 0) {
                charge(latest, name, end.excess(), here ? Bucket.of(own, text, end.excess()) : null);
            } else if (end.excess() < 0) {
                // Permits that have been charged in Redis already stay charged: they may have lapsed there.
                context.connection()
                        .changeCharge(
                                fullName,
                                owed -> owed instanceof Spent spent && spent.batch() == batch
                                        ? spent.less(-end.excess())
                                        : owed);
            }
            counted.settle(end);
            return () -> reply(current, decided.decision(), permits);
        };
        Runnable keep = () -> {
            if (counted.violates(false)) {
                counted.offend();
            }
        };
        return new RedisReservation(
                context.ticker(), waitingRoom, text, permits, reply, charge, undecided ? keep : null);
    }

    /** A call of a key as evidence: counted once it is decided. */
    private final class Counted {

        private final ScriptParameters current;
        private final @Nullable String text;
        private final Wanted wanted;
        private volatile @Nullable Reservation whole;

        Counted(ScriptParameters current, @Nullable String text, Wanted wanted) {
            this.current = current;
            this.text = text;
            this.wanted = wanted;
        }

        /** Counts the call, and returns whether the whole limit rejects it. */
        boolean violates(boolean rejected) {
            Reservation counted = text == null ? null : counted(current, text, wanted, rejected);
            whole = counted;
            return counted != null && counted.isRefused() && !counted.decision().never();
        }

        void settle(RedisReservation.Settlement end) {
            Reservation counted = whole;
            if (counted != null && end.excess() == 0 && !end.mayBlock()) {
                // Without a settlement as yet: what the call has cost may become known.
                counted.release();
            } else if (counted != null) {
                SETTLING.set(this);
                try {
                    counted.settle(wanted.permits() + end.excess(), end.mayBlock() && !wanted.exempt());
                } finally {
                    SETTLING.remove();
                }
            }
        }

        private ScriptBlocks.@Nullable State offend() {
            return blocks.offend(current, Objects.requireNonNull(text));
        }
    }

    /** As {@code RateLimiter.refused}, for a call that this node's share has rejected. */
    Decision refused(
            ScriptParameters current,
            @Nullable String text,
            String name,
            Wanted wanted,
            Supplier<ScriptParameters> latest,
            Decision refusal) {
        Share share = local(current, name);
        CellRateLimiter own = share.limiter();
        if (!refusal.blocked()) {
            oweLacked(current, latest, current.fullName(name), wanted.permits(), refusal, Bucket.of(share, text, 0));
        }
        own.refused(Claim.of(own, text, wanted.permits(), wanted.maxWait()), refusal);
        if (text == null
                || refusal.blocked()
                || refusal.retryAfter() == null
                || !InstanceBlocks.byRefusal(current, wanted.exempt())
                || !new Counted(current, text, wanted).violates(true)) {
            return refusal;
        }
        ScriptBlocks.State block = blocks.offend(current, text);
        return block == null ? refusal : refusal.blockedFor(Duration.ofNanos(block.leftNanos()));
    }

    /**
     * Counts a call of a key against the whole limit: what is over this node's share alone is within the limit. It is a violation
     * if that rejects it however long its policy lets it wait; where calls are charged, as one in memory is.
     *
     * @param rejected by this node's share: if it could have waited, it takes nothing
     * @return to be settled like the call; null if it does not count
     */
    private @Nullable Reservation counted(ScriptParameters current, String text, Wanted wanted, boolean rejected) {
        boolean byRefusal = wanted.permits() > 0 && InstanceBlocks.byRefusal(current, wanted.exempt());
        if (!byRefusal && (rejected || !InstanceBlocks.byCharge(current, text))) {
            return null;
        }
        RateLimiter whole = evidence(current);
        Reservation counted = whole.reserve(Claim.of(
                whole,
                key(text),
                wanted.permits(),
                byRefusal ? Math.max(wanted.maxWait(), wanted.patience()) : Long.MAX_VALUE,
                RateLimiter.NO_RANK,
                wanted.patience(),
                wanted.exempt()));
        if (rejected && counted.waitNanos() > 0) {
            counted.cancel();
        }
        return counted;
    }

    private static @Nullable Object key(@Nullable String text) {
        return text == null ? null : CanonicalKey.ofText(text);
    }

    /**
     * The whole limit, which counts only what this node has decided by itself. Where calls are charged it blocks a key for a
     * microsecond, so that this node hears of the violation, and the block is its own.
     */
    private RateLimiter evidence(ScriptParameters current) {
        InMemoryRateLimiter all = evidenceOfAll(current.whole());
        Limit own = evidenceLimit(current);
        return current.whole() == current ? all : all.ofCallers(any -> own);
    }

    private static Limit evidenceLimit(ScriptParameters current) {
        // Want of a seat is no violation.
        Limit.Builder builder = InstanceShare.of(current.limit(), 1).toBuilder()
                .maxWaiting(Math.max(1, current.limit().maxWaiting()));
        ScriptBlocks own = current.blocks();
        return own == null || own.byRefusal()
                ? builder.charged(false).build()
                : builder.block(MOMENT).blockMax(MOMENT).build();
    }

    private synchronized InMemoryRateLimiter evidenceOfAll(ScriptParameters current) {
        InMemoryRateLimiter known = evidence;
        Limit whole = evidenceLimit(current);
        if (known == null || known.limit().algorithm() != whole.algorithm()) {
            known = new InMemoryRateLimiter(whole, context.ticker(), maximumKeys);
            known.onBlock(begun -> Objects.requireNonNull(SETTLING.get()).offend());
            evidence = known;
        } else if (evidenceOf != current) {
            known.update(whole);
        }
        evidenceOf = current;
        return known;
    }

    Decision peek(ScriptParameters current, @Nullable String text, String name, Wanted wanted) {
        long permits = wanted.permits();
        return reply(current, local(current, name).limiter().peek(text, permits, wanted.maxWait()), permits)
                .decision();
    }

    /**
     * Makes the reply. A call that is too large for this node alone, but not for the whole limit, is not refused for good.
     */
    private static ScriptReply reply(ScriptParameters current, Decision decided, long permits) {
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

    /** Charges in Redis the permits that a call has used beyond its reservation, now or as soon as Redis answers. */
    void charge(Supplier<ScriptParameters> latest, String name, long excess) {
        charge(latest, name, excess, null);
    }

    private void charge(Supplier<ScriptParameters> latest, String name, long excess, @Nullable Bucket bucket) {
        ScriptParameters current = latest.get();
        Spent spent = spent(current, latest, 0, 0, excess, 0, bucket);
        if (context.connection().isDown(name)) {
            owe(current.fullName(name), spent);
        } else if (!current.isConstant()) {
            context.connection().charge(current.fullName(name), spent);
        }
    }

    /** Has Redis asked for the permits that this node's share lacked for a call, and has therefore rejected it. */
    private void oweLacked(
            ScriptParameters current,
            Supplier<ScriptParameters> latest,
            String fullName,
            long permits,
            Decision refusal,
            @Nullable Bucket bucket) {
        long lacked = permits - refusal.remaining();
        if (bucket != null && lacked > 0 && refusal.retryAfter() != null) {
            owe(fullName, spent(current, latest, 0, 0, 0, lacked, bucket));
        }
    }

    private Spent spent(
            ScriptParameters current,
            Supplier<ScriptParameters> latest,
            int calls,
            long admitted,
            long excess,
            long lacked,
            @Nullable Bucket bucket) {
        int sharers = context.nodes().sharers();
        return new Spent(current, latest, sharers, new Object(), calls, admitted, excess, lacked, bucket);
    }

    /** Returns the batch with which the permits will be charged. */
    private Object owe(String fullName, Spent spent) {
        return spent.parameters().isConstant()
                ? spent.batch()
                : ((Spent) context.connection().owe(fullName, spent)).batch();
    }
}
