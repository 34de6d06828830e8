package io.ratelimited.redis.simulation;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.redis.OnFailure;
import io.ratelimited.redis.simulation.Step.Kind;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.function.Predicate;
import java.util.function.ToLongFunction;
import java.util.stream.Collectors;
import java.util.stream.LongStream;

/**
 * Judges what callers have seen by the words of {@code docs/engineering/cluster.md}, and knows nothing of how it came about. A caller
 * knows when it asked and when it went; its permit was taken in between. A window breaks the limit when the calls that
 * were both sent and gone within it have more permits than the bound.
 */
final class Judge {

    private static final long MILLI = 1_000_000;
    /** How much later than its time a deadline is noticed. */
    private static final long TICK = 13 * MILLI;
    /** Further apart, the time of one node is to another a clock that has stepped: {@code slack} in the scripts. */
    private static final long SLACK_MILLIS = 1_000;

    /** Nodes count each other for so long before they rely on it. */
    private static final long COUNTED = 3_000 * MILLI;

    private final Plan plan;
    private final List<String> violations;
    private final List<Step> pauses;
    /** Faults each of which may give a burst again. */
    private int bursts;

    Judge(Plan plan, List<String> violations) {
        this.plan = plan;
        this.violations = violations;
        this.pauses =
                plan.steps().stream().filter(step -> step.kind() == Kind.PAUSE).toList();
        this.bursts = (int) plan.steps().stream()
                .map(Step::kind)
                .filter(kind -> switch (kind) {
                    case RESTART_EMPTY, FAILOVER, SERVER_CLOCK, RESET -> true;
                    default -> false;
                })
                .count();
        bursts += (int) plan.steps().stream().filter(Judge::outlastsLeases).count();
    }

    /** Redis forgets the calls of a node that it has not heard of for 30 s; the last news may be 10 s old. */
    private static boolean outlastsLeases(Step step) {
        return step.kind().isFault() && step.end() - step.at() > 19_000 * MILLI;
    }

    /** How long a key takes to be as one never seen. */
    static long fullNanos(Limit limit) {
        double permit = limit.algorithm() == Algorithm.CONCURRENCY
                ? 0
                : (double) limit.rate().period().toNanos() / limit.rate().permits();
        return switch (limit.algorithm()) {
            case CONCURRENCY -> 0;
            case WARM_UP -> limit.warmup().toNanos() + (long) (16 * permit);
            case FIXED_WINDOW, SLIDING_WINDOW, SLIDING_LOG ->
                2 * limit.rate().period().toNanos();
            default -> (long) ((limit.burst() + 8) * permit);
        };
    }

    /** How long a permit of debt delays that. */
    static long debtNanos(Limit limit) {
        return switch (limit.algorithm().family()) {
            case WINDOW, IN_FLIGHT -> 0;
            // The coldest permits are the dearest.
            case BUCKET, PACED -> (long) (limit.coldFactor() / perNano(limit));
        };
    }

    /** How many permits a key never seen gives at once. */
    static long freshPermits(Limit limit) {
        return switch (limit.algorithm()) {
            case CONCURRENCY -> limit.maxConcurrent();
            case FIXED_WINDOW, SLIDING_WINDOW, SLIDING_LOG -> limit.rate().permits();
            case LEAKY_BUCKET, WARM_UP -> 1;
            case SMOOTH_BURSTY -> limit.burst() + 1;
            default -> limit.burst();
        };
    }

    /** The next beginning of a window of the calendar, a little later. */
    static long atWindow(Plan plan, long from, long serverMicros) {
        if (plan.limit().algorithm() != Algorithm.FIXED_WINDOW) {
            return from;
        }
        long end = from;
        for (Limit limit : List.of(plan.limit(), plan.changed())) {
            end = Math.max(end, next(limit.rate().period().toNanos(), from, serverMicros));
        }
        if (plan.has(Kind.TIME_REFUSED)) {
            // The window of a node begins by its own clock.
            end += Node.TIMEOUT.toNanos();
        }
        return end;
    }

    private static long next(long period, long from, long serverMicros) {
        long wall = Simulation.BEGIN_MICROS * 1_000 + serverMicros * 1_000 + from;
        return from + period - Math.floorMod(wall, period) + 2 * MILLI;
    }

