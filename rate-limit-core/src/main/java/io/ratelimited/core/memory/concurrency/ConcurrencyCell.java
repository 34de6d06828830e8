package io.ratelimited.core.memory.concurrency;

import static io.ratelimited.core.memory.concurrency.ConcurrencyReservation.ADMITTED;
import static io.ratelimited.core.memory.concurrency.ConcurrencyReservation.FULL;
import static io.ratelimited.core.memory.concurrency.ConcurrencyReservation.NEVER;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLongFieldUpdater;
import org.jspecify.annotations.Nullable;

/**
 * The permits of one key in use. Without waiting callers this is one word, changed by compare-and-set. Waiting callers
 * stand in a queue, first come, first served: while one waits, new callers queue behind it, and each call that ends hands
 * its permits to the head.
 *
 * <p>No permit is lost between the word and the queue: a waiter raises {@link #waiting} before it reads the word again,
 * and a release lowers the word before it reads {@link #waiting}, so one of the two sees the other.
 */
final class ConcurrencyCell {

    private static final AtomicLongFieldUpdater<ConcurrencyCell> IN_USE =
            AtomicLongFieldUpdater.newUpdater(ConcurrencyCell.class, "inUse");
    /** Value of {@link #inUse}: the key has no call, and its next call gets another cell. */
    private static final long RETIRED = Long.MIN_VALUE;
    /** Result of {@link #take}: this cell is retired. */
    private static final int GONE = -1;

    private final ConcurrencyLimiter limiter;
    private final @Nullable Object key;
    /** Permits in use; {@link #RETIRED}. */
    private volatile long inUse;
    /** Length of the queue; written under its monitor. */
    private volatile int waiting;

    private final Deque<QueuedReservation> queue = new ArrayDeque<>(0);
    /** Times at which calls were admitted, oldest first; kept only for calls that have a lease. Guarded by itself. */
    private final Map<ConcurrencyReservation, Long> leased = new LinkedHashMap<>(0);
    /** Whether {@link #leased} ever had an entry. */
    private volatile boolean leases;

    ConcurrencyCell(ConcurrencyLimiter limiter, @Nullable Object key) {
        this.limiter = limiter;
        this.key = key;
    }

    ConcurrencyLimiter limiter() {
        return limiter;
    }

    @Nullable
    Object key() {
        return key;
    }

    /** A call that is admitted, refused, or stands in the queue; null when this cell is retired. */
    @Nullable
    ConcurrencyReservation reserve(long permits, long maxWaitNanos) {
        endLeases();
        int outcome = waiting > 0 ? refusal(permits) : take(permits);
        if (outcome == GONE) {
            return null;
        }
        if (outcome == FULL && maxWaitNanos > 0) {
            long maxWait = limiter.waitingRoom().longestWait(key, maxWaitNanos);
            if (maxWait > 0) {
                return enqueue(
                        new QueuedReservation(this, permits, limiter.ticker().nanos() + maxWait));
            }
        }
        ConcurrencyReservation call = new ConcurrencyReservation(this, permits, outcome);
        if (outcome == ADMITTED) {
            startLease(call);
        } else {
            limiter.removeIfIdle(key);
        }
        return call;
    }

    /** Returns the result that {@link #reserve} would return, and changes nothing. */
    int peek(long permits, long maxWaitNanos) {
        if (permits > maxConcurrent()) {
            return NEVER;
        }
        boolean fits = permits <= remaining() && waiting == 0;
        return fits || limiter.waitingRoom().longestWait(key, maxWaitNanos) > 0 ? ADMITTED : FULL;
    }

    /** Free places. */
    long remaining() {
        endLeases();
        return Math.max(0, maxConcurrent() - Math.max(0, inUse));
    }

    private long maxConcurrent() {
        return limiter.parameters().maxConcurrent();
    }

    private int refusal(long permits) {
        if (inUse == RETIRED) {
            return GONE;
        }
        return permits > maxConcurrent() ? NEVER : FULL;
    }

    private int take(long permits) {
        while (true) {
            long used = inUse;
            int refusal = refusal(permits);
            if (refusal != FULL || used + permits > maxConcurrent()) {
                return refusal;
            }
            if (IN_USE.compareAndSet(this, used, used + permits)) {
                return ADMITTED;
            }
        }
    }

    /** Null when the last call has ended meanwhile and retired this cell: nobody would serve its queue. */
    private @Nullable ConcurrencyReservation enqueue(QueuedReservation call) {
        synchronized (queue) {
            if (inUse == RETIRED) {
                return null;
            }
            queue.addLast(call);
            waiting = queue.size();
        }
        serve();
        return call;
    }

    /**
     * Hands free permits to the head of the queue. A head that asks for more than are free waits, and so do those behind
     * it. Runs callbacks of callers, so the caller holds no lock.
     */
    void serve() {
        while (waiting > 0) {
            QueuedReservation head;
            synchronized (queue) {
                head = queue.peekFirst();
                int outcome = head == null ? FULL : take(head.permits());
                if (head == null || outcome == FULL || outcome == GONE) {
                    return;
                }
                if (outcome == ADMITTED) {
                    startLease(head);
                }
                head.decided(outcome);
                queue.removeFirst();
                waiting = queue.size();
            }
            head.wake();
        }
    }

    /** More calls may fit, and leases may end before the alarms of those that wait. */
    void limitChanged() {
        endLeases();
        serve();
        List<QueuedReservation> left;
        synchronized (queue) {
            left = List.copyOf(queue);
        }
        left.forEach(QueuedReservation::resetAlarm);
    }

    /** Removes a caller that gives up; returns whether it was still waiting. */
    boolean leave(QueuedReservation call) {
        boolean removed;
        synchronized (queue) {
            removed = queue.remove(call);
            waiting = queue.size();
        }
        serve();
        return removed;
    }

    /** Frees the permits of a call that has ended; called once a call. */
    void release(ConcurrencyReservation call) {
        if (leases) {
            synchronized (leased) {
                leased.remove(call);
            }
        }
        IN_USE.addAndGet(this, -call.permits());
        if (waiting > 0) {
            serve();
        }
        limiter.removeIfIdle(key);
    }

    /** Retires this cell if it has no call in flight and none waiting; returns whether it did. */
    boolean retireIfIdle() {
        synchronized (queue) {
            return queue.isEmpty() && IN_USE.compareAndSet(this, 0, RETIRED);
        }
    }

    private void startLease(ConcurrencyReservation call) {
        if (limiter.parameters().lease() != Long.MAX_VALUE) {
            synchronized (leased) {
                leased.put(call, limiter.ticker().nanos());
                leases = true;
            }
        }
    }

    /** Nanoseconds until the oldest lease ends, or the first that is still to begin; {@link Long#MAX_VALUE} when none will. */
    long nanosToLeaseEnd() {
        long lease = limiter.parameters().lease();
        if (lease == Long.MAX_VALUE) {
            return Long.MAX_VALUE;
        }
        synchronized (leased) {
            return leased.isEmpty()
                    ? lease
                    : Math.max(
                            0,
                            leased.values().iterator().next()
                                    + lease
                                    - limiter.ticker().nanos());
        }
    }

    /** Releases the calls whose lease has ended. */
    void endLeases() {
        while (leases && nanosToLeaseEnd() == 0) {
            ConcurrencyReservation oldest;
            synchronized (leased) {
                oldest = leased.isEmpty() ? null : leased.keySet().iterator().next();
            }
            if (oldest != null) {
                oldest.release();
            }
        }
    }
}
