package io.ratelimited.spring.internals.limit;

import io.ratelimited.core.Limit;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import java.util.Collection;
import org.jspecify.annotations.Nullable;

/**
 * The number of keys that limits remember in memory: the number that a property states, or else the keys that fit into half
 * of the heap, in equal parts for all limits with keys and their tiers. Immutable.
 *
 * @param stated the keys of each limit and tier; null if nothing states them
 * @param heapBytes the largest size of the heap
 */
public record KeyMemory(@Nullable Long stated, long heapBytes) {

    /** Bytes of a key whose text is as long as it may be, with its cell and its places in the map: measured 155 to 280. */
    private static final long BYTES_PER_KEY = 300;
    /** Bytes that a block takes in addition, with those of two keys that were evicted ({@code KeyMemoryProofTest}). */
    private static final long BYTES_OF_BLOCKS = 160;
    /** Bytes of what these keys were charged themselves, without the instants of that. */
    private static final long BYTES_OF_CHARGES = 240;
    /** Bytes of a caller's own numbers, 560, with those of two keys that were evicted ({@code KeyMemoryProofTest}). */
    private static final long BYTES_OF_NUMBERS = 3 * 560;
    /** Bytes of a log without calls, in addition to those of another cell ({@code KeyMemoryProofTest}). */
    private static final long BYTES_OF_LOG = 64;
    /** Bytes of a window without slots, in addition to those of another cell ({@code KeyMemoryProofTest}). */
    private static final long BYTES_OF_WINDOW = 160;
    /** Instants of one key at which it was charged: as in {@code Charges}. */
    private static final long INSTANTS = 32;

    /** With fewer, the callers of an ordinary application would share cells. */
    private static final long FEWEST = 10_000;

    /** In the heap of this JVM. */
    public static KeyMemory ofHeap(@Nullable Long stated) {
        return new KeyMemory(stated, Runtime.getRuntime().maxMemory());
    }

    /**
     * The most keys that a limit or tier remembers among others.
     *
     * @param keyed the limits with keys, this one included
     */
    public long maximumKeys(Limit limit, Collection<ConfiguredLimit> keyed) {
        boolean numbers = keyed.stream().anyMatch(each -> each.name().equals(limit.name()) && each.mayHaveNumbers());
        return maximumKeys(limit, numbers, limiters(keyed));
    }

    /** Returns the number of limits with keys and their tiers, which have equal parts. */
    public static int limiters(Collection<ConfiguredLimit> keyed) {
        return keyed.stream().mapToInt(each -> each.limitAndTiers().size()).sum();
    }

    /**
     * The most keys that a limit or tier remembers.
     *
     * @param numbers whether each caller may have its own numbers
     * @param limits the limits and tiers with keys, this one included
     */
    public long maximumKeys(Limit limit, boolean numbers, int limits) {
        if (stated != null) {
            return stated;
        }
        long fitting = half() / Math.max(1, limits) / bytesPerKey(limit, numbers);
        return Math.max(FEWEST, Math.min(InMemoryRateLimiter.DEFAULT_MAXIMUM_KEYS, fitting));
    }

    /** Returns the bytes that all keys of limits may take together. */
    public long half() {
        return heapBytes / 2;
    }

    /**
     * Bytes of a key at the most, with those of two keys that were evicted. A log keeps a time and a number for each call, which takes one
     * permit at least, and nothing while it is unlimited; logs of callers with larger numbers take more. A window keeps a number for each
     * slot. With blocks, each of the three may have a second log or window, of what the key itself was charged.
     *
     * @param numbers whether each caller may have its own numbers
     */
    public static long bytesPerKey(Limit limit, boolean numbers) {
        return BYTES_PER_KEY
                + (numbers ? BYTES_OF_NUMBERS : 0)
                + (limit.block() == null ? 0 : BYTES_OF_BLOCKS)
                + (limit.blocksByCharge() ? bytesOfCharges(limit) : 0)
                + (limit.block() == null ? 3 : 6) * bytesOfCalls(limit);
    }

    private static long bytesOfCalls(Limit limit) {
        return switch (limit.algorithm()) {
            case SLIDING_LOG ->
                limit.isUnlimited()
                        ? 0
                        : BYTES_OF_LOG + 2 * Long.BYTES * limit.rate().permits();
            case SLIDING_WINDOW -> BYTES_OF_WINDOW + (long) Long.BYTES * limit.slots();
            default -> 0;
        };
    }

    private static long bytesOfCharges(Limit limit) {
        return BYTES_OF_CHARGES + 3 * 2 * Long.BYTES * Math.min(INSTANTS, 2 * Math.min(INSTANTS, limit.capacity()));
    }
}
