package io.ratelimited.redis.simulation;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.redis.RedisHealth;
import io.ratelimited.redis.internals.connection.KeyNames;
import io.ratelimited.redis.simulation.Step.Kind;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
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
    private final Servers servers;
    private final List<Node> nodes = new ArrayList<>();
    private final Callers callers;
    private final FleetRecords fleet;
    private final List<String> violations = new ArrayList<>();
    private final LogProbe log;
    private final List<Closing> closings = new ArrayList<>();
    /** The nodes whose limit is closed now. */
    private final Map<Node, Closing> closed = new HashMap<>();
    /** The clock of the server, ahead of virtual time. */
    private long serverMicros;

    Simulation(Plan plan, Lua lua, LogProbe log) {
        this.plan = plan;
        this.log = log;
        this.callers = new Callers(world, plan);
        this.fleet = new FleetRecords(plan);
        this.servers = new Servers(
                world, plan.servers(), () -> new Server(lua, () -> BEGIN_MICROS + world.now() / 1_000 + serverMicros));
    }

    /** For how long a node had a closed limit. */
    record Closing(Node node, long from, long to) {}

    /** What a schedule has shown. */
    record Outcome(Plan plan, List<String> violations, int decisions, int commands, double worst) {}

    Outcome run() {
        log.begin();
        world.observe(() -> nodes.forEach(Node::observe));
        for (int i = 0; i < plan.nodes(); i++) {
            join();
        }
        plan.steps().forEach(step -> world.at(step.at(), () -> happen(step)));
        snapshots();
        long quiet = plan.steps().stream().mapToLong(this::end).max().orElse(0);
        world.runUntil(quiet + RECOVERY);
        recovered();
        fleet.judge(alive(), violations);
        rested();
        Map<Integer, Long> stored = ledgers();
        world.runUntil(world.now() + idle());
        List<Call> last = fresh();
        Judge judge = new Judge(plan, violations);
        judge.calls(calls());
        judge.waiting(calls());
        judge.closings(calls(), closings);
        double worst = judge.windows(calls());
        judge.ledgers(calls(), stored);
        if (plan.limit().block() != null) {
            new BlockJudge(plan, violations).blocks(calls());
        }
        for (Step step : plan.steps()) {
            if (step.kind() == Kind.SILENCE && !servers.isCluster()) {
                judge.silence(step, node(step));
            } else if (step.kind() == Kind.FREEZE && !servers.isCluster()) {
                nodes.forEach(node -> judge.silence(step, node));
            }
        }
        judge.fresh(last);
        world.failures().forEach(failure -> violations.add("a task died: " + failure));
        log.failures().forEach(failure -> violations.add("a task failed: " + failure));
        return new Outcome(plan, violations, calls().size() + last.size(), commands(), worst);
    }

    /** When the calls of a step have ended. Those that a pause holds up begin when it is over, and run for as long. */
    private long end(Step step) {
        long end = step.end();
        if (plan.limit().algorithm() == Algorithm.CONCURRENCY && !step.kind().isFault()) {
            for (Step pause : plan.steps()) {
                if (pause.kind() == Kind.PAUSE && pause.end() > step.at()) {
                    end = Math.max(end, pause.end() + step.end() - step.at());
                }
            }
        }
        return end;
    }

    private void join() {
        Node node = new Node(world, servers, plan, nodes.size());
        nodes.add(node);
        fleet.follow(node);
    }

    List<Call> calls() {
        return callers.calls();
    }

    private int commands() {
        return servers.all().stream().mapToInt(Server::commands).sum();
    }

    /** Keeps what the server knew when a failover is going to lose the rest. */
    private void snapshots() {
        for (Step step : plan.steps()) {
            if (step.kind() == Kind.FAILOVER) {
                Store[] kept = new Store[1];
                Server server = server(step);
                world.at(
                        Math.max(0, step.at() - step.amount() * MILLI),
                        () -> kept[0] = server.store().copy());
                world.at(step.end(), () -> {
                    servers.promoted(server);
                    server.start(kept[0]);
                });
            }
        }
    }

    private void happen(Step step) {
        long end = step.end();
        Node node = node(step);
        Server server = server(step);
        if (!step.kind().isFault()) {
            callers.call(step, node);
            return;
        }
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
                nodes.forEach(each -> each.network().cut(server));
                if (step.kind() == Kind.RESTART_EMPTY) {
                    world.at(end, () -> server.start(new Store()));
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
            case TIME_REFUSED -> servers.all().forEach(each -> each.timeRefused(true));
            case SERVER_CLOCK -> serverMicros += step.amount() * 1_000L;
            case NODE_CLOCK -> node.stepWallClock(step.amount() * MILLI);
            case PAUSE -> node.pauseUntil(end);
            case KILL -> kill(node);
            case JOIN -> join();
            case CHANGE -> {
                node.limiter().update(plan.changed());
                closed.remove(node);
            }
            case CLOSE -> close(node, end);
            case REFUNDS_TWICE -> {
                servers.all().forEach(each -> each.refundsTwice(true));
                world.at(end, () -> servers.all().forEach(each -> each.refundsTwice(false)));
            }
            case LOG_THROWS -> {
                log.throwing(true);
                world.at(end, () -> log.throwing(false));
            }
            case CHANGE_FOR_ALL -> world.at(node, world.now(), () -> fleet.change(step, node));
            case LOSS -> node.network().loss(end, step.amount() * MILLI);
            case EXECUTOR_THROWS -> {
                node.rejects(true);
                world.at(end, () -> node.rejects(false));
            }
            case MOVE_SLOT -> servers.move(name(step), step.amount(), step.nanos());
            case RESET -> world.at(node, world.now(), () -> reset(step));
            default -> throw new IllegalArgumentException(step.toString());
        }
    }

    /** The reset of a limiter blocks, which the only thread must not. */
    private void reset(Step step) {
        try {
            Server server = servers.of(name(step));
            server.store().keys().stream()
                    .filter(key -> key.tojstring().startsWith(name(step) + "~"))
                    .forEach(server::delete);
        } catch (RedisError ex) {
            // Reported to whoever has asked for it.
        }
    }

    private void close(Node node, long end) {
        Limit open = node.limiter().limit();
        Limit.Builder builder = open.toBuilder();
        Limit none = open.algorithm() == Algorithm.CONCURRENCY
                ? builder.maxConcurrent(0).build()
                : builder.rate("0/s").build();
        Closing closing = new Closing(node, world.now(), end);
        if (closed.putIfAbsent(node, closing) != null) {
            return;
        }
        node.limiter().update(none);
        world.at(end, () -> {
            if (closed.remove(node, closing)) {
                node.limiter().update(open);
                closings.add(closing);
            }
        });
    }

    private void kill(Node node) {
        node.kill();
        node.network().cut();
        callers.killed(node);
    }

    private Node node(Step step) {
        return nodes.get(step.node() % nodes.size());
    }

    private Server server(Step step) {
        return servers.get(step.node());
    }

    private static String name(Step step) {
        return new KeyNames("rl").ofLimit("limit", "").of(Callers.key(step));
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
            for (Call call : calls()) {
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
                call.refused = reservation.isRefused();
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
        long excess = calls().stream().mapToLong(Call::excess).sum();
        idle += excess * Math.max(Judge.debtNanos(plan.limit()), Judge.debtNanos(plan.changed()));
        for (Step step : plan.steps()) {
            if (step.kind() == Kind.SERVER_CLOCK) {
                idle += Math.abs(step.amount()) * MILLI * 2;
            }
        }
        if (plan.limit().block() != null) {
            idle += 2 * plan.limit().blockMax().toNanos();
        }
        return idle + (plan.has(Kind.TIME_REFUSED) ? 2_500 * MILLI : 100 * MILLI);
    }

    private void left(Store store) {
        List<String> left = store.keys().stream()
                .map(LuaString::tojstring)
                .filter(key -> !key.contains("{~") && !key.contains(":~") && !key.contains("other"))
                .toList();
        if (!left.isEmpty()) {
            violations.add("keys are left: " + left + " " + store.described());
        }
        for (LuaString key : store.keys()) {
            if (store.expiry(key) < 0 && !key.tojstring().startsWith("rl:{~nodes}:")) {
                violations.add(key + " never expires");
            }
        }
    }

    /** A clock that has stepped back keeps nobody from what has come back to a key since. */
    private void rested() {
        boolean flight = plan.limit().algorithm() == Algorithm.CONCURRENCY;
        boolean farBack =
                plan.steps().stream().anyMatch(step -> step.kind() == Kind.SERVER_CLOCK && step.amount() < -2_000);
        if (!farBack || alive().isEmpty() || flight || plan.has(Kind.TIME_REFUSED)) {
            return;
        }
        Node node = alive().get(0);
        // The first call notices, and may find the key as full as it was.
        ask(node, "k0", call(node));
        world.runUntil(world.now() + 2 * Math.max(Judge.fullNanos(plan.limit()), Judge.fullNanos(plan.changed())));
        Call call = call(node);
        ask(node, "k0", call);
        world.runUntil(world.now() + 2 * Node.TIMEOUT.toNanos());
        if (call.refused || call.source == null) {
            violations.add("a key that has rested gives nothing after the clock has stepped back: " + call);
        }
    }

    /** Nothing is left of any key, and a node is given what a fresh cluster would give it. */
    private List<Call> fresh() {
        servers.all().forEach(server -> left(server.store()));
        List<Node> alive = alive();
        Node node = alive.isEmpty() ? new Node(world, servers, plan, nodes.size()) : alive.get(0);
        if (alive.isEmpty()) {
            node.alone();
        }
        world.runUntil(Judge.atWindow(plan, world.now() + 200 * MILLI, serverMicros));
        List<Call> last = new ArrayList<>();
        long most = Judge.freshPermits(node.limiter().limit());
        int before = calls().size();
        world.at(node, world.now(), () -> {
            for (int i = 0; i <= most; i++) {
                last.add(callers.call(new Step(world.now(), Kind.CALL, 0, 0, 1, 0), node, 1));
            }
        });
        world.runUntil(world.now() + 3 * Node.TIMEOUT.toNanos());
        calls().subList(before, calls().size()).clear();
        return last;
    }
}
