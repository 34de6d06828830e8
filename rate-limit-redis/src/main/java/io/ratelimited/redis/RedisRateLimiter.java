package io.ratelimited.redis;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Claim;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.JointRateLimiter;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Reservation;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
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
    private final Denials denials;
    private final Fallback fallback;
    private final Leases leases;
    private final ConcurrentHashMap<String, Line> lines = new ConcurrentHashMap<>();
    private final ConcurrentHashMap<String, Turnstile> turnstiles = new ConcurrentHashMap<>();
    private final AtomicInteger waiting = new AtomicInteger();
    /** When this limiter was made: {@link io.ratelimited.core.Ticker#nanos}. */
    private final long madeAt;

    private volatile RedisTerms terms;
    private volatile Calendar calendar;

    RedisRateLimiter(RedisBackend backend, Limit limit, RedisLimitOptions options) {
        this.backend = backend;
        this.terms = new RedisTerms(limit);
        this.calendar = new Calendar(limit, backend.ticker());
        this.denials = new Denials(backend.ticker(), options.maximumKeys());
        this.fallback = new Fallback(backend, options, limit);
        this.leases = new Leases(backend, options);
        this.madeAt = backend.ticker().nanos();
    }

    @Override
    public Limit limit() {
        return terms.limit();
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
        Verdict known = known(name, permits, 0);
        if (known != null) {
            return known.admitted();
        }
        Call call = submit(name, permits, 0);
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
        Verdict known = known(name, permits, maxWait);
        if (known != null) {
            return reservation(name, permits, known);
        }
        Call call = submit(name, permits, maxWait);
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
            Verdict known = known(name, permits, maxWait);
            if (known != null) {
                return CompletableFuture.completedFuture(reservation(name, permits, known));
            }
            Call call = submit(name, permits, maxWait);
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
                    || other.terms.isConstant()
                    || other.terms.isNever(claim.permits())
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
        RedisTerms current = terms;
        if (current.isConstant()) {
            return constant(current).decision();
        }
        boolean never = current.isNever(permits);
        Call call = new Call(never ? 1 : permits, Math.max(0, maxWaitNanos), deadline());
        try {
            List<Object> reply = Calls.await(
                    eval(current.script(), name, arguments("peek", current, List.of(call))), backend.timeoutNanos());
            Verdict verdict = Verdict.of(reply, 0, current);
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
            throw new RedisUnavailableException(
                    "limit '" + limit().name() + "' could not be reset: Redis did not answer", cause(ex));
        } finally {
            denials.forget(name);
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
        calendar = new Calendar(limit, backend.ticker());
        terms = new RedisTerms(limit);
        fallback.update(limit);
        denials.clear();
        turnstiles.values().forEach(Turnstile::serve);
    }

    /** Keys of which this process remembers something; the cells are in Redis. */
    @Override
    public long keys() {
        return denials.size() + fallback.keys();
    }

    @Override
    public int waiting() {
        return waiting.get() + fallback.waiting();
    }

    RedisBackend backend() {
        return backend;
    }

    RedisTerms terms() {
        return terms;
    }

    Denials denials() {
        return denials;
    }

    Leases leases() {
        return leases;
    }

    Fallback fallback() {
        return fallback;
    }

    String name(@Nullable String caller) {
        return backend.keys().of(limit().name(), caller);
    }

    private long deadline() {
        return System.nanoTime() + backend.timeoutNanos();
    }

    long maxWait(long maxWaitNanos) {
        return waiting.get() >= limit().maxWaiting() ? 0 : Math.max(0, Math.min(1L << 60, maxWaitNanos));
    }

    /** What is decided without asking Redis; null when it has to be asked. */
    @Nullable
    Verdict known(String name, long permits, long maxWaitNanos) {
        RedisTerms current = terms;
        if (current.isConstant()) {
            return constant(current);
        }
        if (current.isNever(permits)) {
            return null;
        }
        Verdict leased = leases.take(name, current, permits);
        if (leased != null) {
            return leased;
        }
        return denials.find(name, current, permits, Math.min(RedisTerms.FAR, maxWaitNanos / 1000));
    }

    private static Verdict constant(RedisTerms terms) {
        boolean open = terms.limit().rate().isUnlimited();
        return new Verdict(open ? 0 : Verdict.NEVER, open ? Long.MAX_VALUE : 0, 0, "", terms, Source.MEMORY);
    }

    /** Asks Redis, together with whoever else asks for the key. */
    private Call submit(String name, long permits, long maxWaitNanos) {
        Call call = new Call(permits, maxWaitNanos, deadline());
        RedisTerms current = terms;
        if (backend.isDown(name)) {
            call.completeExceptionally(new TimeoutException("Redis does not answer"));
        } else if (current.isNever(permits)) {
            never(call, name, current);
        } else {
            while (!lines.computeIfAbsent(name, key -> new Line(this, lines, key))
                    .add(call)) {
                // The line has ended meanwhile.
            }
        }
        return call;
    }

    /** Refused for good; Redis is asked only for what is left. */
    private void never(Call call, String name, RedisTerms current) {
        Call one = new Call(1, 0, call.deadline());
        eval(current.script(), name, arguments("peek", current, List.of(one))).whenComplete((reply, failure) -> {
            if (failure != null) {
                call.completeExceptionally(failure);
            } else {
                call.complete(Verdict.of(reply, 0, current).outcome(Verdict.NEVER));
            }
        });
    }

    /** The arguments of {@code decide.lua} for calls under this limit alone. */
    String[] arguments(String operation, RedisTerms current, List<Call> calls) {
        List<String> args = begin(operation, current, calls.size());
        for (Call call : calls) {
            RedisTerms.Cost cost = current.cost(call.permits());
            add(args, call.permits(), cost, call.waitArgument());
        }
        return args.toArray(String[]::new);
    }

    List<String> begin(String operation, RedisTerms current, int calls) {
        List<String> args = new ArrayList<>(16 + 4 * calls);
        args.add(backend.time());
        args.add(operation);
        args.add("1");
        appendTo(args, current);
        args.add(Integer.toString(calls));
        return args;
    }

    void appendTo(List<String> args, RedisTerms current) {
        current.appendTo(args, (backend.ticker().nanos() - madeAt) / 1000, calendar);
    }

    static void add(List<String> args, long permits, RedisTerms.Cost cost, String last) {
        args.add(Long.toString(permits));
        args.add(Long.toString(cost.micros()));
        args.add(Long.toString(cost.parts()));
        args.add(last);
    }

    /** Runs a deciding script, and if the budget was stored by another algorithm, the one that knows them all. */
    CompletableFuture<List<Object>> eval(Script script, String name, String... args) {
        String[] keys = {name};
        return backend.eval(script, keys, args).thenCompose(reply -> {
            boolean foreign = reply.size() == 1 && reply.get(0) instanceof Long code && code == -1;
            return foreign ? backend.eval(Script.ALL, keys, args) : CompletableFuture.completedFuture(reply);
        });
    }

    /** Gives back what nobody has reserved behind it; if Redis does not answer, it stays spent. */
    void giveBack(String name, long permits, Verdict verdict) {
        if (verdict.mark().isEmpty()) {
            return;
        }
        RedisTerms then = verdict.terms();
        List<String> args = begin("cancel", then, 1);
        add(args, permits, then.cost(permits), verdict.mark());
        backend.eval(then.script(), new String[] {name}, args.toArray(String[]::new));
        denials.forget(name);
    }

    Reservation reservation(String name, long permits, Verdict verdict) {
        return new RedisReservation(this, name, permits, verdict);
    }

    private InFlight inFlight(String name, long permits, long maxWaitNanos) {
        return new InFlight(this, name, permits, maxWaitNanos);
    }

    /** Whether calls of the key wait for others to end. */
    boolean isOccupied(String name) {
        Turnstile turnstile = turnstiles.get(name);
        return turnstile != null && turnstile.isOccupied();
    }

    /** A call waits for others of its key to end. */
    void queue(String name, InFlight call) {
        Turnstile joined = turnstiles.compute(name, (key, present) -> {
            Turnstile turnstile = present == null ? new Turnstile(this, key) : present;
            turnstile.add(call);
            return turnstile;
        });
        joined.serve();
    }

    /** A call waits no more. */
    void unqueue(String name, InFlight call) {
        Turnstile turnstile = turnstiles.get(name);
        if (turnstile != null) {
            turnstile.remove(call);
            left(name);
        }
    }

    /** Removes a turnstile at which nobody stands. */
    void left(String name) {
        turnstiles.computeIfPresent(name, (key, turnstile) -> turnstile.isIdle() ? null : turnstile);
    }

    /** A call of the key has ended. */
    void serve(String name) {
        Turnstile turnstile = turnstiles.get(name);
        if (turnstile != null) {
            turnstile.serve();
        }
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