    /** Every call ends, once and in time. */
    void calls(List<Call> calls) {
        boolean flight = plan.limit().algorithm() == Algorithm.CONCURRENCY;
        boolean onlyMoves =
                plan.steps().stream().allMatch(step -> !step.kind().isFault() || step.kind() == Kind.MOVE_SLOT);
        for (Call call : calls) {
            if (call.cancelled || call.node.isDead()) {
                continue;
            }
            if (call.decidedAt == Call.NEVER || call.settledAt == Call.NEVER) {
                violations.add("a call never ends: " + call);
                continue;
            }
            if (call.completions > 2) {
                violations.add("a call ends " + call.completions + " times: " + call);
            }
            long late = call.decidedAt - call.sentAt - Node.TIMEOUT.toNanos() - TICK - plan.stall();
            if (late > pauses(call.sentAt, call.decidedAt)) {
                violations.add("a call is decided " + late / 1e6 + " ms late: " + call);
            }
            long longest = Math.max(call.wait, call.maxWait) + TICK;
            long waited = call.settledAt - call.decidedAt - longest;
            if (waited > pauses(call.decidedAt, call.settledAt)) {
                violations.add("a call waits " + waited / 1e6 + " ms too long: " + call);
            }
            boolean alone = call.step.kind() != Kind.CALL_OF_TWO;
            if (call.isLocal() && call.went() && alone && plan.onFailure() == OnFailure.DENY) {
                violations.add("a call goes without Redis in spite of on-failure deny: " + call);
            }
            if (onlyMoves && !flight && (call.isLocal() || call.failure != null)) {
                violations.add("a call is not decided by Redis, of which only slots move: " + call);
            }
            if (call.failure != null && plan.onFailure() != OnFailure.THROW) {
                violations.add("a call fails: " + call + " " + call.failure);
            }
        }
    }

    /** For how long some node stood still between two times. */
    private long pauses(long from, long to) {
        long sum = 0;
        for (Step step : pauses) {
            sum += Math.max(0, Math.min(to, step.end()) - Math.max(from, step.at()));
        }
        return sum;
    }

    /** Whoever waits for a place when an outage begins is decided as the limit says for outages, as soon as it is known. */
    void waiting(List<Call> calls) {
        if (plan.onFailure() == OnFailure.LOCAL || plan.limit().algorithm() != Algorithm.CONCURRENCY) {
            return;
        }
        for (Step outage : plan.steps()) {
            // A look of the queue, the timeout, and the longer look of an outage.
            long known = outage.at() + Node.TIMEOUT.toNanos() + 2 * TICK + 150 * MILLI;
            if (!cutsOff(outage) || outage.end() <= known) {
                continue;
            }
            for (Call call : calls) {
                if (concerns(outage, call.node)
                        && !call.cancelled
                        && !call.node.isDead()
                        && call.decidedAt < outage.at()
                        && call.settledAt > known + pauses(outage.at(), call.settledAt)) {
                    violations.add("a caller waits on while Redis is away: " + call);
                }
            }
        }
    }

    /** A node whose limit is closed lets no call go that has asked since. */
    void closings(List<Call> calls, List<Simulation.Closing> closings) {
        for (Simulation.Closing closing : closings) {
            for (Call call : calls) {
                if (call.node == closing.node()
                        && call.step.kind() != Kind.CALL_OF_LEDGER
                        && call.sentAt > closing.from()
                        && call.decidedAt < closing.to()
                        && call.went()) {
                    violations.add("a call goes under a limit that is closed: " + call);
                }
            }
        }
    }

    private boolean concerns(Step outage, Node node) {
        return switch (outage.kind()) {
            case FREEZE, RESTART_EMPTY, FAILOVER -> true;
            default -> !plan.has(Kind.JOIN) && node.toString().equals("n" + outage.node() % plan.nodes());
        };
    }

    private boolean cutsOff(Step step) {
        return switch (step.kind()) {
            case SILENCE, NO_REPLIES, NO_QUESTIONS, CUT, DEAF -> true;
            case FREEZE, RESTART_EMPTY, FAILOVER -> plan.servers() == 1;
            default -> false;
        };
    }

