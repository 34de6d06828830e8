package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.Call;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.InvalidLimitException;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.redis.internals.connection.GuardedConnection.DeliveryKind;
import io.ratelimited.redis.internals.connection.Replies;
import io.ratelimited.redis.internals.limiter.RedisReservation.Charge;
import io.ratelimited.redis.internals.script.ScriptBlocks;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Decides in Redis, for every node that uses the same limit there: one script call a decision, or less, since permits are
 * leased, a refusal is remembered until its retry-after, and calls of one key that arrive together are decided together.
 * For limits that count over time; {@link RedisConcurrencyLimiter} counts calls in flight.
 */
public final class RedisRateLimiter extends RemoteLimiter {

    private final double maxOvershoot;
    final InstanceBlocks blocks;
    private final LocalFallback local;
    /** The limiter of all callers; null for this. */
    private final @Nullable RedisRateLimiter whole;
    /** Makes the limit of callers with their own numbers from that of all. */
    private final UnaryOperator<Limit> numbers;

    private volatile @Nullable Own own;
    /** Whether any call has cost more than it had reserved, by this instance; of the limiter of all callers. */
    private volatile boolean overdrawn;
    /** By whose numbers keys have called last; of the limiter of all callers. */
    private final LastCallers<RedisRateLimiter> lastCallers;
    /** The numbers of callers by the names of their states, which differ where the limit has no windows; of the limiter of all. */
    private final Map<String, ScriptParameters> callersStates;

    /** The numbers of some callers, made from those of all. */
    private record Own(ScriptParameters all, ScriptParameters callers) {}

    /**
     * @param tier the tier that has these budgets; empty for the limit itself
     * @param fallback as of {@link RemoteLimiter}
     * @param maxOvershoot the share of a period's permits by which the cluster may exceed the limit; 0 for none, which a
     *     limit with blocks always has: permits that nodes hold would hide who is over it
     * @param maximumKeys keys remembered in this process at the most
     */
    public RedisRateLimiter(
            LimiterContext context,
            Limit limit,
            String tier,
            Function<Throwable, @Nullable Boolean> fallback,
            double maxOvershoot,
            long maximumKeys) {
        super(context, limit, tier, fallback, maximumKeys);
        this.whole = null;
        this.numbers = UnaryOperator.identity();
        this.lastCallers = new LastCallers<>();
        this.callersStates = new ConcurrentHashMap<>();
        this.maxOvershoot = maxOvershoot;
        this.blocks = new InstanceBlocks(context, parameters(), this::name, text -> changed(name(text)), maximumKeys);
        this.local = new LocalFallback(context, parameters(), waitingRoom(), blocks, maximumKeys);
    }

    private RedisRateLimiter(RedisRateLimiter whole, UnaryOperator<Limit> numbers) {
        super(whole);
        this.whole = whole;
        this.numbers = numbers;
        this.lastCallers = whole.lastCallers;
        this.callersStates = whole.callersStates;
        this.maxOvershoot = whole.maxOvershoot;
        this.blocks = whole.blocks;
        this.local = whole.local;
        ScriptParameters all = whole.parameters();
        this.own = new Own(all, parameters(all, numbers.apply(all.limit())));
    }

    private ScriptParameters parameters(ScriptParameters all, Limit limit) {
        ScriptParameters callers =
                new ScriptParameters(limit, context().ticker(), context().nodes(), all);
        if (!callers.isConstant()) {
            callersStates.put(callers.fullName(""), callers);
        }
        return callers;
    }

    @Override
    public RateLimiter ofCallers(UnaryOperator<Limit> own) {
        return new RedisRateLimiter(whole == null ? this : whole, own);
    }

    @Override
    public RateLimiter ofKnownCaller(Object key) {
        return lastOf(CanonicalKey.textOrNull(key));
    }

    @Override
    public Object budgets() {
        return whole == null ? this : whole;
    }

    /** The limiter by which a key has called last, as far as this node remembers it. */
    private RedisRateLimiter lastOf(@Nullable String text) {
        RedisRateLimiter last = text == null ? null : lastCallers.of(text);
        return last == null ? this : last;
    }

    @Override
    ScriptParameters parameters() {
        if (whole == null) {
            return super.parameters();
        }
        ScriptParameters all = whole.parameters();
        Own known = own;
        return known != null && known.all == all ? known.callers : changed(all);
    }

