package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.internals.memory.block.BlockObservers;
import io.ratelimited.core.internals.threads.CallbackThreads;
import io.ratelimited.redis.internals.connection.GuardedConnection;
import io.ratelimited.redis.internals.connection.GuardedConnection.DeliveryKind;
import io.ratelimited.redis.internals.connection.Replies;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.limiter.KnownBlocks.Known;
import io.ratelimited.redis.internals.script.ScriptBlocks;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The blocks of a limit on Redis that this node knows of. While Redis decides, each of its replies replaces what is known. While
 * it does not, a known block holds here, and blocks that begin here are owed to Redis: they hold here until it has them. So
 * does a block that Redis has lost, as one that has restarted empty: it hears of all of them before it decides again. Thread-safe.
 */
final class InstanceBlocks {

    /** As many as a connection keeps commands. */
    private static final int MOST_OWED = 20_000;

    /** Pause between looks whether any block is left. */
    private static final long LOOK_MILLIS = 10_000;

    /** No caller has this key: it was forgiven when all blocks of the limit ended for good. */
    private static final String ALL = "\0all";

    /** As in the script. */
    private static final long LEARNED_NANOS = 1_000_000_000;

    private final LimiterContext context;
    private final Function<String, String> names;
    private final Consumer<String> onBegin;
    private final KnownBlocks known;
    private final AtomicBoolean followsRecoveries = new AtomicBoolean();
    private final Runnable recovery = this::tellAll;
    private final BlockObservers observers = new BlockObservers();

    private volatile ScriptParameters parameters;
    /** Blocks that began until then have ended for good, since the limit had none: microseconds since 1970, of Redis. */
    private final AtomicLong liftedMicros = new AtomicLong();
    /** Done when Redis has told this node which blocks have ended for good, or has not answered in time. */
    private volatile CompletableFuture<?> askedWhatWasLifted = CompletableFuture.completedFuture(null);
    /** The latest time of Redis that this node has heard of, less that of its ticker, in microseconds; null for none. */
    private volatile @Nullable Long clockMicros;

    /**
     * @param names the name of a key, from its text
     * @param onBegin is told the text of a key when this node learns that it is blocked: what is remembered of it does not say so
     */
    InstanceBlocks(
            LimiterContext context,
            ScriptParameters parameters,
            Function<String, String> names,
            Consumer<String> onBegin,
            long maximumKeys) {
        this.context = context;
        this.parameters = parameters;
        this.names = names;
        this.onBegin = onBegin;
        this.known = new KnownBlocks(context.ticker(), maximumKeys);
        askWhatWasLifted(parameters);
    }

    /** Other nodes may have known that the limit had no blocks for a while. */
    private void askWhatWasLifted(ScriptParameters current) {
        if (current.blocks() == null) {
            return;
        }
        GuardedConnection connection = context.connection();
        List<String> keys = keys(current, names.apply(ALL));
        Supplier<ScriptArguments> question = () -> current.append(begin(current, "peek"), new PermitRequest(1, 0), 1);
        Consumer<List<Object>> answered =
                reply -> lifted(ScriptBlocks.read(reply).get(0));
        askedWhatWasLifted = connection
                .connected()
                .thenCompose(connected -> connection.eval(Script.DECIDE, keys.toArray(String[]::new), question.get()))
                .thenAccept(answered)
                .exceptionally(failure -> {
                    // No call waits for it again: it is sent before all of them after an outage.
                    connection.deliver(DeliveryKind.BLOCK, keys, question, answered);
                    return null;
                });
    }

    private void lifted(ScriptBlocks.State all) {
        if (all.known() && all.level() == 0) {
            liftedMicros.accumulateAndGet(all.nowMicros() - all.ageNanos() / 1_000, Math::max);
        }
    }

