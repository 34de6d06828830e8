package io.ratelimited.redis.internals.limiter;

import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Limit.Attribute;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.memory.CellRateLimiter;
import io.ratelimited.core.internals.memory.WarmUpShape;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.script.PermitCost;
import io.ratelimited.redis.internals.script.ScriptBlocks;
import io.ratelimited.redis.internals.script.ScriptFamily;
import java.util.List;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * A limit as the scripts know it: writes the arguments of calls, and reads the replies to them. Equal calls in a row are one
 * group to a script. Does not change with the limit, which gets new ones. Thread-safe.
 */
final class ScriptParameters {

    /** The largest count of permits: as in the scripts. */
    static final long MAX_PERMITS = 1L << 52;

    private final Limit limit;
    private final PermitCost cost;
    private final ScriptFamily family;
    private final @Nullable ScriptBlocks blocks;
    private final Nodes nodes;
    /** Names the algorithm, and how it counts. */
    private final String keyEnd;

    private final boolean constant;
    private final double maxPermits;
    /** Those of all callers; null for these. */
    private final @Nullable ScriptParameters whole;
    /** Decides in outages for the callers with these numbers. */
    private volatile @Nullable LocalShare localShare;
    /** The last call that was alone in its script call, if the next can use its arguments. */
    private volatile @Nullable Single lastSingle;

    /** A limiter in memory, and the limiter of these callers over its budgets. */
    private record LocalShare(CellRateLimiter all, int sharers, CellRateLimiter callers) {}

    ScriptParameters(Limit limit, Ticker ticker, Nodes nodes) {
        this(limit, ticker, nodes, null);
    }

    /** @param whole of all callers, where these are of some with their own numbers */
    ScriptParameters(Limit limit, Ticker ticker, Nodes nodes, @Nullable ScriptParameters whole) {
        this.whole = whole;
        this.limit = limit;
        this.cost = PermitCost.of(limit.rate());
        this.family = ScriptFamily.of(limit, cost, ticker);
        this.blocks = ScriptBlocks.of(limit, cost);
        this.nodes = nodes;
        this.constant = limit.isClosed() || limit.isUnlimited();
        this.keyEnd = "~" + algorithmLetter(limit) + family.keyEnd();
        // As many can be waited for before a time is too long for a number of Redis.
        double most =
                limit.algorithm().uses(Attribute.WARMUP) ? WarmUpShape.of(limit).maxPermits() : Double.MAX_VALUE;
        this.maxPermits = Math.min((double) limit.capacity(), most);
    }

    private static String algorithmLetter(Limit limit) {
        return switch (limit.algorithm()) {
            case SLIDING_WINDOW -> "r";
            case SLIDING_LOG -> "q";
            default -> limit.algorithm().name().substring(0, 1).toLowerCase(Locale.ROOT);
        };
    }

    Limit limit() {
        return limit;
    }

    /** The parameters of all callers; these if they are no numbers of some. */
    ScriptParameters whole() {
        ScriptParameters all = whole;
        return all == null ? this : all;
    }

    /** The limiter of these callers, by their share of their numbers, over the budgets of one in memory. */
    CellRateLimiter callers(CellRateLimiter all, int sharers) {
        if (whole == null) {
            return all;
        }
        LocalShare known = localShare;
        if (known == null || known.all != all || known.sharers != sharers) {
            Limit share = InstanceShare.of(limit, sharers);
            known = new LocalShare(all, sharers, all.ofCallers(any -> share));
            localShare = known;
        }
        return known.callers;
    }

    /** Returns the cost of permits, as a time. */
    PermitCost cost() {
        return cost;
    }

    /** Null for a limit without blocks. */
    @Nullable
    ScriptBlocks blocks() {
        return blocks;
    }

    /** The letter of the family, as in {@code Script.java}. */
    char letter() {
        return family.letter();
    }

    /**
     * Returns the name in Redis of the state that a key has under this limit.
     *
     * @param name of the key, the same for every state of the limit
     */
    String fullName(String name) {
        return name + keyEnd;
    }

    /** Returns whether keys have the same states under other parameters. */
    boolean countsAs(ScriptParameters other) {
        return keyEnd.equals(other.keyEnd);
    }

    /** Returns whether one command may ask for several keys under this limit. */
    boolean isMergeable() {
        return limit.algorithm().family() == Family.BUCKET;
    }

    /** Returns whether calls are decided without a command: the limit is closed or unlimited. */
    boolean isConstant() {
        return constant;
    }

    /** Returns whether a call asks for more permits than there can ever be at once. */
    boolean isNever(long permits) {
        return permits > maxPermits || cost.of(permits).micros() >= PermitCost.FAR;
    }

    /** Appends the arguments of the limit. */
    void appendTo(ScriptArguments args) {
        family.appendTo(args, nodes.origin());
    }

    /**
     * The arguments of {@code decide.lua} up to the calls, under this limit alone.
     *
     * @param time the time argument of scripts
     */
    ScriptArguments begin(String operation, String time) {
        ScriptArguments args = new ScriptArguments().add(time).add(operation + " " + letter());
        appendTo(args);
        return args;
    }

    /**
     * {@link #begin(String, String)} with the block of a key, if the limit has blocks.
     *
     * @param liftedMicros as of {@link ScriptBlocks#appendTo}
     */
    ScriptArguments begin(String operation, String time, long liftedMicros) {
        ScriptBlocks own = blocks;
        if (own == null) {
            return begin(operation, time);
        }
        ScriptArguments args = new ScriptArguments().add(time).add(operation + " " + letter() + " " + own.mark());
        appendTo(args);
        return own.appendTo(args, liftedMicros);
    }