    /** A server that answers nobody is asked by its probe alone, once a caller has waited in vain. */
    void silence(Step silent, Node node) {
        boolean alone = plan.steps().stream()
                .filter(step -> !step.equals(silent) && step.kind().isFault())
                .noneMatch(step -> step.at() <= silent.end() && step.end() + 300 * MILLI >= silent.at());
        if (!alone || silent.nanos() < 200 * MILLI) {
            return;
        }
        long[] sent = node.network().sent(silent.at() + 25 * MILLI, silent.end());
        if (sent.length == 0) {
            return;
        }
        long known = sent[0] + Node.TIMEOUT.toNanos() + TICK;
        long vain = LongStream.of(sent).filter(time -> time > known).count();
        long probes = 3 + Math.max(0, silent.end() - known) / (100 * MILLI);
        if (vain > probes) {
            violations.add(node + " sends " + vain + " commands to a server that does not answer, " + probes
                    + " allowed: " + silent);
        }
    }

    /** The worst window of all keys, divided by its bound. */
    double windows(List<Call> calls) {
        Set<Integer> keys = new HashSet<>();
        calls.forEach(call -> keys.add(call.step.key()));
        double worst = 0;
        for (int key : keys) {
            List<Call> went = calls.stream()
                    .filter(call -> call.step.key() == key && call.step.kind() != Kind.CALL_OF_LEDGER && call.went())
                    .toList();
            long local = went.stream()
                    .filter(Call::isLocal)
                    .map(call -> call.node)
                    .distinct()
                    .count();
            worst = Math.max(worst, worst(went, call -> !call.isLocal(), 0));
            if (plan.onFailure() == OnFailure.LOCAL && local > 0) {
                worst = Math.max(worst, worst(went, call -> true, (int) local));
            }
        }
        return worst;
    }

    /** A node that has not counted the others yet assumes that there are four. */
    private double share() {
        return plan.expected() > 0 ? 1.0 / plan.expected() : plan.end() < COUNTED ? 0.25 : 1;
    }

    private double worst(List<Call> all, Predicate<Call> counts, int localNodes) {
        // Calls that wait keep their time when the limit changes or the server forgets, and others come in between.
        boolean changes = plan.changes() || bursts > 0;
        List<Call> calls = all.stream()
                .filter(counts)
                .filter(call -> !changes || call.wait == 0)
                .toList();
        if (calls.isEmpty()) {
            return 0;
        }
        return plan.limit().algorithm() == Algorithm.CONCURRENCY
                ? mostAtOnce(calls, localNodes)
                : mostInWindow(calls, localNodes);
    }

    /** The part of the limit that nodes cut off from Redis may give beside it, together. */
    private double local(int nodes) {
        return nodes * share();
    }

    private double mostAtOnce(List<Call> calls, int localNodes) {
        long most = larger(Limit::maxConcurrent);
        // A node has a place at least.
        double bound = most * (1 + bursts) + Math.max(most * local(localNodes), localNodes);
        double worst = 0;
        for (Call begin : calls) {
            long sum = 0;
            for (Call call : calls) {
                if (call.wentAt <= begin.wentAt && call.endedAt > begin.wentAt) {
                    sum += call.permits;
                }
            }
            worst = Math.max(worst, sum / bound);
            if (sum > bound) {
                violations.add(sum + " calls in flight at " + begin.wentAt / 1e6 + " ms, " + bound + " allowed");
                break;
            }
        }
        return worst;
    }

    private long larger(ToLongFunction<Limit> what) {
        long first = what.applyAsLong(plan.limit());
        return plan.changes() ? Math.max(first, what.applyAsLong(plan.changed())) : first;
    }

    /** Nodes that give scripts the time learn one after the other that the server's clock has stepped. */
    private boolean nodesDisagreeOnTheTime() {
        return plan.has(Kind.TIME_REFUSED)
                && plan.steps().stream()
                        .anyMatch(step -> step.kind() == Kind.SERVER_CLOCK && Math.abs(step.amount()) > SLACK_MILLIS);
    }

    private static double perNano(Limit limit) {
        return (double) limit.rate().permits() / limit.rate().period().toNanos();
    }