    /**
     * Takes over changed parameters: a limit without blocks ends and forgives all, for good. One that counts anew forgives those
     * that began until now: it may count as before again.
     */
    void update(ScriptParameters next, boolean countsAnew) {
        ScriptParameters before = parameters;
        parameters = next;
        boolean ends = next.blocks() == null;
        if (before.blocks() != null && (ends || countsAnew)) {
            known.forgetAll();
            // Other nodes count anew a little earlier, and their blocks since then hold.
            Consumer<List<Object>> forgiven =
                    ends ? reply -> lifted(ScriptBlocks.read(reply).get(0)) : reply -> {};
            if (ends) {
                liftedMicros.accumulateAndGet(nowMicrosOfRedis(), Math::max);
            }
            context.connection()
                    .deliver(
                            DeliveryKind.BLOCK,
                            keys(before, names.apply(ALL)),
                            () -> before.appendDecided(begin(before, "forgive"), 0, 0, ScriptBlocks.ALL_KEYS),
                            forgiven);
        }
        if (!ends && (before.blocks() == null || countsAnew)) {
            askWhatWasLifted(next);
        }
    }

    void close() {
        context.connection().forget(recovery);
    }

    private long nowMicros() {
        return context.ticker().nanos() / 1_000;
    }

    long liftedMicros() {
        return liftedMicros.get();
    }

    void forget(String text, ScriptParameters current) {
        known.forget(text, current);
    }

    Stream<BlockedKey> all() {
        long now = context.ticker().nanos();
        return running(parameters)
                .map(each -> new BlockedKey(
                        CanonicalKey.ofText(each.text()), Duration.ofNanos(each.left(now)), each.level()));
    }

    /** The blocks that reject calls: under a limit that rejects all or none, those of callers with their own numbers. */
    private Stream<Known> running(ScriptParameters now) {
        return known.allRunning()
                .filter(each -> rule(each.parameters()) != null
                        && (!now.isConstant() || each.parameters().whole() != each.parameters()));
    }

    /**
     * The rule that the limit has now for blocks of keys under numbers that it, or a caller, had. Null if it has no blocks, or counts
     * in another way since.
     */
    private @Nullable ScriptBlocks rule(ScriptParameters then) {
        ScriptParameters now = parameters;
        return then.blocks() != null && (now.isConstant() || now.countsAs(then)) ? now.blocks() : null;
    }

    void observe(Consumer<BlockedKey> observer) {
        observers.add(observer);
    }

    /** The block of a key as this node knows it; null while it is not blocked. */
    private ScriptBlocks.@Nullable State of(@Nullable String text, ScriptParameters current) {
        Known block = known.running(text, current);
        return state(block == null || rule(current) == null ? null : block);
    }

    private ScriptBlocks.@Nullable State state(@Nullable Known block) {
        return block == null
                ? null
                : new ScriptBlocks.State(Math.max(1, block.left(context.ticker().nanos())), block.level());
    }

    /** The rejection by a block that this node knows; null for a key that is not blocked. */
    @Nullable
    ScriptReply refusal(@Nullable String text, ScriptParameters current, Source source) {
        ScriptBlocks.State block = current.isConstant() ? null : of(text, current);
        return block == null ? null : ScriptReply.blocked(block, current, source);
    }

    /** The rejection by a block that holds whatever Redis says, which does not have it yet; null for none. */
    @Nullable
    ScriptReply owed(@Nullable String text, ScriptParameters current) {
        Known block = current.blocks() == null ? null : known.running(text, current);
        return block == null || !block.owed() ? null : refusal(text, current, Source.DENY_CACHE);
    }

    /** What this node knows about a key while it asks Redis, for {@link #learn}. */
    @Nullable
    Known beforeAsking(@Nullable String text, ScriptParameters current) {
        return known.find(text, current);
    }

