package io.ratelimited.spring.limit;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import org.jspecify.annotations.Nullable;

/**
 * The number of keys that limits remember in memory: the number that a property states, or else the keys that fit into half
 * of the heap, in equal parts for all limits with keys. Immutable.
 *
 * @param stated the keys of each limit; null if nothing states them
 * @param heapBytes the largest size of the heap
 */
public record KeyMemory(@Nullable Long stated, long heapBytes) {

    /**
     * Bytes of a key whose text is as long as it may be, with its cell, its places in the map, and its part of what is kept of
     * evicted keys: measured 155 to 330 ({@code KeyMemoryProofTest}).
     */
    private static final long BYTES_PER_KEY = 330;
    /** Bytes that a block takes in addition, and what the key itself was charged, which is another cell. */
    private static final long BYTES_OF_BLOCK = 100;

    private static final long BYTES_OF_CHARGE = 80;
    /** The states of a key: its own, and those of two that were evicted. */
    private static final long STATES = 3;
    /** With fewer, the callers of an ordinary application would share cells. */
    private static final long FEWEST = 10_000;

    /** In the heap of this JVM. */
    public static KeyMemory ofHeap(@Nullable Long stated) {
        return new KeyMemory(stated, Runtime.getRuntime().maxMemory());
    }

    /**
     * The most keys that a limit remembers.
     *
     * @param limits the limits with keys, this one included
     */
    public long maximumKeys(Limit limit, int limits) {
        if (stated != null) {
            return stated;
        }
        long fitting = half() / Math.max(1, limits) / bytesPerKey(limit);
        return Math.max(FEWEST, Math.min(InMemoryRateLimiter.DEFAULT_MAXIMUM_KEYS, fitting));
    }

    /** Returns the bytes that all keys of limits may take together. */
    public long half() {
        return heapBytes / 2;
    }

    /** A log keeps a time and a number for each call, which takes one permit at least. */
    public static long bytesPerKey(Limit limit) {
        long cells = STATES * (limit.blocksByCharge() ? 2 : 1);
        return BYTES_PER_KEY
                + (limit.block() == null ? 0 : BYTES_OF_BLOCK)
                + (limit.blocksByCharge() ? BYTES_OF_CHARGE : 0)
                + (limit.algorithm() == Algorithm.SLIDING_LOG
                        ? cells * 2 * Long.BYTES * limit.rate().permits()
                        : 0);
    }
}
