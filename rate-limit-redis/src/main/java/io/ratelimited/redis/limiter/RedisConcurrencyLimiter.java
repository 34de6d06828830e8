package io.ratelimited.redis.limiter;

import io.ratelimited.core.Claim;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.redis.connection.GuardedConnection;
import io.ratelimited.redis.connection.KeyNames;
import io.ratelimited.redis.connection.Replies;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;

/**
 * Counts calls in flight in Redis, for every node that uses the same limit there. While Redis does not answer, each node
 * admits its share by itself, beginning with the calls that it has in flight; all of them are registered when Redis is
 * back. Thread-safe.
 */
public final class RedisConcurrencyLimiter implements RemoteLimiter {

    private final LimiterContext context;
    private final LimiterOptions options;
    private final LimitScripts scripts;
    private final WaitingRoom waitingRoom;
    private final ConcurrentHashMap<String, ConcurrencyQueue> queues = new ConcurrentHashMap<>();
    /** Calls in flight on this node by their ids, so that tests find them in one order. */
    private final ConcurrentHashMap<String, InFlightCall> live = new ConcurrentHashMap<>();
    /** Permits in flight on this node, for each key. */
    private final ConcurrentHashMap<String, Long> used = new ConcurrentHashMap<>();

    public RedisConcurrencyLimiter(LimiterContext context, Limit limit, LimiterOptions options) {
        this.context = context;
        this.options = options;
        this.scripts = new LimitScripts(context, limit);
        this.waitingRoom = new WaitingRoom(context.ticker(), () -> limit().maxWaiting());
        context.connection().onRecovery(() -> live.values().forEach(InFlightCall::register));
        context.connection()
                .every(LimitTerms.NODE_LEASE.toMillis() / 3, () -> live.values().forEach(InFlightCall::renew));
    }

    @Override
    public Limit limit() {
        return terms().limit();
    }

    @Override
    public boolean tryAcquire(@Nullable Object key, long permits) {
        throw new UnsupportedOperationException(
                "a call under CONCURRENCY has to be released when it ends: use reserve, or execute, instead of tryAcquire");
    }

    @Override
    public Reservation reserve(@Nullable Object key, long permits, long maxWaitNanos) {
        RedisRateLimiter.requirePermits(permits);
        InFlightCall call = call(key, permits, maxWaitNanos);
        try {
            return Replies.await(call.begin(), context.connection().timeoutNanos());
        } catch (ExecutionException ex) {
            call.abandon();
            return reserveWithoutRedis(key, permits, maxWaitNanos, Replies.cause(ex));
        }
    }

    @Override
    public CompletionStage<Reservation> reserveAsync(@Nullable Object key, long permits, long maxWaitNanos) {
        RedisRateLimiter.requirePermits(permits);
        return RedisRateLimiter.delivered(reserveInRedis(key, permits, maxWaitNanos)
                .handleAsync(
                        (reservation, failure) -> reservation != null
                                ? reservation
                                : reserveWithoutRedis(key, permits, maxWaitNanos, Replies.cause(failure)),
                        context.callers()));
    }

    private InFlightCall call(@Nullable Object key, long permits, long maxWaitNanos) {
        return new InFlightCall(this, name(KeyNames.text(key)), permits, waitingRoom.longestWait(maxWaitNanos));
    }

    @Override
    public CompletableFuture<Reservation> reserveInRedis(@Nullable Object key, long permits, long maxWaitNanos) {
        InFlightCall call = call(key, permits, maxWaitNanos);
        return call.begin().handle((begun, failure) -> {
            if (failure != null) {
                call.abandon();
                throw new CompletionException(Replies.cause(failure));
            }
            return begun;
        });
    }

    @Override
    public Reservation reserveWithoutRedis(@Nullable Object key, long permits, long maxWaitNanos, Throwable failure) {
        return switch (options.onFailure()) {
            case LOCAL -> {
                InFlightCall call = call(key, permits, maxWaitNanos);
                call.beginWithoutRedis();
                yield call;
            }
            case ALLOW -> new FixedReservation(LocalFallback.fixed(limit().name(), true));
            case DENY -> new FixedReservation(LocalFallback.fixed(limit().name(), false));
            case THROW -> throw unavailable(failure);
        };
    }

    @Override
    public CompletableFuture<Decision> peekInRedis(@Nullable Object key, long permits, long maxWaitNanos) {
        LimitTerms current = terms();
        boolean never = current.isNever(permits);
        return scripts.eval(
                        current.script(),
                        name(KeyNames.text(key)),
                        scripts.begin("peek", current, 1)
                                .add(never ? 1 : permits)
                                .add(0)
                                .add(0)
                                .add(0))
                .thenApply(reply -> {
                    ScriptReply verdict = ScriptReply.of(reply, 0, current);
                    if (never) {
                        return verdict.outcome(ScriptReply.NEVER).decision();
                    }
                    return (maxWaitNanos > 0 ? verdict.outcome(0) : verdict).decision();
                });
    }

    @Override
    public Decision peekWithoutRedis(@Nullable Object key, long permits, long maxWaitNanos, Throwable failure) {
        return switch (options.onFailure()) {
            case LOCAL -> {
                String name = name(KeyNames.text(key));
                boolean fits = used.getOrDefault(name, 0L) + permits <= share() || maxWaitNanos > 0;
                yield local(terms().isNever(permits) ? ScriptReply.NEVER : fits ? 0 : ScriptReply.UNKNOWN, name)
                        .decision();
            }
            case ALLOW -> LocalFallback.fixed(limit().name(), true);
            case DENY -> LocalFallback.fixed(limit().name(), false);
            case THROW -> throw unavailable(failure);
        };
    }