    /**
     * Takes over what Redis has replied about a key.
     *
     * @param current by which it was asked
     * @param asked what this node knew when it asked. What it has learned since may be newer than the reply: threads take over
     *     replies in any order
     * @return the block that holds here, though Redis did not have it when it replied; null for none. It may have it again by
     *     the time that the reply is looked at
     */
    ScriptBlocks.@Nullable State learn(
            String text, ScriptParameters current, ScriptBlocks.State state, @Nullable Known asked) {
        ScriptBlocks rule = rule(current);
        long now = context.ticker().nanos();
        clockMicros = state.nowMicros() - now / 1_000;
        if (rule == null || (state.level() == 0 && known.find(text, current) == null)) {
            return null;
        }
        boolean[] news = new boolean[2];
        Known after = known.change(text, current, rule, before -> {
            // Redis has begun a higher one since it got the owed one, though its reply to that is still on the way.
            boolean next =
                    before != null && before.left(now) <= 0 && state.leftNanos() > 0 && state.level() > before.level();
            if (before != null && ((before.owed() && !next) || (!before.equals(asked) && !state.known()))) {
                return before;
            }
            // A forgiveness counts for the benefit of the key: this node knows the beginning of a block only nearly.
            long margin = state.level() == 0 ? LEARNED_NANOS : 0;
            boolean later = before != null && now + state.leftNanos() + margin - before.begin() < 0;
            if (before != null && (later || !state.known()) && now - before.end() < rule.quietNanos()) {
                // Redis has lost it: a block that has ended in order has left its level, or its forgiveness.
                news[1] = true;
                return before.owed(true);
            }
            if (!state.known() || state.level() == 0) {
                return null;
            }
            news[0] = state.leftNanos() > 0 && (before == null || before.left(now) <= 0);
            return new Known(text, current, now - state.ageNanos(), now + state.leftNanos(), state.level(), false);
        });
        if (news[1]) {
            tellRedis(current, text);
        }
        if (news[0]) {
            followRecoveries();
            onBegin.accept(text);
        }
        if (state.begunNanos() > 0) {
            tell(new BlockedKey(CanonicalKey.ofText(text), Duration.ofNanos(state.begunNanos()), state.level()));
        }
        return after != null && after.owed() && after.left(now) > 0 ? state(after) : null;
    }

    /** In a thread of the callers' executor, since others may wait for this one; outside of every lock. */
    private void tell(BlockedKey begun) {
        if (observers.isEmpty()) {
            return;
        }
        Runnable task = () -> observers.tell(begun);
        try {
            context.callers().execute(task);
        } catch (RejectedExecutionException ex) {
            CallbackThreads.SHARED.execute(task);
        }
    }

    /**
     * Asks Redis about calls of one key, and for its block.
     *
     * @param budget asks for the budget alone
     * @param late is given a reply that has come after the future has failed
     * @param lost rejects the calls that Redis has admitted because it has lost a block, which this node knows
     */
    CompletableFuture<ScriptReply[]> ask(
            String name,
            String text,
            String operation,
            ScriptParameters current,
            List<PermitRequest> calls,
            Supplier<CompletableFuture<ScriptReply[]>> budget,
            Consumer<ScriptReply[]> late,
            BiFunction<ScriptReply[], ScriptReply, ScriptReply[]> lost) {
        GuardedConnection connection = context.connection();
        CompletableFuture<?> first = askedWhatWasLifted;
        if (!first.isDone() && !connection.isDown()) {
            return first.thenCompose(done -> ask(name, text, operation, current, calls, budget, late, lost));
        }
        Known asked = beforeAsking(text, current);
        return connection
                .eval(
                        Script.DECIDE,
                        keys(current, name).toArray(String[]::new),
                        current.argumentsOfKey(operation, connection.time(), liftedMicros(), calls),
                        reply -> late.accept(read(text, current, calls, reply, asked, lost)))
                .thenApply(reply -> read(text, current, calls, reply, asked, lost))
                .exceptionallyCompose(failure -> Replies.areKeysApart(failure)
                        ? askForBudget(text, operation, current, calls, budget)
                        : CompletableFuture.failedFuture(failure));
    }

    private ScriptReply[] read(
            String text,
            ScriptParameters current,
            List<PermitRequest> calls,
            List<Object> reply,
            @Nullable Known asked,
            BiFunction<ScriptReply[], ScriptReply, ScriptReply[]> lost) {
        ScriptBlocks.State state = ScriptBlocks.read(reply).get(0);
        ScriptBlocks.State here = learn(text, current, state, asked);
        ScriptReply[] replies = current.read(ScriptBlocks.without(reply), calls, state);
        return here == null ? replies : lost.apply(replies, ScriptReply.blocked(here, current, Source.DENY_CACHE));
    }

