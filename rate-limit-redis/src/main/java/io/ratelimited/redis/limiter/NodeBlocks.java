package io.ratelimited.redis.limiter;

import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.memory.block.BlockObservers;
import io.ratelimited.core.memory.block.KeyBlocks;
import io.ratelimited.redis.connection.GuardedConnection;
import io.ratelimited.redis.connection.GuardedConnection.DeliveryKind;
import io.ratelimited.redis.connection.Replies;
import io.ratelimited.redis.connection.Script;
import io.ratelimited.redis.connection.ScriptArguments;
import io.ratelimited.redis.script.ScriptBlocks;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The blocks of a limit on Redis that this node knows of. While Redis decides, each of its replies replaces what is known. While
 * it does not, a known block holds here, and blocks that begin here are owed to Redis: they hold here until it has them.
 * Thread-safe.
 */
final class NodeBlocks {

    /** As many as a connection keeps commands. */
    private static final int MOST_OWED = 20_000;

    private final LimiterContext context;
    private final KeyBlocks known;
    /** Texts of keys whose block began here, as long as Redis has not replied that it has it: until then it holds here. */
    private final Set<String> owed = ConcurrentHashMap.newKeySet();

    private final BlockObservers observers = new BlockObservers();

    NodeBlocks(LimiterContext context, Limit limit, long maximumKeys) {
        this.context = context;
        this.known = new KeyBlocks(limit, context.ticker(), () -> maximumKeys);
    }

    void update(Limit limit) {
        known.update(limit);
    }

    void forget(@Nullable String text) {
        known.forget(text);
        if (text != null) {
            owed.remove(text);
        }
    }

    Stream<BlockedKey> all() {
        return known.all();
    }

    void observe(Consumer<BlockedKey> observer) {
        observers.add(observer);
    }

    /** The block of a key as this node knows it; null while it is not blocked. */
    ScriptBlocks.@Nullable State of(@Nullable String text) {
        BlockedKey block = known.of(text);
        return block == null ? null : new ScriptBlocks.State(block.left().toNanos(), block.level(), 0);
    }

    /** The refusal by a block that this node knows; null for a key that is not blocked. */
    @Nullable
    ScriptReply refusal(@Nullable String text, ScriptParameters current, Source source) {
        ScriptBlocks.State block = of(text);
        return block == null ? null : ScriptReply.blocked(block, current, source);
    }

    /** The refusal by a block that holds whatever Redis says, which does not have it yet; null for none. */
    @Nullable
    ScriptReply owed(@Nullable String text, ScriptParameters current) {
        return text != null && isOwed(text) ? refusal(text, current, Source.DENY_CACHE) : null;
    }

    private boolean isOwed(String text) {
        if (owed.isEmpty() || !owed.contains(text)) {
            return false;
        }
        boolean holds = known.of(text) != null;
        if (!holds) {
            owed.remove(text);
        }
        return holds;
    }

    /** Takes over what Redis has replied about a key. */
    void learn(String text, ScriptBlocks.State state) {
        if (isOwed(text)) {
            return;
        }
        if (state.leftNanos() > 0) {
            known.learn(text, state.leftNanos(), state.level());
        } else if (known.of(text) != null) {
            known.forget(text);
        }
        if (state.begunNanos() > 0) {
            tell(new BlockedKey(CanonicalKey.ofText(text), Duration.ofNanos(state.begunNanos()), state.level()));
        }
    }

    /** Replies may come on a thread that others wait for. */
    private void tell(BlockedKey begun) {
        if (!observers.isEmpty()) {
            try {
                context.callers().execute(() -> observers.tell(begun));
            } catch (RejectedExecutionException ex) {
                // The application ends.
            }
        }
    }

    /**
     * Asks Redis about calls of one key, and for its block.
     *
     * @param budget asks for the budget alone
     */
    CompletableFuture<ScriptReply[]> ask(
            String name,
            String text,
            String operation,
            ScriptParameters current,
            List<PermitRequest> calls,
            Supplier<CompletableFuture<ScriptReply[]>> budget) {
        GuardedConnection connection = context.connection();
        String[] keys = {current.fullName(name), ScriptBlocks.fullName(name)};
        return connection
                .eval(Script.DECIDE, keys, current.argumentsOfKey(operation, connection.time(), calls))
                .thenApply(reply -> {
                    ScriptBlocks.State state = ScriptBlocks.read(reply).get(0);
                    learn(text, state);
                    return current.read(ScriptBlocks.without(reply), calls, state);
                })
                .exceptionallyCompose(failure -> Replies.isBetweenServers(failure)
                        ? askForBudget(name, text, operation, current, calls, budget)
                        : CompletableFuture.failedFuture(failure));
    }