    private double mostInWindow(List<Call> calls, int localNodes) {
        Limit limit = plan.limit();
        double rate = perNano(limit);
        long period = limit.rate().period().toNanos();
        if (plan.changes()) {
            rate = Math.max(rate, perNano(plan.changed()));
            period = Math.min(period, plan.changed().rate().period().toNanos());
        }
        // Nodes that give scripts the time differ by half a round trip each.
        long apart = plan.has(Kind.TIME_REFUSED) ? Node.TIMEOUT.toNanos() : 0;
        boolean window = switch (limit.algorithm()) {
            case FIXED_WINDOW, SLIDING_WINDOW, SLIDING_LOG -> true;
            default -> false;
        };
        long ahead = plan.overshoot() == 0
                ? 0
                : Math.min(1_000 * MILLI, (long) (limit.rate().period().toNanos() * plan.overshoot()));
        long largest = calls.stream().mapToLong(call -> call.permits).max().orElse(0);
        boolean otherWindow = plan.changes()
                && !plan.changed().rate().period().equals(limit.rate().period());
        double stored = switch (limit.algorithm()) {
            case TOKEN_BUCKET, GCRA -> larger(Limit::burst);
            case SMOOTH_BURSTY -> larger(Limit::burst) + largest;
            case LEAKY_BUCKET, WARM_UP -> largest;
            // Windows of two periods have two budgets.
            default ->
                otherWindow
                        ? (double) limit.rate().permits()
                                + plan.changed().rate().permits()
                        : larger(each -> each.rate().permits());
        };
        // Each call of a node may find the clock stepped by the one before, of another node.
        int refilled = 1 + bursts + (nodesDisagreeOnTheTime() ? calls.size() : 0);
        boolean calendar = limit.algorithm() == Algorithm.FIXED_WINDOW;
        boolean aligned = calendar && apart == 0 && bursts == 0 && localNodes == 0 && !otherWindow;
        double local = local(localNodes);
        double share = share();
        List<CutOff> cutOff = CutOff.of(calls);
        // In a cluster a key may come to other servers, each with outages of its own.
        double again = plan.servers() > 1 && localNodes > 0
                ? stored
                : Math.min(stored, localNodes * Math.max(1, stored * share()));
        double worst = 0;
        List<Call> byEnd = new ArrayList<>(calls);
        byEnd.sort(Comparator.comparingLong(call -> call.wentAt));
        // Numbers and not calls: thousands of calls are looked at for each of thousands.
        long[] begins =
                byEnd.stream().mapToLong(call -> call.sentAt + call.wait).toArray();
        long[] ends = byEnd.stream().mapToLong(call -> call.wentAt).toArray();
        long[] permits = byEnd.stream().mapToLong(Call::stands).toArray();
        for (long from : begins) {
            long sum = 0;
            for (int i = firstFrom(ends, from); i < ends.length; i++) {
                if (begins[i] < from) {
                    continue;
                }
                long length = ends[i] - from;
                if (window && length + apart >= period) {
                    break;
                }
                if (aligned && index(from, period) != index(ends[i], period)) {
                    break;
                }
                sum += permits[i];
                double bound;
                if (window) {
                    int windows = calendar && !aligned ? 2 : 1;
                    double most = stored * windows;
                    // A node has a permit of each window at least.
                    double locally = Math.max((double) windows * localNodes, most * local);
                    bound = most * refilled + locally + rate * ahead;
                } else {
                    long away = 0;
                    for (CutOff each : cutOff) {
                        away += each.refilled(length);
                    }
                    bound = stored * refilled
                            + again
                            + localNodes * largest
                            + rate * (length + ahead + apart + 2_000 + share * away);
                }
                worst = Math.max(worst, sum / bound);
                if (sum > bound + 1e-6) {
                    violations.add(String.format(
                            Locale.ROOT,
                            "%d permits%s in the window from %.3f to %.3f ms, %.3f allowed",
                            sum,
                            localNodes == 0 ? " of Redis" : "",
                            from / 1e6,
                            ends[i] / 1e6,
                            bound));
                    return worst;
                }
            }
        }
        return worst;
    }

    /** The first place in ascending numbers of one that is not below another. */
    private static int firstFrom(long[] ascending, long least) {
        int found = Arrays.binarySearch(ascending, least);
        int first = found < 0 ? -found - 1 : found;
        while (first > 0 && ascending[first - 1] == least) {
            first--;
        }
        return first;
    }

    /**
     * However many outages there are, nodes give their share of a burst once, and of what refills while Redis is away from
     * them, for the time of a call that waits too. All else that they give, Redis has paid for.
     */
    private record CutOff(long awayNanos, long ahead) {

        private static List<CutOff> of(List<Call> calls) {
            return calls.stream()
                    .filter(Call::isLocal)
                    .collect(Collectors.toMap(call -> call.node, call -> call.wait, Math::max))
                    .entrySet()
                    .stream()
                    .map(each -> new CutOff(each.getKey().awayNanos(), each.getValue()))
                    .toList();
        }

