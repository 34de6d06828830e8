package io.ratelimited.core.memory.block;

import java.util.concurrent.atomic.AtomicLongArray;
import java.util.function.LongPredicate;

/**
 * The blocks of evicted keys, in fixed memory: a count-min sketch of {@link BlockRule} words. Each key has one word in each of
 * three rows, shared with others, which is at least as strict as the key's own. A key reads the least strict of them. So no
 * eviction ends or forgives a block; a key that has not offended is blocked only if evicted offenders have raised all its
 * words, which is unlikely until as many have been evicted as there are words in a row. Thread-safe.
 */
final class EvictedBlocks {

    private static final int ROWS = 3;
    private static final int MIN_WORDS = 8192;
    private static final int MAX_WORDS = 1 << 22;
    /** Bits of the hash that choose the word in a row. */
    private static final int BITS = 21;

    private final SaltedHash hash = new SaltedHash();
    private final int width;
    private final AtomicLongArray words;

    /** @param maximumKeys of the cache; there are about as many words */
    EvictedBlocks(long maximumKeys) {
        this.width = (int) Math.max(MIN_WORDS, Math.min(MAX_WORDS, maximumKeys)) / ROWS;
        this.words = new AtomicLongArray(ROWS * width);
    }

    /** Remembers the word of a key that has left the cache. */
    void add(Object key, long word) {
        long hashed = hash.of(key);
        for (int row = 0; row < ROWS; row++) {
            words.accumulateAndGet(position(hashed, row), word, BlockRule::later);
        }
    }

    /** A word that is at least as strict as that of the key when it was evicted. */
    long of(Object key) {
        long hashed = hash.of(key);
        long least = words.get(position(hashed, 0));
        for (int row = 1; row < ROWS; row++) {
            least = BlockRule.earlier(least, words.get(position(hashed, row)));
        }
        return least;
    }

    /** Drops the words that mean nothing any more. */
    void forget(LongPredicate isForgiven) {
        for (int i = 0; i < words.length(); i++) {
            long word = words.get(i);
            if (word != BlockRule.NONE && isForgiven.test(word)) {
                words.compareAndSet(i, word, BlockRule.NONE);
            }
        }
    }

    private int position(long hashed, int row) {
        long bits = hashed >>> (BITS * row) & ((1 << BITS) - 1);
        return row * width + (int) ((bits * width) >>> BITS);
    }
}