    /**
     * Asks Redis for the budget alone, while its slot moves and no script may have two keys. A block that this node knows holds,
     * and one that begins is owed.
     */
    private CompletableFuture<ScriptReply[]> askForBudget(
            String text,
            String operation,
            ScriptParameters current,
            List<PermitRequest> calls,
            Supplier<CompletableFuture<ScriptReply[]>> budget) {
        ScriptReply blocked = refusal(text, current, Source.DENY_CACHE);
        if (blocked != null && calls.stream().noneMatch(PermitRequest::exempt)) {
            ScriptReply[] all = new ScriptReply[calls.size()];
            Arrays.fill(all, blocked);
            return CompletableFuture.completedFuture(all);
        }
        return budget.get().thenApply(replies -> {
            for (int i = 0; i < replies.length; i++) {
                PermitRequest call = calls.get(i);
                // How long a call would have had to wait is not known exactly here: one that is patient gets the
                // benefit.
                if (operation.equals("take")
                        && replies[i].hasRetry()
                        && call.patienceMicros() == call.maxWaitMicros()
                        && byRefusal(current, call.exempt())) {
                    replies[i] = replies[i].withBlock(offend(current, text));
                }
            }
            return replies;
        });
    }

    /** As {@link RateLimiter#refused}, for a call that Redis has rejected. */
    Decision refused(ScriptParameters current, String text, String name, Wanted wanted, Decision refusal) {
        // A rejection that was remembered has begun a block before.
        if (!refusal.blocked()
                && refusal.retryAfter() != null
                && refusal.source() == Source.REDIS
                && byRefusal(current, wanted.exempt())) {
            PermitRequest call = new PermitRequest(wanted, text);
            deliver(
                    DeliveryKind.OFFENCE,
                    current,
                    text,
                    keys(current, name),
                    () -> current.append(begin(current, "offend"), call, 1));
        }
        return refusal;
    }

    /**
     * Notes that a call uses what Redis has granted it before its other limits have decided.
     *
     * @param since when Redis has granted it: microseconds since 1970, of Redis
     */
    void kept(ScriptParameters then, String text, String name, long since) {
        deliver(
                DeliveryKind.OFFENCE,
                then,
                text,
                keys(then, name),
                () -> then.appendDecided(begin(then, "keep"), 0, since, ""));
    }

    /** Returns whether a rejected call may begin a block. */
    static boolean byRefusal(ScriptParameters current, boolean exempt) {
        ScriptBlocks own = current.blocks();
        return own != null && own.byRefusal() && !exempt && !current.isConstant();
    }

    /** Returns whether what calls of a key are charged may begin a block. */
    static boolean byCharge(ScriptParameters current, @Nullable String text) {
        ScriptBlocks own = current.blocks();
        return own != null && !own.byRefusal() && text != null && !current.isConstant();
    }

    /**
     * Notes what a call that Redis has admitted was charged when it ended.
     *
     * @param reservedAt when it reserved: microseconds since 1970, of Redis; 0 if that is not known
     * @param taken the decision about the call
     */
    void charged(
            ScriptParameters current,
            @Nullable String text,
            String name,
            RedisReservation.Settlement end,
            Wanted wanted,
            long reservedAt,
            ScriptReply taken) {
        boolean judged = end.isJudged(wanted.permits()) && !wanted.exempt();
        boolean nothing = end.reserved() == 0 && end.excess() <= 0 && !judged;
        if (nothing || text == null || !byCharge(current, text)) {
            return;
        }
        // A limit that counts in another way begins anew.
        long reserved = taken.parameters().countsAs(current) ? end.reserved() : 0;
        long grantedAt = reservedAt + Math.max(0, taken.outcome()) / 1_000;
        String tail = reservedAt + " " + grantedAt + " " + scripted(reserved) + " "
                + scripted(Math.max(0, end.excess())) + (judged ? "" : ScriptBlocks.NO_VIOLATION);
        deliver(
                DeliveryKind.OFFENCE,
                current,
                text,
                keys(current, name),
                () -> current.appendDecided(
                        begin(current, "settle"), 0, PermitRequest.micros(wanted.patience()), tail));
    }

    /** Scripts count no more. */
    private static long scripted(long permits) {
        return Math.max(-ScriptParameters.MAX_PERMITS, Math.min(ScriptParameters.MAX_PERMITS, permits));
    }