    /** The numbers after a change of the limit; its own if it cannot have them. */
    private synchronized ScriptParameters changed(ScriptParameters all) {
        Own known = own;
        if (known == null || known.all != all) {
            try {
                known = new Own(all, parameters(all, numbers.apply(all.limit())));
            } catch (InvalidLimitException ex) {
                known = new Own(all, all);
            }
            own = known;
        }
        return known.callers;
    }

    @Override
    ScriptParameters counting() {
        return whole == null ? super.counting() : whole.counting();
    }

    @Override
    Wanted wanted(@Nullable String text, Call call) {
        lastCallers.add(text, this, whole != null);
        return super.wanted(text, call);
    }

    @Override
    public synchronized void update(Limit limit) {
        if (whole != null) {
            throw new UnsupportedOperationException("numbers of callers follow their limit");
        }
        super.update(limit);
    }

    @Override
    public boolean tryAcquire(@Nullable Object key, long permits) {
        Reservation taken = reserve(key, permits, 0);
        taken.release();
        return !taken.isRefused();
    }

    /** Asks Redis for its decision about a call, in no other thread: sends it the script, and loads the classes. */
    public CompletableFuture<?> decideOnce() {
        return lookInRedis("peek", null, new Wanted(1, 0), 0);
    }

    @Override
    CompletableFuture<Reservation> reserveInRedis(@Nullable String text, Wanted wanted) {
        String name = name(text);
        ScriptReply known = wanted.permits() == 0 ? null : known(text, name, wanted);
        if (known != null) {
            return CompletableFuture.completedFuture(reservation(name, text, wanted, known));
        }
        if (wanted.permits() == 0) {
            return lookForNothing("ask", text, wanted).thenApply(reply -> reservation(name, text, wanted, reply));
        }
        PermitRequest request = submit(name, text, wanted);
        connection().limitTime(request, connection().health()::timedOut);
        return request.thenApply(reply -> reservation(name, text, wanted, reply));
    }

    /**
     * {@inheritDoc} It is rejected while its key is blocked. Where calls are charged, it waits or is rejected until its key owes no
     * permits; elsewhere it owes none, however many calls wait before it.
     */
    @Override
    CompletableFuture<ScriptReply> lookForNothing(String operation, @Nullable String text, Wanted wanted) {
        ScriptParameters current = parameters();
        boolean charged = current.limit().isCharged() || (whole == null ? this : whole).overdrawn;
        if (current.isConstant() && charged) {
            return CompletableFuture.completedFuture(ScriptReply.constant(current));
        }
        if (current.isConstant() || (current.blocks() == null && !charged)) {
            return super.lookForNothing(operation, text, wanted);
        }
        ScriptReply owed = wanted.exempt() ? null : blocks.owed(text, current);
        if (owed != null) {
            return CompletableFuture.completedFuture(owed);
        }
        Wanted asked = charged ? wanted : wanted.withPermits(1);
        return ask(name(text), operation, current, List.of(new PermitRequest(asked, text)))
                .thenApply(replies -> charged ? replies[0] : replies[0].byBlockAlone());
    }

    Reservation reservation(String name, @Nullable String text, Wanted wanted, ScriptReply reply) {
        long reservedAt = reply.decidedAt() > 0 ? reply.decidedAt() : blocks.nowMicrosOfRedis();
        Charge charge = end -> {
            if (end.excess() > 0) {
                lastOf(text).charge(name, end.excess());
            } else if (end.excess() < 0) {
                giveBack(name, -end.excess(), reply, end.undecided() ? reply.decidedAt() : 0);
            }
            blocks.charged(parameters(), text, name, end, wanted, reservedAt, reply);
            return () -> reply.settled(end.excess(), end.elapsed());
        };
        Runnable keep = text != null && wanted.undecided() && wanted.permits() > 0 && isHeld(reply)
                ? () -> blocks.kept(reply.parameters(), text, name, reply.decidedAt())
                : null;
        return new RedisReservation(context().ticker(), waitingRoom(), text, wanted.permits(), reply, charge, keep);
    }

    /** Returns whether Redis knows of permits, if their call is undecided. */
    private static boolean isHeld(ScriptReply reply) {
        return reply.admitted() && reply.decidedAt() > 0 && InstanceBlocks.byRefusal(reply.parameters(), false);
    }

