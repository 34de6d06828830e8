package io.ratelimited.redis.internals.script;

import io.ratelimited.core.Limit;
import io.ratelimited.core.internals.memory.block.BlockRule;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The blocks of a limit as {@code block.lua} knows them: its arguments, and its replies. Immutable.
 *
 * @param mark as there
 * @param permit the cost of one permit
 */
public record ScriptBlocks(char mark, BlockRule rule, PermitCost.Time permit) {

    /** The end of the name of the key that has a block, behind that of the state it belongs to. Another form has another one. */
    private static final String KEY_END = "~block2";

    /** The mark of a limit without blocks. */
    public static final char NO_MARK = '-';

    /** The end of the tail of a charge that begins no block. */
    public static final String NO_VIOLATION = "!";

    /** The tail of a forgiveness of all keys. */
    public static final String ALL_KEYS = "+";

    /** The tail of a call that is exempt from blocks. */
    public static final String EXEMPT = "!";

    /** The end of the tail of a call that other limits may still reject. */
    public static final String UNDECIDED = "?";

    /** The numbers of each limit in a reply. */
    private static final int NUMBERS = 6;

    /**
     * The block of a key when the script had run.
     *
     * @param leftNanos until it ends; 0 or less when it has ended
     * @param level 0 if the key has not been blocked, or was forgiven
     * @param begunNanos length of a block that the script has begun; 0 for none
     * @param known whether Redis has a block of the key, which may have ended, or knows that it was forgiven
     * @param ageNanos since it began
     * @param nowMicros the time of the script, since 1970
     */
    public record State(long leftNanos, int level, long begunNanos, boolean known, long ageNanos, long nowMicros) {

        /** A block that a node knows. */
        public State(long leftNanos, int level) {
            this(leftNanos, level, 0, true, 0, 0);
        }

        /** The same block some time later; it has at least a nanosecond left. */
        public State after(long nanos) {
            return new State(Math.max(1, leftNanos - nanos), level);
        }
    }

    /** Null for a limit without blocks. */
    public static @Nullable ScriptBlocks of(Limit limit, PermitCost cost) {
        return limit.block() == null
                ? null
                : new ScriptBlocks(limit.blocksByCharge() ? 'c' : 'b', BlockRule.of(limit), cost.of(1));
    }

    /** Returns whether a rejected call is a violation. */
    public boolean byRefusal() {
        return mark == 'b';
    }

    /** Nanoseconds of a block of a level, as the script has it. */
    public long lengthOf(int level) {
        return rule.length(level) * 1_000;
    }

    /** Nanoseconds without a block after which its level is forgiven. */
    public long quietNanos() {
        return rule.max() * 1_000;
    }

    /** The name in Redis of the block of a key, from that of its state. */
    public static String fullName(String stateName) {
        return stateName + KEY_END;
    }

    /**
     * Appends the arguments of the blocks.
     *
     * @param liftedMicros the blocks that began until then have ended for good: microseconds since 1970
     */
    public ScriptArguments appendTo(ScriptArguments args, long liftedMicros) {
        return args.addPacked(
                Double.toString(rule.factor()),
                rule.first(),
                rule.max(),
                permit.micros(),
                permit.parts(),
                Math.max(0, liftedMicros));
    }

    /** Reads the states of the limits with blocks in a reply, in their order. */
    public static List<State> read(List<Object> reply) {
        List<State> states = new ArrayList<>(1);
        @SuppressWarnings("unchecked") // Arrays of a script are lists of what they hold.
        List<Object> last = (List<Object>) reply.get(reply.size() - 1);
        for (int i = 0; i + NUMBERS <= last.size(); i += NUMBERS) {
            states.add(new State(
                    (Long) last.get(i) * 1_000,
                    ((Long) last.get(i + 1)).intValue(),
                    (Long) last.get(i + 2) * 1_000,
                    (Long) last.get(i + 3) == 1,
                    (Long) last.get(i + 4) * 1_000,
                    (Long) last.get(i + 5)));
        }
        return states;
    }

    /** A reply without the states. */
    public static List<Object> without(List<Object> reply) {
        return reply.subList(0, reply.size() - 1);
    }
}
