package io.ratelimited.redis.simulation;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.RedisBackendOptions;
import io.ratelimited.redis.RedisLimitOptions;
import io.ratelimited.redis.SimulatedBackend;
import io.ratelimited.redis.internals.connection.Threads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;

/** A process with the shipped backend and limiters, on virtual time. */
final class Node extends World.Member {

    private static final long UP = -1;
    static final Duration TIMEOUT = Duration.ofMillis(50);

    private static final Limit OTHER =
            Limit.of("other", Algorithm.TOKEN_BUCKET).rate("1000000/s").build();

    private final String name;
    private final Clock clock;
    private final Network network;
    private final RedisBackend backend;
    private final RateLimiter limiter;
    private @Nullable RateLimiter other;
    private @Nullable RateLimiter ledger;
    private final Plan plan;
    private final World world;
    /** Callers that stand still before they are decided without Redis. */
    private final List<Runnable> stalled = new ArrayList<>();

    private final SplittableRandom random;
    /** For how long some of Redis has been away. */
    private long awayNanos;

    private long awaySince = UP;
    private boolean alone;
    private boolean rejects;

    Node(World world, Servers servers, Plan plan, int number) {
        this.name = "n" + number;
        this.plan = plan;
        this.world = world;
        this.random = new SplittableRandom(31 * plan.seed() + number);
        this.clock = new Clock(world, this, number * 3_600_000_000_000L);
        this.network = new Network(
                world, this, servers, new SplittableRandom(plan.seed() + 77L * number), plan.delay(), this::between);
        Executor soon = task -> world.at(this, world.now(), task);
        this.backend = SimulatedBackend.of(
                network,
                RedisBackendOptions.DEFAULTS.ticker(clock).timeout(TIMEOUT).expectedNodes(plan.expected()),
                new Threads(clock, soon, soon),
                task -> {
                    if (rejects) {
                        throw new RejectedExecutionException("an executor of the application");
                    }
                    if (plan.stall() == 0 || world.now() > plan.end()) {
                        soon.execute(task);
                    } else {
                        stall(task);
                    }
                },
                soon,
                name);
        this.limiter = backend.limiter(
                plan.limit(),
                RedisLimitOptions.DEFAULTS.onFailure(plan.onFailure()).maxOvershoot(plan.overshoot()));
    }

    private void stall(Runnable caller) {
        stalled.add(caller);
        world.at(this, world.now() + random.nextLong(plan.stall()), () -> {
            if (stalled.remove(caller)) {
                caller.run();
            }
        });
    }

    /** The connection is between two steps, as of a recovery: one of those who stand still may go on just then. */
    private void between() {
        if (!stalled.isEmpty() && random.nextInt(4) == 0) {
            stalled.remove(random.nextInt(stalled.size())).run();
        }
    }

    /** Looks after each event whether Redis is away. */
    void observe() {
        if (awaySince == UP && SimulatedBackend.isAway(backend)) {
            awaySince = world.now();
        } else if (awaySince != UP && !SimulatedBackend.isAway(backend)) {
            awayNanos += world.now() - awaySince;
            awaySince = UP;
        }
    }

    /** For how long Redis has been away from this node in all. */
    long awayNanos() {
        return awaySince == UP ? awayNanos : awayNanos + world.now() - awaySince;
    }

    Network network() {
        return network;
    }

    RedisBackend backend() {
        return backend;
    }

    RateLimiter limiter() {
        return limiter;
    }

    /** Of a limit that refuses nobody. */
    RateLimiter other() {
        RateLimiter made = other;
        if (made == null) {
            made = backend.limiter(OTHER, RedisLimitOptions.DEFAULTS.onFailure(plan.onFailure()));
            other = made;
        }
        return made;
    }

    /** Of a limit of which nothing lapses. */
    RateLimiter ledger() {
        RateLimiter made = ledger;
        if (made == null) {
            made = backend.limiter(plan.ledger(), RedisLimitOptions.DEFAULTS.onFailure(plan.onFailure()));
            ledger = made;
        }
        return made;
    }

    /** Whether the node has joined when all others had died. */
    boolean isNew() {
        return alone;
    }

    void alone() {
        alone = true;
    }

    /** Whether the executor for what callers attach rejects it. */
    void rejects(boolean value) {
        rejects = value;
    }

    /** The next caller that sleeps is interrupted at a time. There is one thread: only one may sleep. */
    void interruptAt(long time) {
        clock.interruptAt = time;
    }

    boolean isSleeping() {
        return clock.sleeping;
    }

    void stepWallClock(long nanos) {
        clock.wall += nanos;
    }

    @Override
    public String toString() {
        return name;
    }

    /** The clocks of a process: each begins at another time. */
    private static final class Clock implements Ticker {

        private final World world;
        private final World.Member process;
        private final long begin;
        private long wall;
        private long interruptAt = Long.MAX_VALUE;
        private boolean sleeping;

        private Clock(World world, World.Member process, long begin) {
            this.world = world;
            this.process = process;
            this.begin = begin;
        }

        @Override
        public long nanos() {
            return begin + world.now();
        }

        @Override
        public long epochNanos() {
            return Simulation.BEGIN_MICROS * 1_000 + world.now() + wall;
        }

        @Override
        public void sleepUntil(long deadline) throws InterruptedException {
            if (interruptAt == Long.MAX_VALUE) {
                throw new UnsupportedOperationException("there is one thread, which must not sleep");
            }
            sleeping = true;
            world.runUntil(Math.min(deadline - begin, interruptAt));
            while (process.pausedUntil() > world.now()) {
                world.runUntil(process.pausedUntil());
            }
            boolean interrupted = world.now() >= interruptAt;
            interruptAt = Long.MAX_VALUE;
            sleeping = false;
            if (interrupted) {
                throw new InterruptedException();
            }
        }

        @Override
        public Runnable schedule(long deadline, Runnable task) {
            return world.at(process, deadline - begin, task);
        }
    }
}
