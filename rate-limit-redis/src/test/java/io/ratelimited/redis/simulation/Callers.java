package io.ratelimited.redis.simulation;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.several.AllOf;
import io.ratelimited.core.several.Claim;
import io.ratelimited.redis.RedisHealth;
import io.ratelimited.redis.simulation.Step.Kind;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeoutException;

/** The callers of a schedule: they ask, wait, go, give up, and note what they see. */
final class Callers {

    private static final long MILLI = 1_000_000;
    /** Longer than any call would have to wait. */
    private static final long PATIENCE = 3_600_000 * MILLI;

    private final World world;
    private final boolean flight;
    private final boolean blocks;
    private final List<Call> calls = new ArrayList<>();
    /** Someone sleeps, on top of whom all others run: a second one would wake the first too late. */
    private boolean sleeping;

    Callers(World world, Plan plan) {
        this.world = world;
        this.flight = plan.limit().algorithm() == Algorithm.CONCURRENCY;
        this.blocks = plan.limit().block() != null;
    }

    List<Call> calls() {
        return calls;
    }

    static String key(Step step) {
        return "k" + step.key();
    }

    void call(Step step, Node node) {
        if (step.kind().isFlood()) {
            for (int i = 0; i < step.amount(); i++) {
                int permits =
                        step.kind() == Kind.FLOOD_OF_TWOS ? 2 : step.kind() == Kind.MIXED_FLOOD && i % 3 == 0 ? 3 : 1;
                world.at(node, world.now() + i * step.nanos() / step.amount(), () -> call(step, node, permits));
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

    Call call(Step step, Node node, int permits) {
        // Two limits of a call that waits for its place are decided in steps.
        boolean inSteps = step.kind() == Kind.CALL_OF_TWO && step.isPatient();
        boolean waits = !step.kind().isFlood() && (!flight || step.waits() || inSteps);
        long maxWait = waits ? step.nanos() : 0;
        Call call = new Call(step, node, permits, world.now(), maxWait);
        calls.add(call);
        List<RateLimiter> limiters = step.kind() == Kind.CALL_OF_TWO
                ? List.of(node.limiter(), node.other())
                : List.of(step.kind() == Kind.CALL_OF_LEDGER ? node.ledger() : node.limiter());
        long patience = blocks && step.isPatient() ? PATIENCE : maxWait;
        CompletionStage<Reservation> asked = AllOf.reserveAsync(limiters.stream()
                .map(limiter -> Claim.of(limiter, key(step), permits, maxWait, RateLimiter.NO_RANK, patience, false))
                .toList());
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
        boolean goes = step.kind() == Kind.CALL_OF_TWO && step.at() % 4 == 0;
        if (goes || step.kind() == Kind.CALL_CANCELLED || step.kind() == Kind.CALL_TIMED_OUT) {
            long after = 1 + step.at() % (3 * MILLI);
            world.at(node, world.now() + after, () -> giveUp(call, asked.toCompletableFuture()));
        }
        return call;
    }

    private static void giveUp(Call call, CompletableFuture<?> future) {
        boolean first = call.step.kind() == Kind.CALL_TIMED_OUT
                ? future.completeExceptionally(new TimeoutException("a caller's own"))
                : future.cancel(false);
        call.cancelled |= first;
    }

    private void decided(Call call, Reservation reservation) {
        call.source = reservation.decision().source();
        call.refused = reservation.isRefused();
        if (call.refused) {
            call.settledAt = world.now();
            call.blocked = reservation.decision().blocked();
            if (call.blocked) {
                call.node
                        .limiter()
                        .blockedKeys()
                        .filter(block -> block.key().equals(key(call.step)))
                        .forEach(block -> {
                            call.blockLeft = block.left().toNanos();
                            call.blockLevel = block.level();
                        });
            }
        } else if (call.step.kind() == Kind.CALL_GIVEN_BACK) {
            call.settledAt = world.now();
            reservation.cancel();
        } else if (!reservation.mayWait()) {
            call.settledAt = world.now();
            go(call, reservation);
        } else if (call.step.kind() == Kind.CALL_INTERRUPTED && !sleeping) {
            call.wait = reservation.waitNanos();
            sleep(call, reservation);
        } else {
            call.wait = reservation.waitNanos();
            CompletableFuture<Boolean> turn = reservation.awaitAsync();
            if (call.step.kind() == Kind.CALL_LEAVES) {
                world.at(call.node, world.now() + call.step.nanos() / 3, () -> giveUp(call, turn));
            }
            turn.whenComplete((may, failure) -> {
                call.completions++;
                call.source = reservation.decision().source();
                call.failure = failure;
                woken(call, reservation, failure == null && may);
            });
        }
    }

    /** Blocks until the turn comes, or the caller is interrupted. */
    private void sleep(Call call, Reservation reservation) {
        sleeping = true;
        try {
            if (flight) {
                // Sleeps in a future of the JDK, which no virtual time wakes: interrupted as soon as it sleeps.
                Thread.currentThread().interrupt();
            } else {
                call.node.interruptAt(world.now() + 1 + call.step.at() % Math.max(1, call.step.nanos()));
            }
            boolean may = reservation.await();
            call.source = reservation.decision().source();
            woken(call, reservation, may);
        } catch (InterruptedException ex) {
            call.cancelled = true;
        } catch (RuntimeException ex) {
            call.failure = ex;
            call.settledAt = world.now();
        } finally {
            Thread.interrupted();
            sleeping = false;
        }
    }

    private void woken(Call call, Reservation reservation, boolean may) {
        call.settledAt = world.now();
        if (may && !call.node.isDead()) {
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

    /** The calls of a process that has ended. */
    void killed(Node node) {
        for (Call call : calls) {
            if (call.node == node && call.went() && call.endedAt > world.now()) {
                call.endedAt = world.now();
            }
        }
    }
}
