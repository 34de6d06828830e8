package io.ratelimited.redis;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.Reservation;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Function;

/** A call under {@code CONCURRENCY}: its permits count in Redis until it is released, or its lease ends. */
final class InFlight implements Reservation {

    private static final AtomicLong NUMBER = new AtomicLong();

    /** Not admitted yet: asking, or standing at the {@link Turnstile}. */
    private static final int WAITING = 0;

    private static final int LIVE = 1;
    private static final int ENDED = 2;

    private final RedisRateLimiter limiter;
    private final String key;
    private final long permits;
    private final long maxWait;
    private final String id;
    private final AtomicInteger phase = new AtomicInteger(WAITING);
    private final CompletableFuture<Boolean> turn = new CompletableFuture<>();
    private volatile long deadline;
    private volatile Verdict verdict;
    /** Stands at the turnstile: admitted, but not yet. */
    private volatile boolean queued;

    InFlight(RedisRateLimiter limiter, String key, long permits, long maxWait) {
        this.limiter = limiter;
        this.key = key;
        this.permits = permits;
        this.maxWait = maxWait;
        this.id = "call:" + limiter.backend().node() + ':' + NUMBER.incrementAndGet();
        this.verdict = new Verdict(Verdict.UNKNOWN, 0, 0, "", limiter.terms(), Source.REDIS);
    }

    /** Asks Redis once; a call that may wait then stands in line behind those of this node. */
    CompletableFuture<InFlight> begin() {
        RedisTerms terms = limiter.terms();
        if (limiter.backend().isDown(key)) {
            return CompletableFuture.failedFuture(new TimeoutException("not asked, because it has just failed"));
        }
        boolean never = terms.isNever(permits);
        boolean behind = limiter.turnstiles().isOccupied(key);
        if (behind && maxWait > 0 && !never) {
            queue();
            return CompletableFuture.completedFuture(this);
        }
        CompletableFuture<InFlight> begun = ask(never || behind ? "peek" : "take")
                .thenApply(answer -> {
                    verdict = answer;
                    if (never) {
                        verdict = answer.outcome(Verdict.NEVER);
                    } else if (answer.admitted() && behind) {
                        verdict = answer.outcome(Verdict.UNKNOWN);
                    } else if (answer.admitted()) {
                        admitted(answer);
                    } else if (maxWait > 0) {
                        queue();
                    }
                    return this;
                });
        // Whoever gives up ends the copy only, so that what is granted then is given back.
        return begun.copy();
    }

    private void queue() {
        deadline = limiter.backend().ticker().nanos() + maxWait;
        queued = true;
        limiter.turnstiles().queue(key, this);
        if (phase.get() == ENDED) {
            limiter.turnstiles().unqueue(key, this);
        }
    }

    CompletableFuture<Verdict> ask(String operation) {
        RedisTerms terms = limiter.terms();
        return limiter.inquiries()
                .eval(terms.script(), key, arguments(operation, terms))
                .thenApply(reply -> Verdict.of(reply, 0, terms))
                .whenComplete((answer, failure) -> {
                    if (failure != null && operation.equals("take")) {
                        // It may have been admitted all the same, or still be.
                        giveBack();
                    }
                });
    }

    private Words arguments(String operation, RedisTerms terms) {
        return limiter.inquiries()
                .begin(operation, terms, 1)
                .add(permits)
                .add(id)
                .add(0)
                .add(0);
    }

    /** Redis has admitted it. */
    void admitted(Verdict answer) {
        if (limiter.terms().limit().lease() == null) {
            // Before anybody can end it.
            limiter.backend().inFlight().add(this);
        }
        if (phase.compareAndSet(WAITING, LIVE)) {
            verdict = answer;
            queued = false;
            turn.complete(true);
        } else {
            end();
        }
    }

    /** Its node still runs it. */
    void renew() {
        RedisTerms terms = limiter.terms();
        limiter.backend().eval(terms.script(), new String[] {key}, arguments("renew", terms));
    }

    /** Nobody waits for the answer of Redis any more. */
    void abandon() {
        if (phase.getAndSet(ENDED) == LIVE) {
            end();
        } else {
            limiter.turnstiles().unqueue(key, this);
        }
    }

    private void end() {
        limiter.backend().inFlight().remove(this);
        giveBack().whenComplete((reply, failure) -> limiter.turnstiles().serve(key));
    }

    private CompletableFuture<?> giveBack() {
        RedisTerms terms = limiter.terms();
        return limiter.backend().eval(terms.script(), new String[] {key}, arguments("cancel", terms));
    }

    @Override
    public boolean isRefused() {
        return !queued && !verdict.admitted();
    }

    @Override
    public long waitNanos() {
        return 0;
    }

    @Override
    public boolean mayWait() {
        return queued;
    }

    @Override
    public Decision decision() {
        return queued ? verdict.outcome(0).decision() : verdict.decision();
    }

    @Override
    public boolean await() throws InterruptedException {
        try {
            return seated(turn.copy()).get();
        } catch (InterruptedException ex) {
            // The turn may have come in between, and nobody will use it.
            cancel();
            throw ex;
        } catch (ExecutionException ex) {
            throw new IllegalStateException(ex.getCause());
        }
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        // Not on the thread of the connection, which all calls share: the callbacks of a caller may follow.
        return seated(turn.thenApplyAsync(Function.identity(), limiter.backend().executor()));
    }

    /** @param future follows the turn */
    private CompletableFuture<Boolean> seated(CompletableFuture<Boolean> future) {
        if (!queued) {
            return CompletableFuture.completedFuture(verdict.admitted());
        }
        if (!limiter.enter()) {
            giveUp();
            return future;
        }
        Runnable alarm = limiter.backend().ticker().schedule(deadline, this::giveUp);
        future.whenComplete((admitted, failure) -> {
            limiter.leave();
            alarm.run();
            if (failure != null) {
                cancel();
            }
        });
        return future;
    }

    /** Leaves the line, unless admitted meanwhile. */
    private void giveUp() {
        if (phase.compareAndSet(WAITING, ENDED)) {
            queued = false;
            verdict = verdict.outcome(Verdict.UNKNOWN);
            limiter.turnstiles().unqueue(key, this);
            turn.complete(false);
        }
    }

    @Override
    public void cancel() {
        giveUp();
        release();
    }

    @Override
    public void release() {
        if (phase.compareAndSet(LIVE, ENDED)) {
            end();
        }
    }
}
