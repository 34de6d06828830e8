package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.internals.Permits;
import io.ratelimited.redis.internals.connection.Replies;
import io.ratelimited.redis.internals.script.ScriptFamily;
import java.time.Duration;
import java.util.Iterator;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Counts calls in flight in Redis, for every node that uses the same limit there. While Redis does not answer, each node
 * admits its share by itself, beginning with the calls that it has in flight; all of them are registered when Redis is
 * back.
 */
public final class RedisConcurrencyLimiter extends RemoteLimiter {

    /** Keys whose peeks are remembered. */
    private static final long MAX_PEEKED = 100_000;
    /** Calls that are registered at a time. */
    private static final int MAX_REGISTRATIONS = 1_000;

    private static final long NEXT_REGISTRATIONS_MILLIS = 20;

    private final ConcurrentHashMap<String, ConcurrencyQueue> queues = new ConcurrentHashMap<>();
    /** Calls in flight on this node by their ids, which gives tests one order. */
    private final ConcurrentHashMap<String, InFlightCall> live = new ConcurrentHashMap<>();
    /** Permits in flight on this node, for each key. */
    private final ConcurrentHashMap<String, Long> used = new ConcurrentHashMap<>();

    /** Before this time of the ticker no lease of a call in flight ends. */
    private final AtomicLong leasesEndAt;

    /** The connection knows this limiter only while calls are in flight: one that nobody uses any more is garbage. */
    private final AtomicBoolean known = new AtomicBoolean();

    /** One object, by which the connection forgets it. */
    @SuppressWarnings("UnnecessaryLambda")
    private final Runnable registerAll = () -> each(live.values().iterator(), InFlightCall::register);

    /**
     * @param tier the tier that has these budgets; empty for the limit itself
     * @param fallback as of {@link RemoteLimiter}
     */
    public RedisConcurrencyLimiter(
            LimiterContext context, Limit limit, String tier, Function<Throwable, @Nullable Boolean> fallback) {
        super(context, limit, tier, fallback, MAX_PEEKED);
        this.leasesEndAt = new AtomicLong(nanos());
    }

    /** Keeps calls in flight from lapsing in Redis, while there are some. */
    private void renewAfterAWhile() {
        connection().later(ScriptFamily.Concurrency.NODE_LEASE.toMillis() / 3, () -> {
            endLeases();
            each(live.values().iterator(), InFlightCall::renew);
            if (!live.isEmpty()) {
                renewAfterAWhile();
                return;
            }
            connection().forget(registerAll);
            known.set(false);
            // One may have begun meanwhile, and have taken the limiter for known.
            if (!live.isEmpty()) {
                makeKnown();
            }
        });
    }

    private void makeKnown() {
        if (!known.get() && !known.getAndSet(true)) {
            connection().onRecovery(registerAll);
            renewAfterAWhile();
        }
    }

    /**
     * Releases the calls whose lease has ended, as in memory: otherwise they would take this node's share of the limit in every
     * outage to come. Looks at the calls only when the first of their leases can have ended.
     */
    private void endLeases() {
        Duration lease = limit().lease();
        long now = nanos();
        long first = leasesEndAt.get();
        // A call that is admitted meanwhile has its whole lease.
        if (lease == null || now - first < 0 || !leasesEndAt.compareAndSet(first, now + lease.toNanos())) {
            return;
        }
        for (InFlightCall call : live.values()) {
            long left = call.leaseLeft();
            if (left <= 0) {
                call.release();
            } else if (left < lease.toNanos()) {
                leasesEndAt.accumulateAndGet(now + left, (one, other) -> one - other < 0 ? one : other);
            }
        }
    }

    /** A bounded number at a time: of too many that are kept, always the same ones would be dropped. */
    private void each(Iterator<InFlightCall> calls, Consumer<InFlightCall> task) {
        for (int i = 0; i < MAX_REGISTRATIONS && calls.hasNext(); i++) {
            task.accept(calls.next());
        }
        if (calls.hasNext()) {
            connection().later(NEXT_REGISTRATIONS_MILLIS, () -> each(calls, task));
        }
    }

    @Override
    public boolean tryAcquire(@Nullable Object key, long permits) {
        throw Permits.nothingToRelease(limit().name());
    }

    @Override
    CompletableFuture<Reservation> reserveInRedis(@Nullable String text, Wanted wanted) {
        return wanted.permits() == 0
                ? lookForNothing("ask", text, wanted).thenApply(reply -> holdingNothing(text, reply))
                : new InFlightCall(this, text, wanted.permits(), wanted.maxWait()).begin();
    }

    private Reservation holdingNothing(@Nullable String text, ScriptReply reply) {
        return new RedisReservation(
                context().ticker(),
                waitingRoom(),
                text,
                0,
                reply,
                end -> {
                    if (end.excess() == 0 && end.reserved() == 0 && !end.mayBlock()) {
                        return () -> reply;
                    }
                    throw Permits.nothingToCharge(limit().name());
                },
                null);
    }

