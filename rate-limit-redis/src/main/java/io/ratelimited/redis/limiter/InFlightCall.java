package io.ratelimited.redis.limiter;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.redis.connection.Replies;
import io.ratelimited.redis.connection.ScriptArguments;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A call in flight: its permits count in Redis until it is released, or its lease ends. Redis knows the call by an id, so
 * that registering and ending it twice do no harm: both are repeated until Redis has them.
 */
final class InFlightCall implements Reservation, WaitingRoom.Waiter {

    /** Not admitted yet: asking, or in the {@link ConcurrencyQueue}. */
    private static final int WAITING = 0;

    private static final int LIVE = 1;
    private static final int ENDED = 2;

    private final RedisConcurrencyLimiter limiter;
    private final String key;
    private final long permits;
    private final long maxWait;
    /** Of the last attempt to take a place: what ends one attempt must not end the next one. */
    private volatile String id;

    private final AtomicInteger phase = new AtomicInteger(WAITING);
    private final CompletableFuture<Boolean> turn = new CompletableFuture<>();
    private volatile long deadline;
    private volatile long admittedAt;
    private volatile ScriptReply verdict;
    /** Waits in the queue. */
    private volatile boolean queued;
    /** Has been admitted, and counts on this node. */
    private volatile boolean counted;
    /** Redis may know the call. */
    private volatile boolean sent;
    /** A command that registers the call has no reply, and may still run. */
    private volatile boolean doubtful;

    InFlightCall(RedisConcurrencyLimiter limiter, String key, long permits, long maxWait) {
        this.limiter = limiter;
        this.key = key;
        this.permits = permits;
        this.maxWait = maxWait;
        this.id = limiter.context().callIds().get();
        this.verdict = limiter.local(ScriptReply.UNKNOWN, key);
    }

    /** Of the attempt that was admitted. */
    String id() {
        return id;
    }

    String key() {
        return key;
    }

    long permits() {
        return permits;
    }

    /** Asks Redis once; a call that may wait then joins the queue of this node. */
    CompletableFuture<InFlightCall> begin() {
        LimitTerms terms = limiter.terms();
        if (limiter.connection().isDown(key)) {
            return CompletableFuture.failedFuture(Replies.notSent("not asked, because it has just failed"));
        }
        boolean never = terms.isNever(permits);
        boolean behind = limiter.hasQueue(key);
        if (behind && maxWait > 0 && !never) {
            queue();
            return CompletableFuture.completedFuture(this);
        }
        CompletableFuture<InFlightCall> begun = ask(never || behind ? "peek" : "take")
                .thenApply(answer -> {
                    verdict = answer;
                    if (never) {
                        verdict = answer.outcome(ScriptReply.NEVER);
                    } else if (answer.admitted() && behind) {
                        verdict = answer.outcome(ScriptReply.UNKNOWN);
                    } else if (answer.admitted()) {
                        admitted(answer);
                    } else if (maxWait > 0) {
                        queue();
                    }
                    return this;
                });
        // A caller that gives up ends the copy only, so that what is granted then is given back.
        return begun.copy();
    }

    /** Decides by what is in flight on this node. */
    void beginWithoutRedis() {
        LimitTerms terms = limiter.terms();
        if (terms.isNever(permits)) {
            verdict = limiter.local(ScriptReply.NEVER, key);
        } else if (limiter.hasQueue(key) || !limiter.admitLocally(this)) {
            verdict = limiter.local(ScriptReply.UNKNOWN, key);
            if (maxWait > 0) {
                queue();
            }
        }
    }

    private void queue() {
        deadline = limiter.context().ticker().nanos() + maxWait;
        queued = true;
        limiter.queue(key, this);
        if (phase.get() == ENDED) {
            limiter.unqueue(key, this);
        }
    }

    CompletableFuture<ScriptReply> ask(String operation) {
        LimitTerms terms = limiter.terms();
        boolean takes = operation.equals("take");
        sent |= takes;
        return limiter.scripts()
                .eval(terms.script(), key, arguments(operation, terms, id))
                .thenApply(reply -> ScriptReply.of(reply, 0, terms))
                .whenComplete((answer, failure) -> {
                    if (failure != null && takes && !Replies.isNotSent(failure)) {
                        // It may have been admitted all the same, or still be.
                        doubtful = true;
                        giveBack();
                        id = limiter.context().callIds().get();
                    }
                });
    }

