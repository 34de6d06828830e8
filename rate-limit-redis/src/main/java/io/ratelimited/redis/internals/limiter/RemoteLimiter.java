package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.Call;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.internals.Permits;
import io.ratelimited.core.several.Claim;
import io.ratelimited.core.several.JointRateLimiter;
import io.ratelimited.redis.internals.connection.GuardedConnection;
import io.ratelimited.redis.internals.connection.KeyNames;
import io.ratelimited.redis.internals.connection.Replies;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.limiter.KeyState.Keys;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * Asks Redis for each call and, when that does not answer in time, decides as the limit's {@code on-failure} says. Keys
 * are given by their texts. {@link #reserve} and its kin block for a round trip, at the most for the timeout;
 * {@link #reserveAsync} never blocks. Thread-safe.
 */
abstract class RemoteLimiter implements JointRateLimiter {

    private final LimiterContext context;
    private final KeyNames.OfLimit names;
    private final Function<Throwable, @Nullable Boolean> fallback;
    private final Keys states;
    private final WaitingRoom waitingRoom;

    private volatile ScriptParameters parameters;
    /** Parameters of the last rate that was neither closed nor unlimited: only under these may keys have stored a state. */
    private volatile ScriptParameters counting;

    /**
     * @param tier the tier that has these budgets; empty for the limit itself
     * @param fallback whether every call goes while Redis does not decide, for a reason; null when this process decides
     *     by its share of the limit; throws when calls fail then
     * @param maximumKeys the most keys with a state on this node
     */
    RemoteLimiter(
            LimiterContext context,
            Limit limit,
            String tier,
            Function<Throwable, @Nullable Boolean> fallback,
            long maximumKeys) {
        this.context = context;
        this.names = context.keys().ofLimit(limit.name(), tier);
        this.fallback = fallback;
        this.states = new Keys(context.ticker(), context.connection()::later, maximumKeys);
        this.parameters = new ScriptParameters(limit, context.ticker(), context.nodes());
        this.counting = parameters;
        this.waitingRoom = new WaitingRoom(context.ticker(), () -> limit().maxWaiting());
    }

    /** The same limiter for callers with their own numbers. */
    RemoteLimiter(RemoteLimiter whole) {
        this.context = whole.context;
        this.names = whole.names;
        this.fallback = whole.fallback;
        this.states = whole.states;
        this.parameters = whole.parameters;
        this.counting = whole.counting;
        this.waitingRoom = whole.waitingRoom;
    }

    /** Fails when Redis does not answer in time. */
    abstract CompletableFuture<Reservation> reserveInRedis(@Nullable String text, Wanted wanted);

    /** Decides by this node's share of the limit. */
    abstract Reservation reserveLocally(@Nullable String text, Wanted wanted);

    /** {@link #reserveLocally(String, Wanted)} without more than this. */
    Reservation reserveLocally(@Nullable String text, long permits, long maxWait) {
        return reserveLocally(text, new Wanted(permits, maxWait));
    }

    abstract Decision peekLocally(@Nullable String text, Wanted wanted);

    /**
     * Returns the place that the script of several limits takes for a call, at once or not at all; null if the limit counts over
     * time.
     */
    @Nullable
    JointPlace jointPlace(@Nullable String text, long permits) {
        return null;
    }

    /** Returns whether calls of a key wait on this node for the end of others. */
    boolean hasQueue(String name) {
        return false;
    }

    LimiterContext context() {
        return context;
    }

    GuardedConnection connection() {
        return context.connection();
    }

    /** The states of keys on this node, by their names. */
    Keys states() {
        return states;
    }

    /** The limit as it is now. */
    ScriptParameters parameters() {
        return parameters;
    }

    WaitingRoom waitingRoom() {
        return waitingRoom;
    }

    /** What a call wants, with the longest wait that is possible now. */
    Wanted wanted(@Nullable String text, Call call) {
        long permits = Permits.requireAsked(call.permits());
        long maxWait = waitingRoom.longestWait(text, call.maxWaitNanos());
        if (parameters().blocks() == null) {
            return new Wanted(permits, maxWait);
        }
        return new Wanted(
                permits,
                maxWait,
                Math.max(call.maxWaitNanos(), call.patienceNanos()),
                call.isExemptFromBlocks(),
                call.isUndecided());
    }

    /** Returns the refusal of a call whose key this node knows to be blocked, whatever else decides; null for other calls. */
    @Nullable
    ScriptReply blockedHere(@Nullable String text) {
        return null;
    }

    /** The name of a key in Redis, but for its end: {@link ScriptParameters#fullName}. */
    String name(@Nullable String text) {
        return names.of(text);
    }

    @Override
    public void close() {
        waitingRoom.close();
    }

    @Override
    public Limit limit() {
        return parameters().limit();
    }

    @Override
    public Reservation reserve(Call call) {
        String text = CanonicalKey.textOrNull(call.key());
        Wanted wanted = wanted(text, call);
        CompletableFuture<Reservation> asked = reserveInRedis(text, wanted);
        if (isDecided(asked)) {
            return asked.join();
        }
        try {
            return connection().await(WaitingRoom.orGivenBack(asked, Reservation::cancel));
        } catch (ExecutionException ex) {
            return reserveWithoutRedis(text, wanted, ex);
        }
    }

    @Override
    public CompletionStage<Reservation> reserveAsync(Call call, Callbacks callbacks) {
        String text = CanonicalKey.textOrNull(call.key());
        Wanted wanted = wanted(text, call);
        CompletableFuture<Reservation> asked = reserveInRedis(text, wanted);
        if (isDecided(asked)) {
            return asked;
        }
        return WaitingRoom.orGivenBack(
                asked.handleAsync(
                        (reservation, failure) ->
                                reservation != null ? reservation : reserveWithoutRedis(text, wanted, failure),
                        context.callers(callbacks)),
                Reservation::cancel);
    }

    private static boolean isDecided(CompletableFuture<?> asked) {
        return asked.isDone() && !asked.isCompletedExceptionally();
    }

    @Override
    public Decision peek(Call call) {
        String text = CanonicalKey.textOrNull(call.key());
        Wanted wanted = wanted(text, call);
        try {
            return connection().await(lookInRedis("peek", text, wanted, 0));
        } catch (ExecutionException ex) {
            return peekWithoutRedis(text, wanted, ex);
        }
    }

    @Override
    public CompletionStage<Decision> peekAsync(Call call) {
        return lookAsync("peek", call, 0);
    }

    @Override
    public CompletionStage<Decision> lookAsync(Call call, long knownNanos) {
        return lookAsync("ask", call, knownNanos);
    }

    private CompletionStage<Decision> lookAsync(String operation, Call call, long knownNanos) {
        String text = CanonicalKey.textOrNull(call.key());
        Wanted wanted = wanted(text, call);
        return lookInRedis(operation, text, wanted, knownNanos)
                .handleAsync(
                        (decision, failure) -> decision != null ? decision : peekWithoutRedis(text, wanted, failure),
                        context.callers());
    }

    /**
     * {@link #look} for one of several limits: does not block.
     *
     * @param failure the reason why Redis has not decided; null to ask it
     */
    CompletableFuture<Decision> askOfSeveral(Call call, @Nullable Throwable failure) {
        String text = CanonicalKey.textOrNull(call.key());
        Wanted wanted = wanted(text, call);
        return (failure == null
                        ? lookInRedis("ask", text, wanted, 0)
                        : CompletableFuture.<Decision>failedFuture(failure))
                .exceptionally(reason -> peekWithoutRedis(text, wanted, reason));
    }

    /** {@link #reserve}, as {@link #askOfSeveral}. */
    CompletableFuture<Reservation> takeOfSeveral(Call call, @Nullable Throwable failure) {
        String text = CanonicalKey.textOrNull(call.key());
        Wanted wanted = wanted(text, call);
        return (failure == null ? reserveInRedis(text, wanted) : CompletableFuture.<Reservation>failedFuture(failure))
                .exceptionally(reason -> reserveWithoutRedis(text, wanted, reason));
    }

    /**
     * Fails when Redis does not answer in time.
     *
     * @param operation peek for a look from outside, which changes nothing; ask for a call, which its key then follows to the
     *     numbers of its caller, so that its permits come when its rejection says
     * @param knownNanos as of {@link #look}; 0 to ask in any case
     */
    CompletableFuture<Decision> lookInRedis(String operation, @Nullable String text, Wanted wanted, long knownNanos) {
        if (wanted.permits() == 0) {
            return lookForNothing(operation, text, wanted).thenApply(ScriptReply::decision);
        }
        return parameters().isNever(wanted.permits())
                ? look(operation, text, wanted.withPermits(1), knownNanos)
                        .thenApply(left -> left.withOutcome(ScriptReply.NEVER).decision())
                : look(operation, text, wanted, knownNanos).thenApply(ScriptReply::decision);
    }

    /** Returns the reply to a call of no permits: Redis is asked only for the permits left. */
    CompletableFuture<ScriptReply> lookForNothing(String operation, @Nullable String text, Wanted wanted) {
        return look(operation, text, new Wanted(1, 0), 0L).thenApply(left -> left.withOutcome(0));
    }

    private CompletableFuture<ScriptReply> look(
            String operation, @Nullable String text, Wanted wanted, long knownNanos) {
        ScriptParameters current = parameters();
        if (current.isConstant()) {
            return CompletableFuture.completedFuture(ScriptReply.constant(current));
        }
        String name = name(text);
        PermitRequest call = new PermitRequest(wanted, text);
        if (knownNanos <= 0 || call.exempt()) {
            return ask(name, operation, current, List.of(call)).thenApply(replies -> replies[0]);
        }
        long now = context.ticker().nanos();
        KeyState.Peek peek = states.of(name).peek(current, call, knownNanos, now);
        if (peek.call() != call) {
            return peek.call().thenApply(reply -> peek.at(now, reply));
        }
        ask(name, operation, current, List.of(call)).whenComplete((replies, failure) -> {
            if (failure != null) {
                call.completeExceptionally(failure);
            } else {
                call.complete(replies[0]);
            }
        });
        // A caller that gives up must not do so for the others.
        return call.copy();
    }

    /** Asks Redis about calls under this limit alone. Fails also with a reply that is not of the script. */
    CompletableFuture<ScriptReply[]> ask(
            String name, String operation, ScriptParameters current, List<PermitRequest> calls) {
        return connection()
                .eval(
                        Script.DECIDE,
                        new String[] {current.fullName(name)},
                        current.arguments(operation, connection().time(), calls),
                        reply -> late(name, operation, calls, current.read(reply, calls)))
                .thenApply(reply -> current.read(reply, calls));
    }

    /** Redis has decided about calls after {@link #ask} has failed, and their callers were decided without it. */
    void late(String name, String operation, List<PermitRequest> calls, ScriptReply[] replies) {}

    /** @param current under which the arguments were made */
    CompletableFuture<List<Object>> eval(String name, ScriptParameters current, ScriptArguments args) {
        return connection().eval(Script.DECIDE, new String[] {current.fullName(name)}, args);
    }

    /**
     * A call of no permits is admitted whatever happens without Redis, unless its key is known to be blocked.
     *
     * @param failure the reason why Redis has not decided
     */
    Reservation reserveWithoutRedis(@Nullable String text, Wanted wanted, Throwable failure) {
        ScriptReply fixed = fixed(text, wanted, failure);
        return fixed == null
                ? reserveLocally(text, wanted)
                : new RedisReservation(
                        context.ticker(), waitingRoom, text, wanted.permits(), fixed, end -> () -> fixed, null);
    }

    /** Returns the decision that {@link #reserveWithoutRedis} would make. */
    Decision peekWithoutRedis(@Nullable String text, Wanted wanted, Throwable failure) {
        ScriptReply fixed = fixed(text, wanted, failure);
        return fixed == null ? peekLocally(text, wanted) : fixed.decision();
    }

    private @Nullable ScriptReply fixed(@Nullable String text, Wanted wanted, Throwable failure) {
        ScriptReply blocked = wanted.exempt() ? null : blockedHere(text);
        return blocked != null ? blocked : wanted.permits() == 0 ? null : fixed(failure);
    }

    /**
     * Returns the decision about every call while Redis is away; null when this process decides. A limit that is closed or unlimited
     * decides as ever: Redis has no part in it.
     */
    @Nullable
    ScriptReply fixed(Throwable failure) {
        ScriptParameters current = parameters();
        if (current.isConstant()) {
            return ScriptReply.constant(current);
        }
        Boolean admits = fallback.apply(Replies.cause(failure));
        if (admits == null) {
            return null;
        }
        if (!admits) {
            return ScriptReply.unavailable(current);
        }
        // A limit without places for calls in flight admits none without Redis, either.
        return current.limit().capacity() == 0
                ? ScriptReply.local(ScriptReply.NEVER, 0, current)
                : ScriptReply.local(0, 1, current);
    }

    /**
     * {@inheritDoc} Changes it on this node: until every node uses the new limit, each call is decided by that of its
     * own node. Limits that differ only in numbers decide over one budget; a limit that counts in another way has another
     * one.
     */
    @Override
    public synchronized void update(Limit limit) {
        limit().requireChangeableTo(limit);
        ScriptParameters next = new ScriptParameters(limit, context.ticker(), context.nodes());
        boolean countsAnew = !next.isConstant() && !next.countsAs(counting);
        if (!next.isConstant()) {
            counting = next;
        }
        parameters = next;
        updated(next, countsAnew);
    }

    /** @param countsAnew whether every key has another state from now on */
    void updated(ScriptParameters next, boolean countsAnew) {}

    /** The parameters under which keys may have stored a state. */
    ScriptParameters counting() {
        return counting;
    }

    @Override
    public long nanos() {
        return context.ticker().nanos();
    }

    @Override
    public boolean decidesWith(RateLimiter other) {
        return other instanceof RemoteLimiter remote && remote.connection() == connection();
    }

    @Override
    public List<Reservation> reserveAll(List<Claim> claims, long othersWaitNanos) {
        return new MultiLimitCall(claims, othersWaitNanos, context).reserve();
    }

    @Override
    public List<Decision> look(List<Claim> claims, long knownNanos) {
        return new MultiLimitCall(claims, 0, context).look(knownNanos);
    }

    @Override
    public CompletionStage<List<Reservation>> reserveAllAsync(
            List<Claim> claims, long othersWaitNanos, Callbacks callbacks) {
        return new MultiLimitCall(claims, othersWaitNanos, context).reserveAsync(callbacks);
    }

    @Override
    public int waiting() {
        return waitingRoom.size();
    }
}
