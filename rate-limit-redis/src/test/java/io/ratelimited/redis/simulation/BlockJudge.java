package io.ratelimited.redis.simulation;

import io.ratelimited.core.Algorithm.Family;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Limit;
import io.ratelimited.redis.simulation.Step.Kind;
import java.util.List;
import java.util.Objects;

/**
 * Judges the blocks that callers have seen:
 *
 * <ul>
 *   <li>L1 A block that a caller has seen holds until its end: on the same node whatever decides, and whatever Redis loses; on others where Redis does.
 *   <li>L2 While a block runs, neither its end nor its level changes.
 *   <li>L3 No block is longer than its level says, nor than the maximum.
 *   <li>L4 The block after one that was not forgiven has a higher level.
 *   <li>L5 No key has seen more blocks than it has offended: refused calls, or charged ones. A refused call that would have waited
 *       offends nobody, unless its queue was full.
 *   <li>L7 No key of a bucket or a window is blocked before its calls together have asked for more than the whole limit, whatever
 *       the shares of nodes; or have been charged all of it, where that begins blocks.
 *   <li>L6 A node lists the blocks that its callers see.
 * </ul>
 *
 * <p>A caller learns for how long a key is blocked up to a timeout after Redis knew it.
 */
final class BlockJudge {

    private static final long MARGIN = 2 * Node.TIMEOUT.toNanos();

    private final Plan plan;
    private final Limit limit;
    private final List<String> violations;

    BlockJudge(Plan plan, List<String> violations) {
        this.plan = plan;
        this.limit = plan.limit();
        this.violations = violations;
    }

    void blocks(List<Call> calls) {
        boolean lists = !losesBlocks() && !plan.has(Kind.PAUSE) && !plan.has(Kind.CLOSE);
        for (Call seen : calls) {
            if (lists && seen.blocked && seen.blockLevel == 0) {
                violations.add("L6: the node does not list the block: " + seen);
            }
            if (seen.blockLevel > 0) {
                length(seen);
                offences(seen, calls);
                calls.stream()
                        .filter(other -> other.step.key() == seen.step.key() && isOfLimit(other))
                        .forEach(other -> after(seen, other));
            }
        }
    }

    private static boolean isOfLimit(Call call) {
        return call.step.kind() != Kind.CALL_OF_LEDGER;
    }

    private long lengthOf(int level) {
        double length = Objects.requireNonNull(limit.block()).toNanos();
        for (int i = 1; i < level; i++) {
            length *= limit.blockFactor();
        }
        return (long) Math.min(length, (double) limit.blockMax().toNanos()) + 1_000_000;
    }

    /** L3. */
    private void length(Call seen) {
        if (seen.blockLeft > lengthOf(seen.blockLevel)) {
            violations.add(
                    "a block of level " + seen.blockLevel + " has " + seen.blockLeft / 1e6 + " ms left: " + seen);
        }
    }

    /**
     * L5. A caller that has given up may have offended all the same. So may one that its node has admitted in an outage: its
     * command can reach Redis after the node has given up, and find the limit used up.
     */
    private void offences(Call seen, List<Call> calls) {
        long offences = calls.stream()
                .filter(call -> call.step.key() == seen.step.key() && isOfLimit(call) && call.sentAt <= seen.decidedAt)
                .filter(call -> limit.blocksByCharge()
                        ? call.went() && call.cost > 0
                        : (!call.went() || call.isLocal())
                                && (!call.step.isPatient() || limit.algorithm().queues()))
                .count();
        Family family = limit.algorithm().family();
        long asked = calls.stream()
                .filter(call -> call.step.key() == seen.step.key() && isOfLimit(call) && call.sentAt <= seen.decidedAt)
                .mapToLong(call -> limit.blocksByCharge() ? call.went() ? Math.max(call.cost, 0) : 0 : call.permits)
                .sum();
        long least = limit.capacity() + (limit.blocksByCharge() ? 0 : 1);
        if ((family == Family.BUCKET || family == Family.WINDOW) && asked < least) {
            violations.add("L7: " + asked + " permits of " + limit.capacity() + " begin a block: " + seen);
        }
        if (offences < seen.blockLevel) {
            violations.add("level " + seen.blockLevel + " after " + offences + " offences: " + seen);
        }
    }

    private void after(Call seen, Call other) {
        long end = seen.decidedAt + seen.blockLeft;
        if (other.sentAt <= seen.decidedAt || other.decidedAt == Call.NEVER || plan.has(Kind.RESET)) {
            return;
        }
        // What a node remembers may be a block of its own that Redis does not have yet.
        boolean isShared = seen.source == Source.REDIS;
        boolean byRedis = other.source == Source.REDIS || other.source == Source.DENY_CACHE;
        // While a slot moves, only the nodes that have seen a block know of it.
        boolean known = other.node == seen.node || (byRedis && isShared && !plan.has(Kind.MOVE_SLOT) && !losesBlocks());
        if (known && other.decidedAt < end - MARGIN && other.went()) {
            violations.add("L1: goes during a block: " + other + "\n  seen by " + seen);
        }
        if (losesBlocks() || other.blockLevel == 0 || !byRedis || !isShared || !isOnlyRedis(seen, other)) {
            return;
        }
        long later = other.decidedAt + other.blockLeft;
        if (other.decidedAt < end - MARGIN && (Math.abs(later - end) > MARGIN || other.blockLevel != seen.blockLevel)) {
            violations.add("L2: a block changes while it runs: " + other + "\n  seen by " + seen);
        }
        boolean forgiven =
                later - lengthOf(other.blockLevel) >= end + limit.blockMax().toNanos() - MARGIN;
        if (other.decidedAt > end + MARGIN
                && !forgiven
                && other.blockLevel <= seen.blockLevel
                && later > end + MARGIN) {
            violations.add("L4: the next block is as short as the last: " + other + "\n  seen by " + seen);
        }
    }

    private boolean losesBlocks() {
        return plan.has(Kind.RESTART_EMPTY) || plan.has(Kind.FAILOVER) || plan.has(Kind.RESET);
    }

    /** Nodes that are cut off begin blocks of their own, which Redis has later. */
    private boolean isOnlyRedis(Call seen, Call other) {
        return plan.steps().stream().noneMatch(step -> step.kind().isFault())
                && seen.source == Source.REDIS
                && other.source == Source.REDIS;
    }
}
