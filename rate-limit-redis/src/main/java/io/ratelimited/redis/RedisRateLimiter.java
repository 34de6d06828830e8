package io.ratelimited.redis;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Claim;
import io.ratelimited.core.Decision;
import io.ratelimited.core.JointRateLimiter;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * Decides in Redis, for every node that uses the same limit there: one script call a decision, or less, since a refusal
 * is remembered until its retry-after and calls of one key that arrive together are decided together. Keys are compared
 * by their text. While Redis does not answer, decides as its {@link OnFailure} says; see {@link Decision#source()}.
 * Thread-safe; made by {@link RedisBackend#limiter}.
 *
 * <p>{@link #reserve} and its kin block for a round trip, at the most for the backend's timeout; {@link #reserveAsync}
 * never blocks.
 */
public final class RedisRateLimiter implements JointRateLimiter {

    private final RedisBackend backend;
    private final String tier;
    private final Inquiries inquiries;
    private final Fallback fallback;
    private final Turnstiles turnstiles = new Turnstiles(this);
    private final AtomicInteger waiting = new AtomicInteger();

    RedisRateLimiter(RedisBackend backend, Limit limit, RedisLimitOptions options) {
        this.backend = backend;
        this.tier = options.tier();
        this.inquiries = new Inquiries(backend, limit, options);
        this.fallback = new Fallback(backend, options, limit);
    }

    @Override
    public Limit limit() {
        return terms().limit();
    }

    @Override
    public boolean tryAcquire(@Nullable Object key, long permits) {
        if (limit().algorithm() == Algorithm.CONCURRENCY) {
            throw new UnsupportedOperationException(
                    "a call under CONCURRENCY has to be released when it ends: use reserve, or execute, instead of tryAcquire");
        }
        requirePermits(permits);
        String caller = RedisKeys.text(key);
        String name = name(caller);
        Verdict known = inquiries.known(name, permits, 0);
        if (known != null) {
            return known.admitted();
        }
        Call call = inquiries.submit(name, permits, 0);
        try {
            return call.await().admitted();
        } catch (ExecutionException ex) {
            return !fallback.reserve(caller, permits, 0, cause(ex)).isRefused();
        }
    }

    @Override
    public Reservation reserve(@Nullable Object key, long permits, long maxWaitNanos) {
        requirePermits(permits);
        String caller = RedisKeys.text(key);
        String name = name(caller);
        long maxWait = maxWait(maxWaitNanos);
        if (limit().algorithm() == Algorithm.CONCURRENCY) {
            InFlight inFlight = inFlight(name, permits, maxWait);
            try {
                return Calls.await(inFlight.begin(), backend.timeoutNanos());
            } catch (ExecutionException ex) {
                inFlight.abandon();
                return fallback.reserve(caller, permits, maxWait, cause(ex));
            }
        }
        Verdict known = inquiries.known(name, permits, maxWait);
        if (known != null) {
            return reservation(name, permits, known);
        }
        Call call = inquiries.submit(name, permits, maxWait);
        try {
            return reservation(name, permits, call.await());
        } catch (ExecutionException ex) {
            return fallback.reserve(caller, permits, maxWait, cause(ex));
        }
    }

    @Override
    public CompletionStage<Reservation> reserveAsync(@Nullable Object key, long permits, long maxWaitNanos) {
        requirePermits(permits);
        String caller = RedisKeys.text(key);
        String name = name(caller);
        long maxWait = maxWait(maxWaitNanos);
        CompletableFuture<? extends Reservation> decided;
        if (limit().algorithm() == Algorithm.CONCURRENCY) {
            decided = inFlight(name, permits, maxWait).begin();
        } else {
            Verdict known = inquiries.known(name, permits, maxWait);
            if (known != null) {
                return CompletableFuture.completedFuture(reservation(name, permits, known));
            }
            Call call = inquiries.submit(name, permits, maxWait);
            backend.deadlines().add(call);
            decided = call.thenApply(verdict -> reservation(name, permits, verdict));
        }
        return decided.handleAsync(
                (reservation, failure) -> reservation != null
                        ? reservation
                        : fallback.reserve(caller, permits, maxWait, Calls.unwrap(failure)),
                backend.executor());
    }

    @Override
    public boolean canJoin(List<Claim> claims) {
        String caller = RedisKeys.text(claims.get(0).key());
        boolean anyCaller = backend.joinsCallers();
        for (Claim claim : claims) {
            if (!(claim.limiter() instanceof RedisRateLimiter other)
                    || other.backend != backend
                    || other.limit().algorithm() == Algorithm.CONCURRENCY
                    || other.terms().isConstant()
                    || other.terms().isNever(claim.permits())
                    || backend.isDown(other.name(RedisKeys.text(claim.key())))) {
                return false;
            }
            boolean sameSlot = caller != null && caller.equals(RedisKeys.text(claim.key()));
            if (!anyCaller && !sameSlot) {
                return false;
            }
        }
        return claims.stream()
                        .map(claim -> ((RedisRateLimiter) claim.limiter()).name(RedisKeys.text(claim.key())))
                        .distinct()
                        .count()
                == claims.size();
    }

    @Override
    public List<Reservation> reserveTogether(List<Claim> claims) {
        Joint joint = new Joint(backend, claims);
        try {
            return Calls.await(joint.decide(), backend.timeoutNanos());
        } catch (ExecutionException ex) {
            return joint.fallback(cause(ex));
        }
    }

    @Override
    public CompletionStage<List<Reservation>> reserveTogetherAsync(List<Claim> claims) {
        Joint joint = new Joint(backend, claims);
        return joint.decide()
                .handleAsync(
                        (decided, failure) -> decided != null ? decided : joint.fallback(Calls.unwrap(failure)),
                        backend.executor());
    }

    @Override
    public Decision peek(@Nullable Object key, long permits, long maxWaitNanos) {
        requirePermits(permits);
        String caller = RedisKeys.text(key);
        String name = name(caller);
        RedisTerms current = terms();
        if (current.isConstant()) {
            return Inquiries.constant(current).decision();
        }
        boolean never = current.isNever(permits);
        Call call = new Call(never ? 1 : permits, Math.max(0, maxWaitNanos), inquiries.deadline());
        try {
            Verdict verdict = Calls.await(
                    inquiries
                            .eval(current.script(), name, inquiries.arguments("peek", current, List.of(call)))
                            .thenApply(reply -> Verdict.of(reply, 0, current)),
                    backend.timeoutNanos());
            if (current.limit().algorithm() == Algorithm.CONCURRENCY && maxWaitNanos > 0) {
                verdict = verdict.outcome(0);
            }
            return (never ? verdict.outcome(Verdict.NEVER) : verdict).decision();
        } catch (ExecutionException ex) {
            return fallback.peek(caller, permits, Math.max(0, maxWaitNanos), cause(ex));
        }
    }

    /**
     * {@inheritDoc} On every node: others remember a refusal for one second at the most.
     *
     * @throws RedisUnavailableException when Redis does not answer in time
     */
    @Override
    public void reset(@Nullable Object key) {
        String caller = RedisKeys.text(key);
        fallback.reset(caller);
        if (limit().algorithm() == Algorithm.CONCURRENCY) {
            return;
        }
        String name = name(caller);
        try {
            Calls.await(backend.delete(name), backend.timeoutNanos());
        } catch (ExecutionException ex) {
            throw new RedisUnavailableException("limit '" + limit().name() + "' could not be reset", cause(ex));
        } finally {
            inquiries.denials().forget(name);
        }
    }

    /**
     * {@inheritDoc} Changes it on this node: until every node uses the new limit, each call is decided by that of its
     * own node, on one budget.
     */
    @Override
    public synchronized void update(Limit limit) {
        Limit old = limit();
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
        inquiries.update(limit);
        fallback.update(limit);
        turnstiles.serveAll();
    }

    /** Keys of which this process remembers something; the cells are in Redis. */
    @Override
    public long keys() {
        return inquiries.denials().size() + fallback.keys();
    }

    @Override
    public int waiting() {
        return waiting.get() + fallback.waiting();
    }

    RedisBackend backend() {
        return backend;
    }

    Inquiries inquiries() {
        return inquiries;
    }

    RedisTerms terms() {
        return inquiries.terms();
    }

    Turnstiles turnstiles() {
        return turnstiles;
    }

    Fallback fallback() {
        return fallback;
    }

    String name(@Nullable String caller) {
        return backend.keys().of(limit().name(), tier, caller);
    }

    long maxWait(long maxWaitNanos) {
        return waiting.get() >= limit().maxWaiting() ? 0 : Math.max(0, Math.min(1L << 60, maxWaitNanos));
    }

    Reservation reservation(String name, long permits, Verdict verdict) {
        return new RedisReservation(this, name, permits, verdict);
    }

    private InFlight inFlight(String name, long permits, long maxWaitNanos) {
        return new InFlight(this, name, permits, maxWaitNanos);
    }

    /** Takes a place among the sleepers; false when there is none. */
    boolean enter() {
        if (waiting.incrementAndGet() <= limit().maxWaiting()) {
            return true;
        }
        waiting.decrementAndGet();
        return false;
    }

    void leave() {
        waiting.decrementAndGet();
    }

    private static Throwable cause(ExecutionException ex) {
        return Calls.unwrap(ex);
    }

    private static void requirePermits(long permits) {
        if (permits < 1) {
            throw new IllegalArgumentException("permits must be at least 1: " + permits);
        }
    }
}