    /** Returns a decision that needs no reply of Redis; null when it has to be asked. */
    private @Nullable ScriptReply known(@Nullable String text, String name, Wanted wanted) {
        ScriptParameters current = parameters();
        ScriptReply owed = wanted.exempt() ? null : blocks.owed(text, current);
        if (owed != null) {
            return owed;
        }
        if (maxOvershoot > 0
                && current.blocks() == null
                && Lease.length(current.limit(), maxOvershoot) > 0
                && !current.isConstant()
                && !current.isNever(wanted.permits())) {
            ScriptReply leased = states().of(name)
                    .takeLeased(current, wanted.permits(), context().ticker().nanos());
            if (leased != null) {
                return leased;
            }
        }
        return knownUnleased(name, current, wanted);
    }

    /** {@link #known}, for a call that pays in Redis if it goes. */
    @Nullable
    ScriptReply knownUnleased(String name, ScriptParameters current, Wanted wanted) {
        if (current.isConstant()) {
            return ScriptReply.constant(current);
        }
        KeyState state = states().find(name);
        Denial denial = state == null || current.isNever(wanted.permits()) ? null : state.denial();
        return denial == null
                ? null
                : denial.refusal(current, wanted, context().ticker().nanos());
    }

    /** Asks Redis also for the block of the key, if it can be blocked. */
    @Override
    CompletableFuture<ScriptReply[]> ask(
            String name, String operation, ScriptParameters current, List<PermitRequest> calls) {
        String text = calls.get(0).text();
        if (current.blocks() == null || text == null) {
            return super.ask(name, operation, current, calls);
        }
        return blocks.ask(
                        name,
                        text,
                        operation,
                        current,
                        calls,
                        () -> super.ask(name, operation, current, calls),
                        replies -> late(name, operation, calls, replies),
                        (replies, owed) -> rejected(name, operation, calls, replies, owed))
                .thenApply(replies -> rejected(name, operation, calls, replies, blocks.owed(text, current)));
    }

    /** Rejects what Redis has admitted because it did not know of a block, and says of the other calls that they are blocked. */
    private ScriptReply[] rejected(
            String name,
            String operation,
            List<PermitRequest> calls,
            ScriptReply[] replies,
            @Nullable ScriptReply owed) {
        for (int i = 0; owed != null && i < replies.length; i++) {
            if (calls.get(i).exempt() || replies[i].block() != null) {
                continue;
            }
            if (replies[i].admitted() && operation.equals("take")) {
                giveBack(calls.get(i), name, replies[i]);
            }
            replies[i] = replies[i].admitted() ? owed : replies[i].withBlock(owed.block());
        }
        return replies;
    }

    /** {@inheritDoc} Gives back what it has taken for them, also what this node would have leased; the last grant first. */
    @Override
    void late(String name, String operation, List<PermitRequest> calls, ScriptReply[] replies) {
        for (int i = replies.length - 1; operation.equals("take") && i >= 0; i--) {
            if (replies[i].admitted() && calls.get(i).refunded() == null) {
                giveBack(calls.get(i), name, replies[i]);
            }
        }
    }

    private void giveBack(PermitRequest call, String name, ScriptReply taken) {
        giveBack(name, call.permits(), taken, call.undecided() && isHeld(taken) ? taken.decidedAt() : 0);
    }

    /** Asks Redis, together with other calls of the key. */
    private PermitRequest submit(String name, @Nullable String text, Wanted wanted) {
        PermitRequest call = new PermitRequest(wanted, text, this);
        ScriptParameters current = parameters();
        if (connection().isDown(name)) {
            call.completeExceptionally(Replies.notSent("not called, because it has just failed"));
        } else if (current.isNever(wanted.permits())) {
            never(call, name, current);
        } else {
            join(call, name);
        }
        return call;
    }

    void join(PermitRequest call, String name) {
        while (true) {
            KeyState state = states().of(name);
            switch (state.join(call, !connection().isFar(name))) {
                case SENDS -> {
                    sendNext(state);
                    return;
                }
                case WAITS -> {
                    return;
                }
                case NOT -> states().release(state);
            }
        }
    }