    /** The time of Redis as far as this node knows it: microseconds since 1970; 0 if it does not. */
    long nowMicrosOfRedis() {
        Long clock = clockMicros;
        return clock == null ? 0 : clock + nowMicros();
    }

    /** Begins a block here, if the key is not blocked, and owes it to Redis. Returns the block of the key. */
    ScriptBlocks.@Nullable State offend(ScriptParameters current, String text) {
        ScriptBlocks rule = rule(current);
        if (rule == null) {
            return null;
        }
        Known begun = known.begin(text, current, rule);
        if (begun != null) {
            followRecoveries();
            onBegin.accept(text);
            tell(new BlockedKey(
                    CanonicalKey.ofText(text), Duration.ofNanos(begun.end() - begun.begin()), begun.level()));
            tellRedis(current, text);
        }
        return of(text, current);
    }

    /** Has Redis take over a block that this node knows, now or as soon as it decides. */
    private void tellRedis(ScriptParameters current, String text) {
        deliver(DeliveryKind.BLOCK, current, text, keys(current, names.apply(text)), () -> imposed(current, text));
    }

    private @Nullable ScriptArguments imposed(ScriptParameters current, String text) {
        ScriptBlocks rule = rule(current);
        Known block = rule == null ? null : known.last(text, current, rule);
        if (block == null) {
            return null;
        }
        long left = block.left(context.ticker().nanos());
        return begin(current, "impose")
                .addPacked(
                        "",
                        1,
                        block.level(),
                        (Math.max(0, left) + 999) / 1_000,
                        Math.max(0, -left) / 1_000,
                        (block.end() - block.begin()) / 1_000);
    }

    private void followRecoveries() {
        if (!followsRecoveries.get() && followsRecoveries.compareAndSet(false, true)) {
            context.connection().onRecovery(recovery);
            forgetAfterAWhile();
        }
    }

    /** Without a block there is nothing to tell: the connection would keep a limiter that nobody uses any more. */
    private void forgetAfterAWhile() {
        context.connection().later(LOOK_MILLIS, () -> {
            if (isAnyRunning()) {
                forgetAfterAWhile();
                return;
            }
            context.connection().forget(recovery);
            followsRecoveries.set(false);
            // One may have begun meanwhile, and have taken the recoveries for followed.
            if (isAnyRunning()) {
                followRecoveries();
            }
        });
    }

    private boolean isAnyRunning() {
        return known.allRunning().findAny().isPresent();
    }

    /** Tells Redis of all blocks that run before it decides again: it may have lost them. */
    private void tellAll() {
        ScriptParameters now = parameters;
        running(now)
                .filter(each -> !each.owed())
                .limit(MOST_OWED)
                .forEach(each -> tellRedis(now.isConstant() ? each.parameters() : now, each.text()));
    }

    private ScriptArguments begin(ScriptParameters current, String operation) {
        return current.begin(operation, context.connection().time(), liftedMicros());
    }

    private static List<String> keys(ScriptParameters current, String name) {
        String fullName = current.fullName(name);
        return List.of(fullName, ScriptBlocks.fullName(fullName));
    }

    private void deliver(
            DeliveryKind kind,
            ScriptParameters current,
            String text,
            List<String> keys,
            Supplier<@Nullable ScriptArguments> arguments) {
        context.connection().deliver(kind, keys, arguments, reply -> {
            ScriptBlocks rule = current.blocks();
            if (kind == DeliveryKind.BLOCK && rule != null) {
                known.change(
                        text, current, rule, before -> before == null || !before.owed() ? before : before.owed(false));
            }
            learn(text, current, ScriptBlocks.read(reply).get(0), beforeAsking(text, current));
        });
    }

    /** Forgets all of a key in Redis, so that every node learns of it. Fails when Redis does not answer in time. */
    CompletableFuture<?> forgive(ScriptParameters current, String name) {
        GuardedConnection connection = context.connection();
        List<String> all = keys(current, name);
        if (current.blocks() == null) {
            return CompletableFuture.allOf(all.stream().map(connection::delete).toArray(CompletableFuture<?>[]::new));
        }
        ScriptArguments args = current.appendDecided(begin(current, "forgive"), 0, 0, "");
        return connection.eval(Script.DECIDE, all.toArray(String[]::new), args);
    }
}