    /** The arguments of {@code decide.lua} for calls under this limit alone. */
    ScriptArguments arguments(String operation, String time, List<PermitRequest> calls) {
        boolean takesOne = calls.size() == 1 && time.isEmpty() && operation.equals("take");
        Single known = takesOne ? lastSingle : null;
        if (known != null && calls.get(0).takes(known.permits, known.maxWaitMicros)) {
            return known.arguments;
        }
        ScriptArguments args = appendAll(begin(operation, time), calls);
        PermitRequest first = calls.get(0);
        boolean sameForAll = endOfGroup(calls, 0) == calls.size() && first.refunded() == null;
        if (sameForAll && operation.equals("take") && isMergeable()) {
            args.mergeable();
            if (takesOne) {
                lastSingle = new Single(first.permits(), first.maxWaitMicros(), args);
            }
        }
        return args;
    }

    /** {@link #arguments} for calls of a key that can be blocked. */
    ScriptArguments argumentsOfKey(String operation, String time, long liftedMicros, List<PermitRequest> calls) {
        return appendAll(begin(operation, time, liftedMicros), calls);
    }

    private ScriptArguments appendAll(ScriptArguments args, List<PermitRequest> calls) {
        int end = 0;
        for (int from = 0; from < calls.size(); from = end) {
            end = endOfGroup(calls, from);
            append(args, calls.get(from), end - from);
        }
        return args;
    }

    /** The arguments of one call that takes permits, without a time. Those of the next call are mostly the same. */
    private record Single(long permits, long maxWaitMicros, ScriptArguments arguments) {}

    /** The position behind the last of the equal calls that begin at a position. */
    private static int endOfGroup(List<PermitRequest> calls, int from) {
        int to = from + 1;
        while (to < calls.size() && calls.get(from).asksAs(calls.get(to))) {
            to++;
        }
        return to;
    }

    /** Appends a group of so many calls like one. */
    ScriptArguments append(ScriptArguments args, PermitRequest call, int calls) {
        String mark = call.refunded();
        return mark == null
                ? appendCalls(args, calls, call.permits(), call.maxWaitMicros(), blocks == null ? "" : call.tail())
                : appendCalls(args, 0, call.permits(), 0, mark);
    }

    /**
     * Appends a call that needs no decision: it gives back the permits of a mark, or takes permits that were used already.
     *
     * @param longestWait in microseconds
     */
    ScriptArguments appendDecided(ScriptArguments args, long permits, long longestWait, String tail) {
        return appendCalls(args, 1, permits, longestWait, tail);
    }

    private ScriptArguments appendCalls(ScriptArguments args, int calls, long permits, long longestWait, String tail) {
        PermitCost.Time time = cost.of(permits);
        // Scripts count no more than MAX_PERMITS: a higher number would change no decision.
        return args.addPacked(tail, calls, Math.min(MAX_PERMITS, permits), time.micros(), time.parts(), longestWait);
    }

    /**
     * Reads the decisions of a script about calls, in their order. Throws a runtime exception for an invalid reply: no script lets a
     * call wait for longer than it may, but the reply of another algorithm has a time in that place, which is decades.
     */
    ScriptReply[] read(List<Object> reply, List<PermitRequest> calls) {
        ScriptReply[] replies = new ScriptReply[calls.size()];
        boolean several = reply.get(0) instanceof List;
        int group = 0;
        int end = 0;
        for (int from = 0; from < replies.length; from = end) {
            end = endOfGroup(calls, from);
            @SuppressWarnings("unchecked") // Arrays of a script are lists of what they hold.
            List<Object> own = several ? (List<Object>) reply.get(group++) : reply;
            PermitRequest first = calls.get(from);
            if (first.refunded() != null) {
                replies[from] = ScriptReply.of(new ScriptFamily.Decided(0, 0, 0, ""), this);
            } else {
                int at = from;
                for (ScriptFamily.Decided decided : family.read(own, first.permits(), end - from)) {
                    if (decided.outcome() > first.maxWaitMicros()) {
                        throw new IllegalArgumentException("the reply to another command: its wait is too long");
                    }
                    replies[at++] = ScriptReply.of(decided, this);
                }
            }
        }
        return replies;
    }

    /** {@link #read} for calls of a key whose block the script has reported. */
    ScriptReply[] read(List<Object> reply, List<PermitRequest> calls, ScriptBlocks.State state) {
        ScriptReply[] replies = read(reply, calls);
        for (int i = 0; i < replies.length; i++) {
            replies[i] = replies[i].decidedAt(state.nowMicros());
            if (!calls.get(i).exempt()) {
                replies[i] = replies[i].withBlock(state);
            }
        }
        return replies;
    }

    /** Returns the longest time for which permits taken now count in a window. */
    long windowNanos() {
        long period = limit.rate().period().toNanos();
        return limit.algorithm().uses(Attribute.SLOTS) ? period + period / limit.slots() : period;
    }

    /** Permits left of a budget that follows virtual time and is full after so many nanoseconds. */
    long remaining(long untilFull) {
        long stored = family.stored();
        // Scripts round that time up, by two microseconds at the most.
        double left = stored - Math.max(0, untilFull - 2_000) / (1_000.0 * cost.step() / cost.one());
        // Where the next caller pays, one call goes on credit beside the stored permits.
        long credit = limit.algorithm().family() == Family.PACED ? 1 : 0;
        return left < 0 ? 0 : (long) left + credit;
    }
}
