package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.Ticker;
import io.ratelimited.redis.internals.script.ScriptBlocks;
import java.util.Iterator;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The last blocks of keys as this node knows them, until their levels are forgiven: as in Redis, one for each state that a key has.
 * Redis has them all; so of too many those that have ended go first, and then any. Thread-safe.
 */
final class KnownBlocks {

    private static final int FIRST_SWEEP = 1_024;

    private final Ticker ticker;
    private final long most;
    /** By the names of those states. */
    private final ConcurrentHashMap<String, Known> blocks = new ConcurrentHashMap<>();
    /** The number of blocks at which those that are forgiven are looked for. */
    private volatile long sweepAt = FIRST_SWEEP;

    /**
     * A block, by the time of the ticker.
     *
     * @param text of the key
     * @param parameters the numbers of its callers when this node last learned of it
     * @param owed whether Redis has not said yet that it has it: until then it holds here, whatever Redis says
     */
    record Known(String text, ScriptParameters parameters, long begin, long end, int level, boolean owed) {

        long left(long now) {
            return end - now;
        }

        Known owed(boolean value) {
            return new Known(text, parameters, begin, end, level, value);
        }
    }

    /** @param maximumKeys of which blocks are known at the most */
    KnownBlocks(Ticker ticker, long maximumKeys) {
        this.ticker = ticker;
        this.most = Math.max(1, maximumKeys);
    }

    /** The last block of a key, which may have ended; null if there is none, or it is forgiven. */
    @Nullable
    Known last(String text, ScriptParameters current, ScriptBlocks rule) {
        Known block = find(text, current);
        return block == null || isForgiven(block, rule, ticker.nanos()) ? null : block;
    }

    /** What is known of a key, which may have ended or be forgiven; null for nothing. */
    @Nullable
    Known find(@Nullable String text, ScriptParameters current) {
        return text == null || blocks.isEmpty() ? null : blocks.get(current.fullName(text));
    }

    /** The block of a key; null while it is not blocked. */
    @Nullable
    Known running(@Nullable String text, ScriptParameters current) {
        Known block = find(text, current);
        return block == null || block.left(ticker.nanos()) <= 0 ? null : block;
    }

    Stream<Known> allRunning() {
        long now = ticker.nanos();
        return blocks.values().stream().filter(each -> each.left(now) > 0);
    }

    private static boolean isForgiven(Known block, ScriptBlocks rule, long now) {
        return now - block.end >= rule.quietNanos();
    }

    /** Begins a block. Returns null if one runs. */
    @Nullable
    Known begin(String text, ScriptParameters current, ScriptBlocks rule) {
        long now = ticker.nanos();
        boolean[] begun = new boolean[1];
        Known after = change(text, current, rule, before -> {
            begun[0] = before == null || before.left(now) <= 0;
            if (!begun[0]) {
                return before;
            }
            int level = before == null || isForgiven(before, rule, now) ? 1 : before.level + 1;
            return new Known(text, current, now, now + rule.lengthOf(level), level, true);
        });
        return begun[0] ? after : null;
    }

    /** Changes what is known of a key; null for nothing. */
    @Nullable
    Known change(String text, ScriptParameters current, ScriptBlocks rule, UnaryOperator<@Nullable Known> change) {
        Known after = blocks.compute(current.fullName(text), (name, before) -> change.apply(before));
        if (after != null && blocks.mappingCount() > Math.min(sweepAt, most)) {
            sweep(rule);
        }
        return after;
    }

    void forget(String text, ScriptParameters current) {
        blocks.remove(current.fullName(text));
    }

    void forgetAll() {
        blocks.clear();
    }

    private synchronized void sweep(ScriptBlocks rule) {
        long now = ticker.nanos();
        blocks.values().removeIf(block -> isForgiven(block, rule, now));
        if (blocks.mappingCount() > most) {
            // An eighth of them, so that the next sweep does not follow at once.
            long room = most - most / 8;
            blocks.values().removeIf(block -> !block.owed && block.left(now) <= 0 && blocks.mappingCount() > room);
            Iterator<Known> all = blocks.values().iterator();
            while (blocks.mappingCount() > room && all.hasNext()) {
                all.next();
                all.remove();
            }
        }
        sweepAt = Math.max(FIRST_SWEEP, 2 * blocks.mappingCount());
    }
}
