package io.ratelimited.core.memory.block;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.RemovalCause;
import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.threads.CallbackThreads;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import java.util.function.LongUnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The blocks of the keys of one limit. Only keys that have offended have an entry, in a cache of as many keys as the limit may
 * remember; {@link EvictedBlocks} keeps what the cache evicts, so that a flood of offenders ends no block. Until the first
 * offence there is no cache, and a look costs a comparison. Thread-safe.
 */
public final class KeyBlocks {

    /** A sweep takes about a hundredth of this a key. */
    private static final long NANOS_BETWEEN_SWEEPS_PER_KEY = 10_000;

    private final Ticker ticker;
    private final long base;
    private final LongSupplier maximumKeys;
    private final AtomicBoolean sweeping = new AtomicBoolean();

    /** The rule of later offences; null while the limit has no blocks. */
    private volatile @Nullable BlockRule rule;
    /** Words of {@link BlockRule}; made by the first offence. */
    private volatile @Nullable Cache<Object, Long> offenders;
    /** Made by the first eviction. */
    private volatile @Nullable EvictedBlocks evicted;

    private volatile long nextSweep;

    /** @param maximumKeys the largest number of keys to remember, asked at the first offence */
    public KeyBlocks(Limit limit, Ticker ticker, LongSupplier maximumKeys) {
        this.ticker = ticker;
        this.base = ticker.nanos();
        this.maximumKeys = maximumKeys;
        this.rule = ruleOf(limit);
    }

    /** Nanoseconds since the base. */
    private long now() {
        return Math.max(0, ticker.nanos() - base);
    }

    /** Null while the limit has no blocks, or counts nothing because it is closed or unlimited. */
    private static @Nullable BlockRule ruleOf(Limit limit) {
        return limit.block() == null || limit.isClosed() || limit.isUnlimited() ? null : BlockRule.of(limit);
    }

    /** Takes over a changed limit: blocks that have begun last as long as they were to; a limit without blocks forgives all. */
    public synchronized void update(Limit limit) {
        rule = ruleOf(limit);
        if (limit.block() == null) {
            offenders = null;
            evicted = null;
        }
    }

    /** Nanoseconds for which a key is still blocked; 0 when it is not, when it is null, and while the limit has no blocks. */
    public long left(@Nullable Object key) {
        Cache<Object, Long> all = offenders;
        return all == null || key == null || rule == null ? 0 : BlockRule.left(word(all, key), now());
    }

    /** The block of a key; null while it is not blocked. */
    public @Nullable BlockedKey of(@Nullable Object key) {
        Cache<Object, Long> all = offenders;
        if (all == null || key == null || rule == null) {
            return null;
        }
        long now = now();
        long word = word(all, key);
        return BlockRule.left(word, now) == 0 ? null : blocked(key, word, now);
    }

    private long word(Cache<Object, Long> all, Object key) {
        Long known = all.getIfPresent(key);
        return known != null ? known : evictedWord(key);
    }

    private long evictedWord(Object key) {
        EvictedBlocks known = evicted;
        return known == null ? BlockRule.NONE : known.of(key);
    }

    /** Notes an offence. Returns the block that it begins; null while the key is blocked, and without blocks. */
    public @Nullable BlockedKey offend(Object key) {
        BlockRule current = rule;
        if (current == null) {
            return null;
        }
        long now = now();
        long[] before = new long[1];
        long after = step(key, word -> {
            before[0] = word;
            return current.offend(word, now);
        });
        sweepIfDue(now, current);
        return after == before[0] ? null : blocked(key, after, now);
    }

    /** Notes a block as it is elsewhere, where the key is decided; replaces what was known. */
    public void learn(Object key, long leftNanos, int level) {
        BlockRule current = rule;
        if (current != null && leftNanos > 0) {
            long now = now();
            step(key, word -> BlockRule.word(now, leftNanos, level));
            sweepIfDue(now, current);
        }
    }

    private long step(Object key, LongUnaryOperator next) {
        return cache().asMap()
                .compute(key, (same, known) -> next.applyAsLong(known != null ? known : evictedWord(same)));
    }

    private static BlockedKey blocked(Object key, long word, long now) {
        return new BlockedKey(
                CanonicalKey.ofText(key.toString()),
                Duration.ofNanos(BlockRule.left(word, now)),
                BlockRule.level(word));
    }

    /** Ends the block of a key, and forgives it. One that was evicted before may be found again. */
    public void forget(@Nullable Object key) {
        Cache<Object, Long> all = offenders;
        if (all != null && key != null) {
            // An entry, since the evicted words are shared with other keys.
            all.asMap().compute(key, (same, known) -> evictedWord(same) == BlockRule.NONE ? null : BlockRule.NONE);
        }
    }

    /** The keys that are blocked now, weakly consistent. */
    public Stream<BlockedKey> all() {
        Cache<Object, Long> all = offenders;
        if (all == null || rule == null) {
            return Stream.empty();
        }
        long now = now();
        return all.asMap().entrySet().stream()
                .filter(each -> BlockRule.left(each.getValue(), now) > 0)
                .map(each -> blocked(each.getKey(), each.getValue(), now));
    }

    private Cache<Object, Long> cache() {
        Cache<Object, Long> all = offenders;
        return all != null ? all : makeCache();
    }

    private synchronized Cache<Object, Long> makeCache() {
        Cache<Object, Long> all = offenders;
        if (all == null) {
            all = Caffeine.newBuilder()
                    .maximumSize(maximumKeys.getAsLong())
                    .evictionListener(this::keep)
                    .build();
            offenders = all;
        }
        return all;
    }

    /** The cache calls it within the removal, before another thread can look for the key. */
    private void keep(@Nullable Object key, @Nullable Long word, RemovalCause cause) {
        if (key != null && word != null && !isForgiven(word)) {
            evictedBlocks().add(key, word);
        }
    }

    private EvictedBlocks evictedBlocks() {
        EvictedBlocks known = evicted;
        return known != null ? known : makeEvictedBlocks();
    }

    private synchronized EvictedBlocks makeEvictedBlocks() {
        EvictedBlocks known = evicted;
        if (known == null) {
            known = new EvictedBlocks(maximumKeys.getAsLong());
            evicted = known;
        }
        return known;
    }

    private boolean isForgiven(long word) {
        BlockRule current = rule;
        return current == null ? BlockRule.left(word, now()) == 0 : current.untilForgiven(word, now()) == 0;
    }

    /** The sweep runs in another thread, since it takes time in proportion to the number of offenders. */
    private void sweepIfDue(long now, BlockRule current) {
        if (now - nextSweep >= 0 && sweeping.compareAndSet(false, true)) {
            long pause = Math.max(TimeUnit.SECONDS.toNanos(1), current.max() * 1_000);
            nextSweep = now + Math.max(pause, cache().estimatedSize() * NANOS_BETWEEN_SWEEPS_PER_KEY);
            CallbackThreads.SHARED.execute(this::sweep);
        }
    }

    private void sweep() {
        try {
            EvictedBlocks known = evicted;
            // An entry that was forgotten hides an evicted word as long as that means something.
            cache().asMap().forEach((key, word) -> {
                if (isForgiven(word) && evictedWord(key) == BlockRule.NONE) {
                    cache().asMap().remove(key, word);
                }
            });
            if (known != null) {
                known.forget(this::isForgiven);
            }
        } finally {
            sweeping.set(false);
        }
    }
}
