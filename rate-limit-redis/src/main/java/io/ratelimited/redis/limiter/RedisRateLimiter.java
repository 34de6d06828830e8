package io.ratelimited.redis.limiter;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import io.ratelimited.redis.connection.KeyNames;
import io.ratelimited.redis.connection.Replies;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * Decides in Redis, for every node that uses the same limit there: one script call a decision, or less, since a refusal
 * is remembered until its retry-after and calls of one key that arrive together are decided together. For limits that
 * count over time; {@link RedisConcurrencyLimiter} counts calls in flight.
 */
public final class RedisRateLimiter extends RemoteLimiter {

    private final RemoteDecisions decisions;
    private final LocalFallback local;

    public RedisRateLimiter(LimiterContext context, Limit limit, LimiterOptions options) {
        super(context, limit, options);
        this.decisions = new RemoteDecisions(context, scripts(), options);
        this.local = new LocalFallback(context, options, limit, new LocalFallback.Charges() {
            @Override
            public boolean isPossible(@Nullable String caller) {
                return !connection().isDown(name(caller));
            }

            @Override
            public void take(@Nullable String caller, long permits) {
                if (!parameters().isConstant()) {
                    decisions.charge(name(caller), permits);
                }
            }
        });
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
        try {
            return Replies.await(
                            decisions.submit(name, permits, 0), connection().timeoutNanos())
                    .admitted();
        } catch (ExecutionException ex) {
            return !reserveWithoutRedis(caller, permits, 0, ex).isRefused();
        }
    }

    @Override
    CompletableFuture<Reservation> reserveInRedis(@Nullable String caller, long permits, long maxWait) {
        String name = name(caller);
        ScriptReply known = decisions.known(name, permits, maxWait);
        if (known != null) {
            return CompletableFuture.completedFuture(reservation(name, permits, known));
        }
        PermitRequest request = decisions.submit(name, permits, maxWait);
        connection().limitTime(request);
        return request.thenApply(reply -> reservation(name, permits, reply));
    }

    Reservation reservation(String name, long permits, ScriptReply reply) {
        return new RedisReservation(
                context().ticker(), waitingRoom(), reply, () -> decisions.giveBack(name, permits, reply));
    }

    @Override
    Reservation reserveLocally(@Nullable String caller, long permits, long maxWait) {
        return local.reserve(caller, permits, maxWait);
    }

    @Override
    Decision peekLocally(@Nullable String caller, long permits, long maxWait) {
        return local.peek(caller, permits, maxWait);
    }

    /**
     * {@inheritDoc} On every node: others remember a refusal for one second at the most. Throws {@code
     * RedisUnavailableException} when Redis does not answer in time.
     */
    @Override
    public void reset(@Nullable Object key) {
        String caller = KeyNames.text(key);
        local.reset(caller);
        String name = name(caller);
        try {
            Replies.await(connection().delete(name), connection().timeoutNanos());
        } catch (ExecutionException ex) {
            throw context().unavailable().apply("limit '" + limit().name() + "' could not be reset", Replies.cause(ex));
        } finally {
            decisions.denials().forget(name);
        }
    }

    @Override
    void updated(Limit limit) {
        decisions.denials().clear();
        local.update(limit);
    }

    /** Keys of which this process remembers something; the cells are in Redis. */
    @Override
    public long keys() {
        return decisions.denials().size() + local.keys();
    }

    @Override
    public int waiting() {
        return super.waiting() + local.waiting();
    }

    RemoteDecisions decisions() {
        return decisions;
    }
}
