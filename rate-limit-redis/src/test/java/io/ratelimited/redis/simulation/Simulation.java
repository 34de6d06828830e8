package io.ratelimited.redis.simulation;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.AllOf;
import io.ratelimited.core.Claim;
import io.ratelimited.core.Reservation;
import io.ratelimited.redis.RedisHealth;
import io.ratelimited.redis.simulation.Step.Kind;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.luaj.vm2.LuaString;

/** Runs one schedule on the shipped classes, in one thread, and collects what callers and the network have seen. */
final class Simulation {

    /** 2026-01-01, in microseconds since 1970. */
    static final long BEGIN_MICROS = 1_767_225_600_000_000L;

    private static final long MILLI = 1_000_000;
    /** After the last fault everything is as on a fresh cluster. */
    private static final long RECOVERY = 2_000 * MILLI;
    /** A call in flight of a node that has died counts for so long. */
    private static final long NODE_LEASE = 30_000 * MILLI;

    private final Plan plan;
    private final World world = new World();
    private final Server server;
    private final List<Node> nodes = new ArrayList<>();
    private final List<Call> calls = new ArrayList<>();
    private final List<String> violations = new ArrayList<>();
    private final LogProbe log;
    /** The clock of the server, ahead of virtual time. */
    private long serverMicros;

    Simulation(Plan plan, Lua lua, LogProbe log) {
        this.plan = plan;
        this.log = log;
        this.server = new Server(lua, () -> BEGIN_MICROS + world.now() / 1_000 + serverMicros);
    }

    /** What a schedule has shown. */
    record Outcome(Plan plan, List<String> violations, int decisions, int commands, double worst) {}

    Outcome run() {
        log.begin();
        for (int i = 0; i < plan.nodes(); i++) {
            nodes.add(new Node(world, server, plan, i));
        }
        plan.steps().forEach(step -> world.at(step.at(), () -> happen(step)));
        snapshots();
        long quiet = plan.steps().stream().mapToLong(Step::end).max().orElse(0);
        world.runUntil(quiet + RECOVERY);
        recovered();
        Map<Integer, Long> stored = ledgers();
        world.runUntil(world.now() + idle());
        List<Call> last = fresh();
        Judge judge = new Judge(plan, violations);
        judge.calls(calls);
        double worst = judge.windows(calls);
        judge.ledgers(calls, stored);
        for (Step step : plan.steps()) {
            if (step.kind() == Kind.SILENCE) {
                judge.silence(step, node(step));
            } else if (step.kind() == Kind.FREEZE) {
                nodes.forEach(node -> judge.silence(step, node));
            }
        }
        judge.fresh(last);
        world.failures().forEach(failure -> violations.add("a task died: " + failure));
        log.failures().forEach(failure -> violations.add("a task failed: " + failure));
        return new Outcome(plan, violations, calls.size() + last.size(), server.commands(), worst);
    }

    List<Call> calls() {
        return calls;
    }

    /** Keeps what the server knew when a failover is going to lose the rest. */
    private void snapshots() {
        for (Step step : plan.steps()) {
            if (step.kind() == Kind.FAILOVER) {
                Store[] kept = new Store[1];
                world.at(
                        Math.max(0, step.at() - step.amount() * MILLI),
                        () -> kept[0] = server.store().copy());
                world.at(step.end(), () -> restart(kept[0]));
            }
        }
    }

    private void restart(Store with) {
        server.start(with);
    }

    private void happen(Step step) {
        if (!step.kind().isFault()) {
            call(step);
            return;
        }
        long end = step.end();
        Node node = node(step);
        switch (step.kind()) {
            case CUT -> {
                node.network().silence(end, true, true);
                node.network().cut();
            }
            case SILENCE -> node.network().silence(end, true, true);
            case NO_REPLIES -> node.network().silence(end, false, true);
            case NO_QUESTIONS -> node.network().silence(end, true, false);
            case SLOW -> node.network().slow(end, step.amount() * MILLI);
            case DEAF -> {
                node.network().deaf(end);
                node.network().cut();
            }
            case FREEZE -> {
                server.freeze();
                world.at(end, server::thaw);
            }
            case RESTART_EMPTY, FAILOVER -> {
                server.stop();
                nodes.forEach(each -> each.network().cut());
                if (step.kind() == Kind.RESTART_EMPTY) {
                    world.at(end, () -> restart(new Store()));
                }
            }
            case READ_ONLY -> {
                server.readOnly(true);
                world.at(end, () -> server.readOnly(false));
            }
            case OUT_OF_MEMORY -> {
                server.outOfMemory(true);
                world.at(end, () -> server.outOfMemory(false));
            }
            case FORGET_SCRIPTS -> server.forgetScripts();
            case TIME_REFUSED -> server.timeRefused(true);
            case SERVER_CLOCK -> serverMicros += step.amount() * 1_000L;
            case NODE_CLOCK -> node.stepWallClock(step.amount() * MILLI);
            case PAUSE -> node.pauseUntil(end);
            case KILL -> kill(node);
            case JOIN -> nodes.add(new Node(world, server, plan, nodes.size()));
            case CHANGE -> node.limiter().update(plan.changed());
            case LOG_THROWS -> {
                log.throwing(true);
                world.at(end, () -> log.throwing(false));
            }
            case RESET -> world.at(node, world.now(), () -> reset(step));
            default -> throw new IllegalArgumentException(step.toString());
        }
    }

