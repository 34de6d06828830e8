package io.ratelimited.redis.limiter;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Claim;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.redis.connection.GuardedConnection;
import io.ratelimited.redis.connection.KeyNames;
import io.ratelimited.redis.connection.Replies;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * Decides in Redis, for every node that uses the same limit there: one script call a decision, or less, since a refusal
 * is remembered until its retry-after and calls of one key that arrive together are decided together. Keys are compared
 * by their text. While Redis does not answer, decides as the limit's {@code on-failure} says; see {@link
 * Decision#source()}. Thread-safe. For limits that count over time; {@link RedisConcurrencyLimiter} counts calls in flight.
 *
 * <p>{@link #reserve} and its kin block for a round trip, at the most for the timeout; {@link #reserveAsync} never blocks.
 */
public final class RedisRateLimiter implements RemoteLimiter {

    private final LimiterContext context;
    private final String tier;
    private final RemoteDecisions decisions;
    private final LocalFallback fallback;
    private final WaitingRoom waitingRoom;

    public RedisRateLimiter(LimiterContext context, Limit limit, LimiterOptions options) {
        this.context = context;
        this.tier = options.tier();
        this.decisions = new RemoteDecisions(context, limit, options);
        this.fallback = new LocalFallback(context, options, limit);
        this.waitingRoom = new WaitingRoom(context.ticker(), () -> limit().maxWaiting());
        context.connection().onRecovery(this::charge);
    }

    /** What this node has admitted by itself is taken in Redis before it decides again. */
    private void charge() {
        long most = LocalCharges.most(limit(), context.nodes().getAsInt());
        fallback.charges().drain().forEach(charge -> {
            if (!terms().isConstant()) {
                decisions.charge(name(charge.getKey()), Math.min(most, charge.getValue()));
            }
        });
    }

    @Override
    public Limit limit() {
        return terms().limit();
    }

    @Override
    public boolean tryAcquire(@Nullable Object key, long permits) {
        requirePermits(permits);
        String caller = KeyNames.text(key);
        String name = name(caller);
        ScriptReply known = decisions.known(name, permits, 0);
        if (known != null) {
            return known.admitted();
        }
        PermitRequest request = decisions.submit(name, permits, 0);
        try {
            return request.await(context.connection().timeoutNanos()).admitted();
        } catch (ExecutionException ex) {
            return !fallback.reserve(caller, permits, 0, Replies.cause(ex)).isRefused();
        }
    }

    @Override
    public Reservation reserve(@Nullable Object key, long permits, long maxWaitNanos) {
        requirePermits(permits);
        String caller = KeyNames.text(key);
        String name = name(caller);
        long maxWait = waitingRoom.longestWait(maxWaitNanos);
        ScriptReply known = decisions.known(name, permits, maxWait);
        if (known != null) {
            return reservation(name, permits, known);
        }
        PermitRequest request = decisions.submit(name, permits, maxWait);
        try {
            return reservation(name, permits, request.await(context.connection().timeoutNanos()));
        } catch (ExecutionException ex) {
            return fallback.reserve(caller, permits, maxWait, Replies.cause(ex));
        }
    }

    @Override
    public CompletionStage<Reservation> reserveAsync(@Nullable Object key, long permits, long maxWaitNanos) {
        requirePermits(permits);
        CompletableFuture<Reservation> decided = reserveInRedis(key, permits, maxWaitNanos);
        if (decided.isDone() && !decided.isCompletedExceptionally()) {
            return decided;
        }
        return delivered(decided.handleAsync(
                (reservation, failure) -> reservation != null
                        ? reservation
                        : reserveWithoutRedis(key, permits, maxWaitNanos, Replies.cause(failure)),
                context.callers()));
    }

    /** Gives back what arrives for a caller that has cancelled its future. */
    static CompletableFuture<Reservation> delivered(CompletableFuture<Reservation> decided) {
        CompletableFuture<Reservation> result = new CompletableFuture<>();
        decided.whenComplete((reservation, failure) -> {
            if (failure != null) {
                result.completeExceptionally(failure);
            } else if (!result.complete(reservation)) {
                reservation.cancel();
            }
        });
        return result;
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

    @Override
    public GuardedConnection connection() {
        return context.connection();
    }

    @Override
    public CompletableFuture<Decision> peekInRedis(@Nullable Object key, long permits, long maxWaitNanos) {
        LimitTerms current = terms();
        if (current.isConstant()) {
            return CompletableFuture.completedFuture(
                    RemoteDecisions.constant(current).decision());
        }
        boolean never = current.isNever(permits);
        PermitRequest request = new PermitRequest(never ? 1 : permits, Math.max(0, maxWaitNanos));
        return decisions
                .eval(
                        current.script(),
                        name(KeyNames.text(key)),
                        decisions.arguments("peek", current, List.of(request)))
                .thenApply(reply -> {
                    ScriptReply verdict = ScriptReply.of(reply, 0, current);
                    return (never ? verdict.outcome(ScriptReply.NEVER) : verdict).decision();
                });
    }

    @Override
    public CompletableFuture<Reservation> reserveInRedis(@Nullable Object key, long permits, long maxWaitNanos) {
        String name = name(KeyNames.text(key));
        long maxWait = waitingRoom.longestWait(maxWaitNanos);
        ScriptReply known = decisions.known(name, permits, maxWait);
        if (known != null) {
            return CompletableFuture.completedFuture(reservation(name, permits, known));
        }
        PermitRequest request = decisions.submit(name, permits, maxWait);
        context.connection().limitTime(request);
        return request.thenApply(verdict -> reservation(name, permits, verdict));
    }

    @Override
    public Decision peekWithoutRedis(@Nullable Object key, long permits, long maxWaitNanos, Throwable failure) {
        return fallback.peek(KeyNames.text(key), permits, Math.max(0, maxWaitNanos), failure);
    }

    @Override
    public Reservation reserveWithoutRedis(@Nullable Object key, long permits, long maxWaitNanos, Throwable failure) {
        return fallback.reserve(KeyNames.text(key), permits, waitingRoom.longestWait(maxWaitNanos), failure);
    }

    @Override
    public Decision peek(@Nullable Object key, long permits, long maxWaitNanos) {
        requirePermits(permits);
        try {
            return Replies.await(
                    peekInRedis(key, permits, maxWaitNanos),
                    context.connection().timeoutNanos());
        } catch (ExecutionException ex) {
            return peekWithoutRedis(key, permits, maxWaitNanos, Replies.cause(ex));
        }
    }

    /**
     * {@inheritDoc} On every node: others remember a refusal for one second at the most. Throws {@code
     * RedisUnavailableException} when Redis does not answer in time.
     */
    @Override
    public void reset(@Nullable Object key) {
        String caller = KeyNames.text(key);
        fallback.reset(caller);
        String name = name(caller);
        try {
            Replies.await(
                    context.connection().delete(name), context.connection().timeoutNanos());
        } catch (ExecutionException ex) {
            throw context.unavailable().apply("limit '" + limit().name() + "' could not be reset", Replies.cause(ex));
        } finally {
            decisions.denials().forget(name);
        }
    }

    /**
     * {@inheritDoc} Changes it on this node: until every node uses the new limit, each call is decided by that of its
     * own node, on one budget.
     */
    @Override
    public synchronized void update(Limit limit) {
        requireSuccessor(limit(), limit);
        decisions.update(limit);
        fallback.update(limit);
    }

    static void requireSuccessor(Limit old, Limit limit) {
        if (!limit.name().equals(old.name())) {
            throw new IllegalArgumentException(
                    "a limit cannot be renamed at run time: '" + old.name() + "' to '" + limit.name() + "'");
        }
        if (limit.algorithm() != old.algorithm()
                && (limit.algorithm() == Algorithm.CONCURRENCY || old.algorithm() == Algorithm.CONCURRENCY)) {
            throw new IllegalArgumentException(
                    "limit '" + old.name() + "' cannot change from " + old.algorithm() + " to " + limit.algorithm()
                            + " at run time: calls in flight cannot be counted over time; restart instead");
        }
    }

    /** Keys of which this process remembers something; the cells are in Redis. */
    @Override
    public long keys() {
        return decisions.denials().size() + fallback.keys();
    }

    @Override
    public int waiting() {
        return waitingRoom.size() + fallback.waiting();
    }

    RemoteDecisions decisions() {
        return decisions;
    }

    LimitTerms terms() {
        return decisions.terms();
    }

    String name(@Nullable String caller) {
        return context.keys().of(limit().name(), tier, caller);
    }

    long longestWait(long maxWaitNanos) {
        return waitingRoom.longestWait(maxWaitNanos);
    }

    Reservation reservation(String name, long permits, ScriptReply verdict) {
        return new RedisReservation(decisions, waitingRoom, name, permits, verdict);
    }

    static void requirePermits(long permits) {
        if (permits < 1) {
            throw new IllegalArgumentException("permits must be at least 1: " + permits);
        }
    }
}
