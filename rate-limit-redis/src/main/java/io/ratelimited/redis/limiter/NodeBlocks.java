package io.ratelimited.redis.limiter;

import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Limit;
import io.ratelimited.core.memory.block.BlockObservers;
import io.ratelimited.core.memory.block.KeyBlocks;
import io.ratelimited.redis.connection.GuardedConnection.DeliveryKind;
import io.ratelimited.redis.connection.ScriptArguments;
import io.ratelimited.redis.script.ScriptBlocks;
import java.time.Duration;
import java.util.List;
import java.util.Set;
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

    /** The block of a key that holds whatever Redis says, which does not have it yet; null for none. */
    ScriptBlocks.@Nullable State owed(@Nullable String text) {
        if (text == null || owed.isEmpty() || !owed.contains(text)) {
            return null;
        }
        ScriptBlocks.State block = of(text);
        if (block == null) {
            owed.remove(text);
        }
        return block;
    }

    /** Takes over what Redis has replied about a key. */
    void learn(String text, ScriptBlocks.State state) {
        if (owed(text) != null) {
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

    /** Has Redis begin a block if a call like this one would be refused now, or as soon as it decides. */
    void deliverOffence(ScriptParameters current, String text, String name, PermitRequest call) {
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