    /** The reset of a limiter blocks, which the only thread must not. */
    private void reset(Step step) {
        try {
            server.delete(LuaString.valueOf("rl:{" + key(step) + "}:limit"));
        } catch (RedisError ex) {
            // Reported to whoever has asked for it.
        }
    }

    private void kill(Node node) {
        node.kill();
        node.network().cut();
        for (Call call : calls) {
            if (call.node == node && call.went() && call.endedAt > world.now()) {
                call.endedAt = world.now();
            }
        }
    }

    private Node node(Step step) {
        return nodes.get(step.node() % nodes.size());
    }

    private static String key(Step step) {
        return "k" + step.key();
    }

    private void call(Step step) {
        Node node = node(step);
        if (step.isFlood()) {
            for (int i = 0; i < step.amount(); i++) {
                world.at(node, world.now() + i * step.nanos() / step.amount(), () -> call(step, node, 1));
            }
        } else if (step.kind() == Kind.BURST) {
            world.at(node, world.now(), () -> {
                for (int i = 0; i < step.amount(); i++) {
                    call(step, node, 1);
                }
            });
        } else {
            world.at(node, world.now(), () -> call(step, node, step.amount()));
        }
    }

    private Call call(Step step, Node node, int permits) {
        boolean flight = plan.limit().algorithm() == Algorithm.CONCURRENCY;
        boolean waits = !step.isFlood() && (!flight || step.at() / 1_000 % 3 == 0);
        long maxWait = waits ? step.nanos() : 0;
        Call call = new Call(step, node, permits, world.now(), maxWait);
        calls.add(call);
        CompletionStage<Reservation> asked = step.kind() == Kind.CALL_OF_TWO
                ? AllOf.reserveAsync(List.of(
                        new Claim(node.limiter(), key(step), permits, maxWait),
                        new Claim(node.other(), key(step), permits, maxWait)))
                : (step.kind() == Kind.CALL_OF_LEDGER ? node.ledger() : node.limiter())
                        .reserveAsync(key(step), permits, maxWait);
        asked.whenComplete((reservation, failure) -> {
            call.completions++;
            call.decidedAt = world.now();
            if (failure != null) {
                call.failure = failure;
                call.settledAt = world.now();
            } else {
                decided(call, reservation);
            }
            if (step.kind() == Kind.CALL_THROWING) {
                throw new IllegalStateException("a callback of the application");
            }
        });
        if (step.kind() == Kind.CALL_CANCELLED) {
            long after = 1 + step.at() % (3 * MILLI);
            world.at(node, world.now() + after, () -> {
                CompletableFuture<Reservation> future = asked.toCompletableFuture();
                call.cancelled = !future.isDone();
                future.cancel(false);
            });
        }
        return call;
    }

    private void decided(Call call, Reservation reservation) {
        call.source = reservation.decision().source();
        call.refused = reservation.isRefused();
        if (call.refused) {
            call.settledAt = world.now();
        } else if (call.step.kind() == Kind.CALL_GIVEN_BACK) {
            call.settledAt = world.now();
            reservation.cancel();
        } else if (reservation.mayWait()) {
            call.wait = reservation.waitNanos();
            reservation.awaitAsync().whenComplete((may, failure) -> {
                call.completions++;
                call.settledAt = world.now();
                call.failure = failure;
                call.source = reservation.decision().source();
                if (failure == null && may) {
                    go(call, reservation);
                }
            });
        } else {
            call.settledAt = world.now();
            go(call, reservation);
        }
    }

    private void go(Call call, Reservation reservation) {
        call.wentAt = world.now();
        world.at(call.node, world.now() + call.step.nanos() / 2, () -> {
            call.endedAt = world.now();
            settle(call, reservation);
            reservation.release();
        });
    }

    /** The first settlement counts. */
    private static void settle(Call call, Reservation reservation) {
        if (call.step.isSettled()) {
            call.cost = call.step.at() / 1_000 % (call.permits + 4L);
            call.settledInOutage = call.node.backend().health().state() == RedisHealth.State.DOWN;
            reservation.settle(call.cost);
            reservation.settle(call.cost + 1);
            reservation.cancel();
        }
    }

