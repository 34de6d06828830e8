package io.ratelimited.core.internals.memory.block;

import io.ratelimited.core.Limit;
import java.time.Duration;
import java.util.Objects;

/**
 * Blocks of keys as pure steps on one word: the end of the last block, in microseconds since the base of the clock, and its
 * level in the lower {@value #LEVEL_BITS} bits. The word 0 has no block to remember. Times of the steps are nanoseconds since
 * the base, 0 or more.
 *
 * <ul>
 *   <li>B1 A key is blocked until the end of its block, which no step makes earlier.
 *   <li>B2 An offence while the key is blocked changes nothing.
 *   <li>B3 An offence after the end of a block begins one that is longer by the factor, {@code max} at most; the first, and one
 *       that comes {@code max} or more after the end, begins one of the first length. It ends when its length has passed,
 *       rounded up to the microsecond.
 *   <li>B4 {@link #later} is at least as strict as both words for every later call.
 * </ul>
 *
 * @param first length of the first block in microseconds, 1 or more
 * @param factor from 1 on
 * @param max length of the longest block in microseconds
 */
public record BlockRule(long first, double factor, long max) {

    public static final long NONE = 0;

    private static final int LEVEL_BITS = 10;
    private static final int MOST_LEVEL = 1_000;
    private static final long LEVEL_MASK = (1L << LEVEL_BITS) - 1;

    /** The rule of a limit with {@link Limit#block}. */
    public static BlockRule of(Limit limit) {
        Duration block = Objects.requireNonNull(limit.block());
        return new BlockRule(micros(block), limit.blockFactor(), micros(limit.blockMax()));
    }

    private static long micros(Duration duration) {
        return (duration.toNanos() + 999) / 1_000;
    }

    /** Nanoseconds until the key is not blocked any more; 0 when it is not. */
    public static long left(long word, long now) {
        return word == NONE ? 0 : Math.max(0, (word >>> LEVEL_BITS) * 1_000 - now);
    }

    /** The number of the last block; 0 for none. */
    public static int level(long word) {
        return (int) (word & LEVEL_MASK);
    }

    /** The word after an offence. */
    public long offend(long word, long now) {
        if (left(word, now) > 0) {
            return word;
        }
        int level = untilForgiven(word, now) == 0 ? 1 : Math.min(MOST_LEVEL, level(word) + 1);
        return word((now + 999) / 1_000 + length(level), level);
    }

    private static long word(long endMicros, int level) {
        return endMicros << LEVEL_BITS | level;
    }

    /** Length of the block of a level, in microseconds. */
    public long length(int level) {
        long length = first;
        for (int i = 1; i < Math.min(level, MOST_LEVEL) && length < max && factor > 1; i++) {
            // A fraction that is lost each time would keep a short block from ever growing.
            length = Math.min(max, (long) Math.ceil(length * factor));
        }
        return length;
    }

    /** Nanoseconds until the word means nothing any more; 0 when it does not. */
    public long untilForgiven(long word, long now) {
        return word == NONE ? 0 : Math.max(0, ((word >>> LEVEL_BITS) + max) * 1_000 - now);
    }

    /** The word that ends as late and has as high a level as both. */
    public static long later(long one, long other) {
        return Math.max(one >>> LEVEL_BITS, other >>> LEVEL_BITS) << LEVEL_BITS | Math.max(level(one), level(other));
    }
}