    private ScriptArguments arguments(String operation, LimitTerms terms, String attempt) {
        Duration lease = terms.limit().lease();
        long left = lease == null || admittedAt == 0
                ? 0
                : Math.max(1, (lease.toNanos() - (limiter.context().ticker().nanos() - admittedAt)) / 1000);
        return limiter.scripts()
                .begin(operation, terms, 1)
                .add(permits)
                .add(attempt)
                .add(left)
                .add(0);
    }

    /** Admitted by Redis, or by this node alone. */
    void admitted(ScriptReply answer) {
        admittedAt = limiter.context().ticker().nanos();
        counted = true;
        // Before anybody can end it.
        limiter.begun(this);
        if (phase.compareAndSet(WAITING, LIVE)) {
            verdict = answer;
            queued = false;
            turn.complete(true);
        } else {
            end();
        }
    }

    /** Goes uncounted, or does not go, because the limit does not protect while Redis is away, or admits nobody. */
    void decided(boolean admitted) {
        if (phase.compareAndSet(WAITING, admitted ? LIVE : ENDED)) {
            verdict = limiter.local(admitted ? 0 : ScriptReply.UNKNOWN, key);
            queued = false;
            turn.complete(admitted);
        }
    }

    void failed(RuntimeException failure) {
        if (phase.compareAndSet(WAITING, ENDED)) {
            queued = false;
            turn.completeExceptionally(failure);
        }
    }

    /** The call still runs: keeps its permits from lapsing. A call with a lease of its own may lapse. */
    void renew() {
        if (limiter.terms().limit().lease() == null
                && phase.get() == LIVE
                && !limiter.connection().isDown(key)) {
            LimitTerms terms = limiter.terms();
            sent = true;
            limiter.scripts()
                    .eval(terms.script(), key, arguments("renew", terms, id))
                    .whenComplete((reply, failure) -> {
                        doubtful |= failure != null && !Replies.isNotSent(failure);
                        if (phase.get() == ENDED) {
                            // It ended meanwhile, and its end may have been sent before the renewal.
                            deliverEnd(id);
                        }
                    });
        }
    }

    /** Registers the call with Redis, which may have forgotten it or never have known it. */
    void register() {
        limiter.connection().deliver(limiter.terms().script(), key, this::registration, true);
    }

    private @Nullable ScriptArguments registration() {
        if (phase.get() != LIVE) {
            return null;
        }
        sent = true;
        // It may be run after the end of the call, which is then sent again.
        doubtful = true;
        return arguments("renew", limiter.terms(), id);
    }

    /** Nobody waits for the answer of Redis any more. */
    void abandon() {
        if (phase.getAndSet(ENDED) == LIVE) {
            end();
        } else {
            limiter.unqueue(key, this);
        }
    }

    private void end() {
        if (counted) {
            limiter.ended(this);
        }
        giveBack();
        limiter.serve(key);
    }

    private void giveBack() {
        if (sent) {
            String ended = id;
            deliverEnd(ended);
            if (doubtful) {
                // After a freeze a server may run an old command of one connection after a new one of another.
                limiter.connection().later(1_000, () -> deliverEnd(ended));
            }
        }
    }

    private void deliverEnd(String attempt) {
        LimitTerms terms = limiter.terms();
        limiter.connection().deliver(terms.script(), key, () -> arguments("cancel", terms, attempt), true);
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
        return queued ? limiter.waitingRoom().await(turn.copy(), this::alarm, this) : turnOrVerdict();
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        if (!queued) {
            return CompletableFuture.completedFuture(turnOrVerdict());
        }
        // Not on the thread of the connection, which all calls share: the callbacks of a caller may follow.
        CompletableFuture<Boolean> future =
                turn.thenApplyAsync(Function.identity(), limiter.context().callers());
        return limiter.waitingRoom().awaitAsync(future, this::alarm, this);
    }

    private boolean turnOrVerdict() {
        return turn.isCompletedExceptionally() ? turn.join() : verdict.admitted();
    }

    private Runnable alarm() {
        return limiter.context().ticker().schedule(deadline, this::crowdOut);
    }

    @Override
    public boolean mayGo() {
        return phase.get() == LIVE;
    }

    /** Leaves the queue, unless admitted meanwhile. */
    @Override
    public void crowdOut() {
        if (phase.compareAndSet(WAITING, ENDED)) {
            queued = false;
            verdict = verdict.outcome(ScriptReply.UNKNOWN);
            limiter.unqueue(key, this);
            turn.complete(false);
        }
    }

    @Override
    public void cancel() {
        crowdOut();
        release();
    }

    @Override
    public void release() {
        if (phase.compareAndSet(LIVE, ENDED)) {
            end();
        }
    }
}