    @Override
    public Decision peek(@Nullable Object key, long permits, long maxWaitNanos) {
        RedisRateLimiter.requirePermits(permits);
        try {
            return Replies.await(
                    peekInRedis(key, permits, maxWaitNanos),
                    context.connection().timeoutNanos());
        } catch (ExecutionException ex) {
            return peekWithoutRedis(key, permits, maxWaitNanos, Replies.cause(ex));
        }
    }

    /** Calls in flight still count: there is nothing to forget. */
    @Override
    public void reset(@Nullable Object key) {}

    /** {@inheritDoc} Changes it on this node. */
    @Override
    public synchronized void update(Limit limit) {
        RedisRateLimiter.requireSuccessor(limit(), limit);
        scripts.update(limit);
        queues.values().forEach(ConcurrencyQueue::serve);
    }

    @Override
    public boolean canJoin(List<Claim> claims) {
        return MultiLimitCall.canDecide(claims, context.connection());
    }

    @Override
    public List<Reservation> reserveTogether(List<Claim> claims) {
        return new MultiLimitCall(claims, context).reserve();
    }

    @Override
    public CompletionStage<List<Reservation>> reserveTogetherAsync(List<Claim> claims) {
        return new MultiLimitCall(claims, context).reserveAsync();
    }

    /** Keys with calls in flight on this node; the cells are in Redis. */
    @Override
    public long keys() {
        return used.mappingCount();
    }

    @Override
    public int waiting() {
        return waitingRoom.size();
    }

    @Override
    public GuardedConnection connection() {
        return context.connection();
    }

    LimiterContext context() {
        return context;
    }

    LimitScripts scripts() {
        return scripts;
    }

    LimitTerms terms() {
        return scripts.terms();
    }

    WaitingRoom waitingRoom() {
        return waitingRoom;
    }

    String name(@Nullable String caller) {
        return context.keys().of(limit().name(), options.tier(), caller);
    }

    private RuntimeException unavailable(Throwable failure) {
        return context.unavailable().apply("limit '" + limit().name() + "' could not be decided", failure);
    }

    /** A decision of this node alone. */
    ScriptReply local(long outcome, String name) {
        return new ScriptReply(
                outcome, Math.max(0, share() - used.getOrDefault(name, 0L)), 0, "", terms(), Source.FALLBACK);
    }

    /** The permits that this node may have in flight while Redis is away. */
    private long share() {
        return NodeShare.of(limit(), context.nodes().getAsInt()).maxConcurrent();
    }

    /** Decides the call at the head of a queue; false when it goes on waiting. */
    boolean decideWithoutRedis(InFlightCall head) {
        switch (options.onFailure()) {
            case LOCAL -> {
                return admitLocally(head);
            }
            case ALLOW -> head.decided(true);
            case DENY -> head.decided(false);
            case THROW -> head.failed(unavailable(Replies.notSent("not asked, because it has just failed")));
        }
        return true;
    }

    /** Admits a call if this node has room for it. */
    boolean admitLocally(InFlightCall call) {
        long share = share();
        AtomicBoolean fits = new AtomicBoolean();
        used.compute(call.key(), (key, before) -> {
            long next = (before == null ? 0 : before) + call.permits();
            fits.set(next <= share);
            return fits.get() ? Long.valueOf(next) : before;
        });
        if (fits.get()) {
            call.admitted(local(0, call.key()));
            // Counted twice now: here, so that two calls cannot both fit, and as begun.
            free(call);
        }
        return fits.get();
    }

    /** A call counts on this node. */
    void begun(InFlightCall call) {
        used.merge(call.key(), call.permits(), Long::sum);
        live.put(call.id(), call);
    }

    void ended(InFlightCall call) {
        if (live.remove(call.id(), call)) {
            free(call);
        }
    }

    private void free(InFlightCall call) {
        used.computeIfPresent(call.key(), (key, before) -> before > call.permits() ? before - call.permits() : null);
    }

    /** Whether calls of the key wait for others to end. */
    boolean hasQueue(String name) {
        ConcurrencyQueue queue = queues.get(name);
        return queue != null && queue.isOccupied();
    }

    /** A call waits for others of its key to end. */
    void queue(String name, InFlightCall call) {
        ConcurrencyQueue joined = queues.compute(name, (key, present) -> {
            ConcurrencyQueue queue = present == null ? new ConcurrencyQueue(this, key) : present;
            queue.add(call);
            return queue;
        });
        joined.serve();
    }

    /** A call waits no more. */
    void unqueue(String name, InFlightCall call) {
        ConcurrencyQueue queue = queues.get(name);
        if (queue != null) {
            queue.remove(call);
            left(name);
        }
    }

    /** Removes a queue in which nobody waits. */
    void left(String name) {
        queues.computeIfPresent(name, (key, queue) -> queue.isIdle() ? null : queue);
    }

    /** A call of the key has ended. */
    void serve(String name) {
        ConcurrencyQueue queue = queues.get(name);
        if (queue != null) {
            queue.serve();
        }
    }
}