    private List<Node> alive() {
        return nodes.stream().filter(node -> !node.isDead()).toList();
    }

    /** Two seconds after the last fault Redis decides on every node. */
    private void recovered() {
        if (plan.has(Kind.TIME_REFUSED)) {
            // The first script of each node finds out.
            alive().forEach(node -> ask(node, "first", call(node)));
            world.runUntil(world.now() + 600 * MILLI);
        }
        for (Node node : alive()) {
            if (node.backend().health().state() != RedisHealth.State.UP) {
                violations.add(node + " is not UP two seconds after the last fault: "
                        + node.backend().health());
            }
            Call call = call(node);
            ask(node, "witness", call);
            world.runUntil(world.now() + 2 * Node.TIMEOUT.toNanos());
            if (call.source == null || call.isLocal()) {
                violations.add(node + " does not ask Redis two seconds after the last fault: " + call);
            }
            if (node.limiter().waiting() != 0) {
                violations.add(node + " has " + node.limiter().waiting() + " callers waiting when all have ended");
            }
            int owed = node.network().underWay(world.now() - 2 * Node.TIMEOUT.toNanos());
            if (owed != 0) {
                violations.add(node + " has " + owed + " commands under way when all have ended");
            }
        }
    }

    /** What is stored of each ledger. */
    private Map<Integer, Long> ledgers() {
        Map<Integer, Long> stored = new TreeMap<>();
        List<Node> alive = alive();
        if (!alive.isEmpty()) {
            for (Call call : calls) {
                if (call.step.kind() == Kind.CALL_OF_LEDGER && !stored.containsKey(call.step.key())) {
                    int key = call.step.key();
                    alive.get(0).ledger().reserveAsync("k" + key, 1, 0).whenComplete((reservation, failure) -> {
                        if (reservation != null) {
                            stored.put(key, Plan.LEDGER - reservation.decision().remaining() - 1);
                            reservation.cancel();
                        }
                    });
                    world.runUntil(world.now() + 2 * Node.TIMEOUT.toNanos());
                }
            }
        }
        return stored;
    }

    private Call call(Node node) {
        return new Call(new Step(world.now(), Kind.CALL, 0, 9, 1, 0), node, 1, world.now(), 0);
    }

    private static void ask(Node node, String key, Call call) {
        node.limiter().reserveAsync(key, 1, 0).whenComplete((reservation, failure) -> {
            call.failure = failure;
            if (reservation != null) {
                call.source = reservation.decision().source();
                reservation.release();
            }
        });
    }

    /** How long it takes until a key is as one never seen. */
    private long idle() {
        long idle = 2 * Math.max(Judge.fullNanos(plan.limit()), Judge.fullNanos(plan.changed()));
        if (plan.limit().algorithm() == Algorithm.CONCURRENCY) {
            idle = plan.has(Kind.KILL) || plan.has(Kind.FAILOVER) ? NODE_LEASE : 0;
        }
        long excess = calls.stream().mapToLong(Call::excess).sum();
        idle += excess * Math.max(Judge.debtNanos(plan.limit()), Judge.debtNanos(plan.changed()));
        for (Step step : plan.steps()) {
            if (step.kind() == Kind.SERVER_CLOCK) {
                idle += Math.abs(step.amount()) * MILLI * 2;
            }
        }
        return idle + (plan.has(Kind.TIME_REFUSED) ? 2_500 * MILLI : 100 * MILLI);
    }

    /** Nothing is left of any key, and a node is given what a fresh cluster would give it. */
    private List<Call> fresh() {
        List<String> left = server.store().keys().stream()
                .map(LuaString::tojstring)
                .filter(key -> !key.contains("~") && !key.contains("other"))
                .toList();
        if (!left.isEmpty()) {
            violations.add("keys are left: " + left + " " + server.store().described());
        }
        for (LuaString key : server.store().keys()) {
            if (server.store().expiry(key) < 0) {
                violations.add(key + " never expires");
            }
        }
        List<Node> alive = alive();
        Node node = alive.isEmpty() ? new Node(world, server, plan, nodes.size()) : alive.get(0);
        if (alive.isEmpty()) {
            node.alone();
        }
        world.runUntil(Judge.atWindow(plan, world.now() + 200 * MILLI, serverMicros));
        List<Call> last = new ArrayList<>();
        long most = Judge.freshPermits(node.limiter().limit());
        int before = calls.size();
        world.at(node, world.now(), () -> {
            for (int i = 0; i <= most; i++) {
                last.add(call(new Step(world.now(), Kind.CALL, 0, 0, 1, 0), node, 1));
            }
        });
        world.runUntil(world.now() + 3 * Node.TIMEOUT.toNanos());
        calls.subList(before, calls.size()).clear();
        return last;
    }
}