    @Override
    Reservation reserveLocally(@Nullable String text, Wanted wanted) {
        if (wanted.permits() == 0) {
            return holdingNothing(text, local(0, name(text)));
        }
        InFlightCall call = new InFlightCall(this, text, wanted.permits(), wanted.maxWait());
        call.beginLocally();
        return call;
    }

    @Override
    Decision peekLocally(@Nullable String text, Wanted wanted) {
        endLeases();
        String name = name(text);
        long permits = wanted.permits();
        ScriptReply refusal = tooHeavy(permits, wanted.maxWait(), name);
        if (refusal != null) {
            return refusal.decision();
        }
        boolean fits = permits == 0 || (!hasQueue(name) && used.getOrDefault(name, 0L) + permits <= share());
        return local(fits || wanted.maxWait() > 0 ? 0 : ScriptReply.UNKNOWN, name)
                .decision();
    }

    /** Calls in flight still count: there is nothing to forget. */
    @Override
    public void reset(@Nullable Object key) {}

    @Override
    public synchronized void update(Limit limit) {
        boolean sameLease = Objects.equals(limit.lease(), limit().lease());
        super.update(limit);
        if (!sameLease) {
            leasesEndAt.set(nanos());
            registerAll.run();
        }
        queues.values().forEach(ConcurrencyQueue::serve);
    }

    /** Keys with calls in flight on this node; the cells are in Redis. */
    @Override
    public long keys() {
        return used.mappingCount();
    }

    /** A decision of this node alone. */
    ScriptReply local(long outcome, String name) {
        return ScriptReply.local(outcome, Math.max(0, share() - used.getOrDefault(name, 0L)), parameters());
    }

    /**
     * The refusal of a call with more permits than this node may have while Redis is away; null for another call, and for one that
     * can wait where only a single reply is late: Redis decides about it in a moment.
     */
    @Nullable
    ScriptReply tooHeavy(long permits, long maxWait, String name) {
        if (permits <= share()) {
            return null;
        }
        if (parameters().isNever(permits)) {
            return local(ScriptReply.NEVER, name);
        }
        return maxWait > 0 && !connection().isOut(name) ? null : local(ScriptReply.UNKNOWN, name);
    }

    /** The permits that this node may have in flight while Redis is away. */
    long share() {
        return InstanceShare.of(limit(), context().nodes().sharers()).maxConcurrent();
    }

    /** Decides the call at the head of a queue; false when it goes on waiting. */
    boolean decideWithoutRedis(InFlightCall head) {
        ScriptReply fixed;
        try {
            fixed = fixed(Replies.notSent("not called, because it has just failed"));
        } catch (RuntimeException ex) {
            head.failed(ex);
            return true;
        }
        if (fixed == null) {
            return head.decideLocally();
        }
        head.decided(fixed);
        return true;
    }

    /**
     * Counts a call on this node, unless more permits than a maximum would be in flight here.
     *
     * @return whether it is counted
     */
    boolean count(InFlightCall call, long max) {
        AtomicBoolean fits = new AtomicBoolean();
        used.compute(call.name, (key, before) -> {
            long next = (before == null ? 0 : before) + call.permits;
            fits.set(next <= max);
            return fits.get() ? Long.valueOf(next) : before;
        });
        if (fits.get()) {
            live.put(call.id(), call);
            makeKnown();
            states().changed(call.name, nanos());
        }
        return fits.get();
    }

    /** {@link #count} for a call that this node decides by its share. */
    boolean countInShare(InFlightCall call) {
        endLeases();
        return count(call, share());
    }

    /** Notes that a call has ended, for which others may wait. */
    void ended(InFlightCall call) {
        if (live.remove(call.id(), call)) {
            used.computeIfPresent(call.name, (key, before) -> before > call.permits ? before - call.permits : null);
            states().changed(call.name, nanos());
        }
    }

    @Override
    JointPlace jointPlace(@Nullable String text, long permits) {
        return new InFlightCall(this, text, permits, 0);
    }

    @Override
    boolean hasQueue(String name) {
        ConcurrencyQueue queue = queues.get(name);
        return queue != null && queue.isOccupied();
    }

    /** Keys for which calls wait. */
    int queues() {
        return queues.size();
    }

    /** Lets a call wait for others of its key to end. */
    void queue(InFlightCall call) {
        ConcurrencyQueue joined = queues.compute(call.name, (key, present) -> {
            ConcurrencyQueue queue = present == null ? new ConcurrencyQueue(this, key) : present;
            queue.add(call);
            return queue;
        });
        joined.serve();
    }

    /** Ends the wait of a call. */
    void unqueue(InFlightCall call) {
        ConcurrencyQueue queue = queues.get(call.name);
        if (queue != null) {
            queue.remove(call);
            left(call.name);
        }
    }

    /** Removes a queue in which nobody waits. */
    void left(String name) {
        queues.computeIfPresent(name, (key, queue) -> queue.isIdle() ? null : queue);
    }

    /** Lets the next call of a key ask. */
    void serve(String name) {
        ConcurrencyQueue queue = queues.get(name);
        if (queue != null) {
            queue.serve();
        }
    }
}