    /**
     * Asks Redis for the budget alone, while its slot moves and no script may have two keys. A block that this node knows holds,
     * and one that begins is owed.
     */
    private CompletableFuture<ScriptReply[]> askForBudget(
            String name,
            String text,
            String operation,
            ScriptParameters current,
            List<PermitRequest> calls,
            Supplier<CompletableFuture<ScriptReply[]>> budget) {
        ScriptReply blocked = refusal(text, current, Source.DENY_CACHE);
        if (blocked != null) {
            ScriptReply[] all = new ScriptReply[calls.size()];
            Arrays.fill(all, blocked);
            return CompletableFuture.completedFuture(all);
        }
        return budget.get().thenApply(replies -> {
            for (int i = 0; i < replies.length; i++) {
                if (operation.equals("take")
                        && replies[i].hasRetry()
                        && isOffence(current, calls.get(i).offends() ? 0 : PermitRequest.CROWDED)) {
                    replies[i] = replies[i].withBlock(offend(current, text, name));
                }
            }
            return replies;
        });
    }

    /** As {@link RateLimiter#refused}. */
    Decision refused(ScriptParameters current, String text, String name, long permits, long maxWait, Decision refusal) {
        if (refusal.blocked() || refusal.retryAfter() == null || !isOffence(current, maxWait)) {
            return refusal;
        }
        if (refusal.source() == Source.FALLBACK) {
            ScriptBlocks.State block = offend(current, text, name);
            return block == null ? refusal : refusal.blockedFor(Duration.ofNanos(block.leftNanos()));
        }
        // A refusal that was remembered has begun a block before.
        if (refusal.source() == Source.REDIS) {
            deliverOffence(current, text, name, new PermitRequest(permits, maxWait));
        }
        return refusal;
    }

    /** Returns whether a call that is refused begins a block. */
    static boolean isOffence(ScriptParameters current, long maxWait) {
        ScriptBlocks own = current.blocks();
        return own != null && own.byRefusal() && maxWait != PermitRequest.CROWDED && !current.isConstant();
    }

    /** Returns whether a charge that leaves the key without a permit begins a block. */
    static boolean isByCharge(ScriptParameters current, @Nullable String text) {
        ScriptBlocks own = current.blocks();
        return own != null && !own.byRefusal() && text != null && !current.isConstant();
    }

    /** Notes what a call that Redis has admitted was charged in all. */
    void charged(ScriptParameters current, @Nullable String text, String name, long cost) {
        if (cost > 0 && text != null && isByCharge(current, text)) {
            deliverOffence(current, text, name, new PermitRequest(1, 0));
        }
    }

    /** Has Redis begin a block if a call like this one would be refused now, or as soon as it decides. */
    private void deliverOffence(ScriptParameters current, String text, String name, PermitRequest call) {
        deliver(
                DeliveryKind.OFFENCE,
                current,
                text,
                name,
                () -> current.append(
                        current.begin("offend", context.connection().time(), true), call, 1));
    }

    /** Begins a block here, if the key is not blocked, and owes it to Redis. Returns the block of the key. */
    ScriptBlocks.@Nullable State offend(ScriptParameters current, String text, String name) {
        BlockedKey begun = known.offend(text);
        if (begun != null) {
            if (owed.size() < MOST_OWED) {
                owed.add(text);
            }
            tell(begun);
            deliver(DeliveryKind.BLOCK, current, text, name, () -> imposed(current, text));
        }
        return of(text);
    }

    private @Nullable ScriptArguments imposed(ScriptParameters current, String text) {
        BlockedKey block = known.of(text);
        return block == null
                ? null
                : current.begin("impose", context.connection().time(), true)
                        .addPacked("", 1, block.level(), (block.left().toNanos() + 999) / 1_000, 0, 0);
    }

    private void deliver(
            DeliveryKind kind,
            ScriptParameters current,
            String text,
            String name,
            Supplier<@Nullable ScriptArguments> arguments) {
        context.connection()
                .deliver(kind, List.of(current.fullName(name), ScriptBlocks.fullName(name)), arguments, reply -> {
                    if (kind == DeliveryKind.BLOCK) {
                        owed.remove(text);
                    }
                    learn(text, ScriptBlocks.read(reply).get(0));
                });
    }
}