        private long refilled(long length) {
            return Math.min(awayNanos, length) + ahead;
        }
    }

    /**
     * What was used of limits of which nothing lapses is stored, and nothing twice: exactly where each command had a reply, be it
     * that the server takes no writes now. A command without one may be lost, and a call that Redis has counted without its
     * caller's knowing is counted again where it is decided without Redis.
     */
    void ledgers(List<Call> calls, Map<Integer, Long> stored) {
        boolean exact = plan.steps().stream()
                .map(Step::kind)
                .noneMatch(kind -> kind.isFault() && !isHarmless(kind) && !isRefusal(kind));
        boolean keeps = plan.steps().stream()
                        .map(Step::kind)
                        .noneMatch(kind -> kind.isFault() && !isHarmless(kind) && !isSilence(kind))
                && plan.steps().stream().filter(step -> isSilence(step.kind())).count() <= 1;
        stored.forEach((key, found) -> {
            long least = 0;
            long most = 0;
            for (Call call : calls) {
                if (call.step.kind() == Kind.CALL_OF_LEDGER && call.step.key() == key) {
                    boolean counts = plan.onFailure() == OnFailure.LOCAL || !call.isLocal();
                    boolean reserved = call.went() && !call.isLocal();
                    boolean charged = counts && (exact || call.settledInOutage);
                    least += (reserved ? call.stands() : 0) + (charged ? call.excess() : 0);
                    most += exact ? call.stands() + call.excess() : call.permits + (counts ? call.excess() : 0);
                    most += call.isLocal() && counts ? call.permits : 0;
                }
            }
            if (found > most || (keeps && found < least)) {
                violations.add(
                        found + " permits of ledger k" + key + " are stored, " + least + " to " + most + " were used");
            }
        });
    }

    private static boolean isHarmless(Kind kind) {
        return switch (kind) {
            case RESET, FORGET_SCRIPTS, NODE_CLOCK, JOIN, CHANGE, CHANGE_FOR_ALL, CLOSE, REFUNDS_TWICE, LOG_THROWS ->
                true;
            default -> false;
        };
    }

    /** What a server refuses so has changed nothing, and comes again. */
    private static boolean isRefusal(Kind kind) {
        return switch (kind) {
            case READ_ONLY, OUT_OF_MEMORY, TIME_REFUSED -> true;
            default -> false;
        };
    }

    /** Nothing that has arrived is lost by it. */
    private static boolean isSilence(Kind kind) {
        return switch (kind) {
            case CUT, SILENCE, NO_REPLIES, NO_QUESTIONS, DEAF -> true;
            default -> false;
        };
    }

    private static long index(long time, long period) {
        return Math.floorDiv(Simulation.BEGIN_MICROS * 1_000 + time, period);
    }

    /** The calls on a key that is as one never seen: exactly what a fresh cluster would give. */
    void fresh(List<Call> calls) {
        if (calls.isEmpty()) {
            return;
        }
        long most = freshPermits(calls.get(0).node.limiter().limit());
        long went = calls.stream().filter(call -> call.went()).count();
        Limit limit = calls.get(0).node.limiter().limit();
        boolean flows = limit.algorithm() != Algorithm.CONCURRENCY && calls.get(0).permits > 0;
        long took = calls.stream()
                .mapToLong(call -> call.settledAt - call.sentAt)
                .max()
                .orElse(0);
        // A bucket that starts empty was empty when the first of the nodes began. A server that has lost that time is
        // given a
        // new one by the next heartbeat.
        boolean begins = limit.algorithm() == Algorithm.SMOOTH_BURSTY
                && (calls.get(0).node.isNew() || plan.has(Kind.RESTART_EMPTY) || plan.has(Kind.FAILOVER));
        // A redirection within a cluster takes longer than a call that ends at once.
        boolean again = limit.algorithm() == Algorithm.CONCURRENCY && plan.servers() > 1;
        // A node that was given the time before the clock stepped may begin its windows by that.
        boolean unsure = limit.algorithm() == Algorithm.FIXED_WINDOW
                && plan.has(Kind.TIME_REFUSED)
                && plan.has(Kind.SERVER_CLOCK);
        double allowed = again || unsure ? calls.size() : most + (flows ? perNano(limit) * took : 0);
        if ((went < most && !begins) || went > allowed) {
            violations.add(
                    "a key that nobody has used for long gives " + went + " permits instead of " + most + ": " + calls);
        }
    }
}