    /** Sends the calls that wait. Only a caller that is to send, or was answered last, may do so. */
    private void sendNext(KeyState state) {
        for (List<PermitRequest> batch = state.next(); batch != null; batch = state.next()) {
            RedisRateLimiter limiter = batch.get(0).limiter() instanceof RedisRateLimiter own ? own : this;
            ScriptParameters current = limiter.parameters();
            batch.removeIf(call -> limiter.isDecided(call, state, current));
            if (!batch.isEmpty()) {
                limiter.send(batch, state, current);
                return;
            }
        }
        states().release(state);
    }

    /** Returns whether a call was given up, or decided without the script, while it waited. */
    private boolean isDecided(PermitRequest call, KeyState state, ScriptParameters current) {
        if (call.isDone()) {
            return true;
        }
        if (current.isConstant()) {
            // The limit was closed, or made unlimited: the script counts by none of the two.
            call.complete(ScriptReply.constant(current));
            return true;
        }
        if (current.isNever(call.permits())) {
            // The limit has become smaller.
            never(call, state.name(), current);
            return true;
        }
        ScriptReply leased = state.takeLate(current, call.permits(), context().ticker());
        if (leased != null) {
            answer(call, state.name(), leased);
        }
        return leased != null;
    }

    private void send(List<PermitRequest> batch, KeyState state, ScriptParameters current) {
        long sentAt = context().ticker().nanos();
        Lease.Wish wish = maxOvershoot == 0 || current.blocks() != null
                ? null
                : state.wish(
                        current,
                        Lease.length(current.limit(), maxOvershoot),
                        context().nodes().sharers(),
                        sentAt);
        List<PermitRequest> calls = wish == null ? batch : wish.around(batch);
        ask(state.name(), "take", current, calls).whenComplete((replies, failure) -> {
            if (failure != null) {
                state.settled(wish);
                fail(batch, state, failure);
                return;
            }
            int first = calls.indexOf(batch.get(0));
            state.decided(batch, replies, first, sentAt, wish);
            // All of them before the next script call is made, so that those who ask again at once are part of it.
            for (int i = 0; i < batch.size(); i++) {
                answer(batch.get(i), state.name(), replies[first + i]);
            }
            sendNext(state);
        });
    }

    private void answer(PermitRequest call, String name, ScriptReply reply) {
        if (!call.complete(reply) && reply.admitted()) {
            // The caller has given up and was decided otherwise; nobody else could give the permits back.
            giveBack(call, name, reply);
        }
    }

    private void fail(List<PermitRequest> batch, KeyState state, Throwable failure) {
        boolean silent = Replies.cause(failure) instanceof TimeoutException || Replies.isNotSent(failure);
        List<PermitRequest> behind = silent ? state.giveUp() : List.of();
        sendNext(state);
        batch.forEach(call -> call.completeExceptionally(failure));
        behind.forEach(call -> call.completeExceptionally(failure));
    }

    /** Refuses a call for good; Redis is asked only for the permits left. */
    private void never(PermitRequest call, String name, ScriptParameters current) {
        ask(name, "peek", current, List.of(new PermitRequest(new Wanted(1, 0), call.text())))
                .whenComplete((replies, failure) -> {
                    if (failure != null) {
                        call.completeExceptionally(failure);
                    } else {
                        call.complete(replies[0].withOutcome(ScriptReply.NEVER));
                    }
                });
    }

    /** Takes permits that have been used already, into debt if need be, now or as soon as Redis answers. */
    void charge(String name, long permits) {
        (whole == null ? this : whole).overdrawn = true;
        local.charge(this::parameters, name, permits);
        changed(name);
    }

    /**
     * Gives back permits of a grant that nobody has reserved behind it, at the latest after an outage; none after a change of
     * the limit. Not repeated when the reply is lost, because permits given back twice would be permits too many.
     *
     * @param undecidedSince when Redis has granted them to a call that is not decided yet; 0 for other calls
     */
    void giveBack(String name, long permits, ScriptReply taken, long undecidedSince) {
        String mark = taken.mark().toString();
        if (mark.isEmpty()) {
            KeyState state = taken.source() == Source.LEASE ? states().find(name) : null;
            if (state != null) {
                state.returnLeased(permits, taken);
            }
            return;
        }
        ScriptParameters then = taken.parameters();
        if (then != parameters()) {
            return;
        }
        String fullName = then.fullName(name);
        boolean undecided = undecidedSince > 0;
        connection()
                .deliver(
                        DeliveryKind.GIVE_BACK,
                        undecided ? List.of(fullName, ScriptBlocks.fullName(fullName)) : List.of(fullName),
                        () -> then.appendDecided(
                                undecided
                                        ? then.begin("cancel", connection().time(), blocks.liftedMicros())
                                        : then.begin("cancel", connection().time()),
                                permits,
                                undecidedSince,
                                mark),
                        // Again, since it may have been kept while others were sent.
                        reply -> changed(name));
        changed(name);
    }

