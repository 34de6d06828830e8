package io.ratelimited.redis.script;

import io.ratelimited.core.Limit;
import io.ratelimited.redis.connection.ScriptArguments;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The blocks of a limit as {@code block.lua} knows them: its arguments, and its replies. Immutable.
 *
 * @param mark as there
 * @param first microseconds of the first block
 * @param max microseconds of the longest one
 */
public record ScriptBlocks(char mark, long first, long max, double factor) {

    /** The end of the name of a key that has a block, whatever the algorithm of its limit. */
    private static final String KEY_END = "~block";

    /** The mark of a limit without blocks. */
    public static final char NO_MARK = '-';

    /** The tail of a call that is no offence. */
    public static final String NO_OFFENCE = "-";

    /**
     * The block of a key when the script had run.
     *
     * @param leftNanos 0 when the key is not blocked
     * @param begunNanos length of a block that the script has begun; 0 for none
     */
    public record State(long leftNanos, int level, long begunNanos) {

        /** The same block some time later; it has at least a nanosecond left. */
        public State after(long nanos) {
            return new State(Math.max(1, leftNanos - nanos), level, 0);
        }
    }

    /** Null for a limit without blocks. */
    public static @Nullable ScriptBlocks of(Limit limit) {
        Duration block = limit.block();
        return block == null
                ? null
                : new ScriptBlocks(
                        limit.blocksByCharge() ? 'c' : 'b',
                        ScriptFamily.micros(block),
                        ScriptFamily.micros(limit.blockMax()),
                        limit.blockFactor());
    }

    /** Returns whether a refused call is an offence. */
    public boolean byRefusal() {
        return mark == 'b';
    }

    /** The name in Redis of the block of a key. */
    public static String fullName(String name) {
        return name + KEY_END;
    }

    public ScriptArguments appendTo(ScriptArguments args) {
        return args.addPacked(Double.toString(factor), first, max);
    }

    /** Reads the states of the limits with blocks in a reply, in their order. */
    public static List<State> read(List<Object> reply) {
        List<State> states = new ArrayList<>(1);
        @SuppressWarnings("unchecked") // Arrays of a script are lists of what they hold.
        List<Object> last = (List<Object>) reply.get(reply.size() - 1);
        for (int i = 0; i + 2 < last.size(); i += 3) {
            states.add(new State(
                    (Long) last.get(i) * 1_000, ((Long) last.get(i + 1)).intValue(), (Long) last.get(i + 2) * 1_000));
        }
        return states;
    }

    /** A reply without the states. */
    public static List<Object> without(List<Object> reply) {
        return reply.subList(0, reply.size() - 1);
    }
}
