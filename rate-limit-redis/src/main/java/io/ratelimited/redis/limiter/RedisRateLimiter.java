package io.ratelimited.redis.limiter;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Permits;
import io.ratelimited.core.Reservation;
import io.ratelimited.redis.connection.GuardedConnection.DeliveryKind;
import io.ratelimited.redis.connection.KeyNames;
import io.ratelimited.redis.connection.Replies;
import io.ratelimited.redis.script.PermitCost;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Decides in Redis, for every node that uses the same limit there: one script call a decision, or less, since permits are
 * leased, a refusal is remembered until its retry-after, and calls of one key that arrive together are decided together.
 * For limits that count over time; {@link RedisConcurrencyLimiter} counts calls in flight.
 */
public final class RedisRateLimiter extends RemoteLimiter {

    private final DenialCache denials;
    private final Leases leases;
    private final LocalFallback local;
    private final ConcurrentHashMap<String, KeyBatch> batches = new ConcurrentHashMap<>();

    /**
     * @param tier whose budgets these are; empty for the limit itself
     * @param fallback as of {@link RemoteLimiter}
     * @param maxOvershoot the share of a period's permits by which the cluster may exceed the limit; 0 for none
     * @param maximumKeys keys remembered in this process at the most
     */
    public RedisRateLimiter(
            LimiterContext context,
            Limit limit,
            String tier,
            Function<Throwable, @Nullable Boolean> fallback,
            double maxOvershoot,
            long maximumKeys) {
        super(context, limit, tier, fallback);
        this.denials = new DenialCache(context.ticker(), maximumKeys);
        this.leases = new Leases(context.ticker(), context.nodes(), maxOvershoot, maximumKeys);
        this.local = new LocalFallback(context, maximumKeys, this::parameters, waitingRoom(), this::name, this::charge);
    }

    @Override
    public boolean tryAcquire(@Nullable Object key, long permits) {
        if (Permits.requireAsked(permits) == 0) {
            return true;
        }
        String caller = KeyNames.text(key);
        String name = name(caller);
        ScriptReply known = known(name, permits, 0);
        if (known != null) {
            return known.admitted();
        }
        try {
            return connection().await(submit(name, permits, 0)).admitted();
        } catch (ExecutionException ex) {
            return !reserveWithoutRedis(caller, permits, 0, ex).isRefused();
        }
    }

    @Override
    CompletableFuture<Reservation> reserveInRedis(@Nullable String caller, long permits, long maxWait) {
        String name = name(caller);
        if (permits == 0) {
            return admittedWithNothing(caller).thenApply(reply -> reservation(name, caller, 0, reply));
        }
        ScriptReply known = known(name, permits, maxWait);
        if (known != null) {
            return CompletableFuture.completedFuture(reservation(name, caller, permits, known));
        }
        PermitRequest request = submit(name, permits, maxWait);
        connection().limitTime(request);
        return request.thenApply(reply -> reservation(name, caller, permits, reply));
    }

    Reservation reservation(String name, @Nullable String caller, long permits, ScriptReply reply) {
        return new RedisReservation(context().ticker(), waitingRoom(), caller, permits, reply, (excess, elapsed) -> {
            if (excess > 0) {
                local.charge(name, excess);
            } else if (excess < 0) {
                giveBack(name, -excess, reply);
            }
            return reply.settled(excess, elapsed);
        });
    }

    /** What is decided without asking Redis; null when it has to be asked. */
    private @Nullable ScriptReply known(String name, long permits, long maxWait) {
        ScriptParameters current = parameters();
        boolean leasable = !current.isConstant() && !current.isNever(permits);
        ScriptReply leased = leasable ? leases.take(name, current, permits) : null;
        return leased != null ? leased : knownUnleased(name, current, permits, maxWait);
    }

    /** {@link #known}, for a call that pays in Redis if it goes. */
    @Nullable
    ScriptReply knownUnleased(String name, ScriptParameters current, long permits, long maxWait) {
        if (current.isConstant()) {
            return ScriptReply.constant(current);
        }
        return current.isNever(permits)
                ? null
                : denials.find(name, current, permits, Math.min(PermitCost.FAR, maxWait / 1000));
    }

    /** Asks Redis, together with other callers of the key. */
    private PermitRequest submit(String name, long permits, long maxWait) {
        PermitRequest call = new PermitRequest(permits, maxWait);
        ScriptParameters current = parameters();
        if (connection().isDown(name)) {
            call.completeExceptionally(Replies.notSent("not asked, because it has just failed"));
        } else if (current.isNever(permits)) {
            never(call, name, current);
        } else {
            KeyBatch batch = batches.get(name);
            // A batch may have ended meanwhile.
            while (batch == null || !batch.add(call)) {
                batch = batches.computeIfAbsent(name, key -> new KeyBatch(this, batches, key));
            }
        }
        return call;
    }

    /** Refused for good; Redis is asked only for what is left. */
    void never(PermitRequest call, String name, ScriptParameters current) {
        PermitRequest one = new PermitRequest(1, 0);
        scripts()
                .eval(name, current, scripts().arguments("peek", current, List.of(one)))
                .whenComplete((reply, failure) -> {
                    if (failure != null) {
                        call.completeExceptionally(failure);
                    } else {
                        call.complete(current.read(reply, List.of(one))[0].withOutcome(ScriptReply.NEVER));
                    }
                });
    }

    /**
     * Takes permits that have been used already, into debt if need be. Nobody waits for it. Not repeated when the reply is
     * lost.
     */
    void charge(String name, long permits) {
        ScriptParameters current = parameters();
        if (current.isConstant()) {
            return;
        }
        connection()
                .deliver(
                        DeliveryKind.CHARGE,
                        current.key(name),
                        () -> current.appendCalls(scripts().begin("charge", current), 1, permits, 0, ""));
        taken(name);
    }

    /**
     * Gives back permits of a grant that nobody has reserved behind it, at the latest after an outage; none after a change of
     * the limit. Not repeated when the reply is lost, because permits given back twice would be permits too many.
     */
    void giveBack(String name, long permits, ScriptReply taken) {
        String mark = taken.mark().toString();
        if (mark.isEmpty()) {
            leases.giveBack(name, permits, taken);
            return;
        }
        ScriptParameters then = taken.parameters();
        if (then != parameters()) {
            return;
        }
        connection()
                .deliver(
                        DeliveryKind.GIVE_BACK,
                        then.key(name),
                        () -> then.appendCalls(scripts().begin("cancel", then), 1, permits, 0, mark),
                        // Again, since it may have been kept while others were sent.
                        () -> returned(name));
        returned(name);
    }

    /** Permits were taken: what was refused before has to wait longer now. */
    void taken(String name) {
        denials.forget(name);
        scripts().forgetPeeks(name);
    }

    /** There are more permits than Redis has said. */
    private void returned(String name) {
        denials.revoke(name);
        scripts().forgetPeeks(name);
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
            connection().await(connection().delete(scripts().counting().key(name)));
        } catch (ExecutionException ex) {
            throw context().unavailable().apply("limit '" + limit().name() + "' could not be reset", Replies.cause(ex));
        } finally {
            returned(name);
        }
    }

    @Override
    void updated(Limit limit) {
        denials.clear();
    }

    /** Keys of which this process remembers something; the cells are in Redis. */
    @Override
    public long keys() {
        return denials.size() + local.keys();
    }

    DenialCache denials() {
        return denials;
    }

    Leases leases() {
        return leases;
    }
}