    /** Notes that there are other permits of a key than Redis has replied, or will reply to calls that are on their way. */
    private void changed(String name) {
        states().changed(name, nanos());
    }

    @Override
    Reservation reserveLocally(@Nullable String text, Wanted wanted) {
        return local.reserve(parameters(), text, name(text), wanted, latest(text));
    }

    /** The numbers that a key has whenever they are asked for. */
    private Supplier<ScriptParameters> latest(@Nullable String text) {
        return () -> lastOf(text).parameters();
    }

    @Override
    Decision peekLocally(@Nullable String text, Wanted wanted) {
        return local.peek(parameters(), text, name(text), wanted);
    }

    @Override
    @Nullable
    ScriptReply blockedHere(@Nullable String text) {
        return blocks.refusal(text, parameters(), Source.FALLBACK);
    }

    @Override
    CompletableFuture<Decision> lookInRedis(String operation, @Nullable String text, Wanted wanted, long knownNanos) {
        ScriptReply owed = wanted.permits() == 0 || wanted.exempt() ? null : blocks.owed(text, parameters());
        return owed == null
                ? super.lookInRedis(operation, text, wanted, knownNanos)
                : CompletableFuture.completedFuture(owed.decision());
    }

    /** {@inheritDoc} In Redis the block begins with one more command, which nobody waits for. */
    @Override
    public Decision refused(Call call, Decision refusal) {
        String text = CanonicalKey.textOrNull(call.key());
        if (refusal.source() == Source.FALLBACK) {
            return local.refused(parameters(), text, name(text), wanted(text, call), latest(text), refusal);
        }
        return text == null ? refusal : blocks.refused(parameters(), text, name(text), wanted(text, call), refusal);
    }

    /** {@inheritDoc} None of a key that has last called by numbers which reject all calls or none: these block nobody. */
    @Override
    public Stream<BlockedKey> blockedKeys() {
        return blocks.all().filter(each -> {
            RedisRateLimiter last = lastCallers.of(each.key().toString());
            return last == null || !last.parameters().isConstant();
        });
    }

    @Override
    public void onBlock(Consumer<BlockedKey> observer) {
        blocks.observe(observer);
    }

    @Override
    void updated(ScriptParameters next, boolean countsAnew) {
        blocks.update(next, countsAnew);
    }

    @Override
    public void close() {
        if (whole == null) {
            blocks.close();
            super.close();
        }
    }

    /**
     * {@inheritDoc} On every node: others remember a refusal for one second at the most. Where the limit has no windows, those of
     * callers with their own numbers are reset whose period this node has seen. Throws {@code RedisUnavailableException} when Redis
     * does not answer in time.
     */
    @Override
    public void reset(@Nullable Object key) {
        String text = CanonicalKey.textOrNull(key);
        String name = name(text);
        Map<String, ScriptParameters> states = new HashMap<>(callersStates);
        states.put(counting().fullName(""), counting());
        states.values().forEach(each -> local.reset(text, each.fullName(name)));
        try {
            forgetBlocks(text, states.values());
            connection()
                    .await(CompletableFuture.allOf(states.values().stream()
                            .map(each -> text == null
                                    ? connection().delete(each.fullName(name))
                                    : blocks.forgive(each, name))
                            .toArray(CompletableFuture<?>[]::new)));
            // A reply may have come between.
            forgetBlocks(text, states.values());
        } catch (ExecutionException ex) {
            throw context().unavailable().apply("limit '" + limit().name() + "' could not be reset", Replies.cause(ex));
        } finally {
            changed(name);
        }
    }

    private void forgetBlocks(@Nullable String text, Collection<ScriptParameters> states) {
        if (text != null) {
            states.forEach(each -> blocks.forget(text, each));
        }
    }

    /** Keys of which this process remembers something; the cells are in Redis. */
    @Override
    public long keys() {
        return states().size() + local.keys();
    }
}
