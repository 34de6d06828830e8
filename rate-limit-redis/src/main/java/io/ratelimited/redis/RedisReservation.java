package io.ratelimited.redis;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;

/** Permits taken in Redis, or the refusal to. Its wait counts from the arrival of the reply: never too short. */
final class RedisReservation implements Reservation {

    private final RedisRateLimiter limiter;
    private final String key;
    private final long permits;
    /** When the call may go: {@link Ticker#nanos}. */
    private final long deadline;

    private final AtomicBoolean ended = new AtomicBoolean();
    private volatile Verdict verdict;

    RedisReservation(RedisRateLimiter limiter, String key, long permits, Verdict verdict) {
        this.limiter = limiter;
        this.key = key;
        this.permits = permits;
        this.verdict = verdict;
        this.deadline = verdict.outcome() > 0 ? ticker().nanos() + verdict.outcome() : 0;
    }

    private Ticker ticker() {
        return limiter.backend().ticker();
    }

    @Override
    public boolean isRefused() {
        return !verdict.admitted();
    }

    @Override
    public long waitNanos() {
        return Math.max(0, verdict.outcome());
    }

    @Override
    public Decision decision() {
        return verdict.decision();
    }

    @Override
    public boolean await() throws InterruptedException {
        long wait = verdict.outcome();
        if (wait <= 0) {
            return wait == 0;
        }
        if (!limiter.enter()) {
            return crowdedOut();
        }
        try {
            ticker().sleepUntil(deadline);
            return true;
        } catch (InterruptedException ex) {
            cancel();
            throw ex;
        } finally {
            limiter.leave();
        }
    }

    @Override
    public CompletableFuture<Boolean> awaitAsync() {
        long wait = verdict.outcome();
        if (wait <= 0) {
            return CompletableFuture.completedFuture(wait == 0);
        }
        if (!limiter.enter()) {
            return CompletableFuture.completedFuture(crowdedOut());
        }
        CompletableFuture<Boolean> future = new CompletableFuture<>();
        Runnable alarm = ticker().schedule(deadline, () -> future.complete(true));
        future.whenComplete((admitted, failure) -> {
            limiter.leave();
            alarm.run();
            if (failure != null) {
                cancel();
            }
        });
        return future;
    }

    private boolean crowdedOut() {
        Verdict current = verdict;
        cancel();
        verdict = current.outcome(~current.outcome());
        return false;
    }

    @Override
    public void cancel() {
        Verdict current = verdict;
        if (current.admitted() && ended.compareAndSet(false, true)) {
            limiter.inquiries().giveBack(key, permits, current);
        }
    }

    @Override
    public void release() {
        // Limits that count over time do not mind when a call ends.
    }
}
