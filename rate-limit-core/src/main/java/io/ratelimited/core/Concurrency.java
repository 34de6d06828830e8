package io.ratelimited.core;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/**
 * Permits in use. Without waiting callers one word under compare-and-set; waiting callers stand in a queue, first come
 * first served: as long as one waits, newcomers queue behind it, and whoever ends a call hands its permits to the head.
 *
 * <p>Why no permit is lost between the two: a waiter raises {@link #waiting} before it looks at the word once more, and
 * a release lowers the word before it looks at {@link #waiting}; one of the two sees the other.
 */
final class Concurrency extends Cell {

    private static final long RETIRED = Long.MIN_VALUE;

    private volatile Terms terms;
    /** Permits in use; {@link #RETIRED}. */
    private final AtomicLong inUse = new AtomicLong();
    /** Length of the queue; written under its monitor. */
    private volatile int waiting;

    private final Deque<CellReservation> queue = new ArrayDeque<>(0);
    /** Calls in flight in order of admission, kept only when they can outlive their lease; guarded by itself. */
    private final Set<CellReservation> leased = new LinkedHashSet<>(0);
    /** Whether there has ever been one. */
    private volatile boolean leases;

    private Concurrency(Terms terms) {
        this.terms = terms;
    }

    @Override
    Terms terms() {
        return terms;
    }

    @Override
    long reserve(long permits, long now, long maxWait, @Nullable CellReservation into) {
        if (into == null) {
            throw new UnsupportedOperationException(
                    "a call under CONCURRENCY has to be released when it ends: use reserve, or execute, instead of tryAcquire");
        }
        endLeases(now);
        long outcome = waiting > 0 ? refusal(permits) : take(permits);
        if (outcome == 0) {
            register(into, now);
            into.admitted(this);
        } else if (outcome == UNKNOWN && maxWait > 0) {
            return enqueue(into, now);
        }
        return outcome;
    }

    @Override
    long peek(long permits, long now, long maxWait) {
        endLeases(now);
        long refusal = refusal(permits);
        boolean free = waiting == 0 && inUse.get() + permits <= terms.permits;
        return refusal == UNKNOWN && (free || maxWait > 0) ? 0 : refusal;
    }

    private long refusal(long permits) {
        if (inUse.get() == RETIRED || terms.change() != null) {
            return MOVED;
        }
        return permits > terms.permits ? NEVER : UNKNOWN;
    }

    private long take(long permits) {
        while (true) {
            long used = inUse.get();
            long refusal = refusal(permits);
            if (refusal != UNKNOWN || used + permits > terms.permits) {
                return refusal;
            }
            if (inUse.compareAndSet(used, used + permits)) {
                return 0;
            }
        }
    }

    private void register(CellReservation call, long now) {
        if (terms.lease != Long.MAX_VALUE) {
            call.mark(now);
            synchronized (leased) {
                leased.add(call);
                leases = true;
            }
        }
    }

    /** Moved when the last call has ended meanwhile and taken the cell with it: nobody would serve this queue. */
    private long enqueue(CellReservation call, long now) {
        synchronized (queue) {
            if (inUse.get() == RETIRED) {
                return MOVED;
            }
            call.queued(this);
            queue.addLast(call);
            waiting = queue.size();
        }
        serve(now);
        return 0;
    }

    /** Hands free permits to the head of the queue; one that asks for more than there are now is in nobody's way. */
    @Override
    void serve(long now) {
        while (waiting > 0) {
            CellReservation head;
            synchronized (queue) {
                renewTerms();
                head = queue.peekFirst();
                long outcome = head == null ? UNKNOWN : take(head.permits());
                if (outcome == 0) {
                    register(head, now);
                    head.admitted(this);
                } else if (outcome == NEVER) {
                    head.refused(NEVER);
                } else {
                    return;
                }
                queue.removeFirst();
                waiting = queue.size();
            }
            head.wake();
        }
    }

    /** A waiter gives up. @return whether it was still waiting */
    boolean leave(CellReservation call, long now) {
        boolean removed;
        synchronized (queue) {
            removed = queue.remove(call);
            waiting = queue.size();
        }
        serve(now);
        return removed;
    }

    /**
     * A call has ended. The caller sees to it that this happens once a call.
     *
     * @return whether others wait, who have to be {@link #serve served}
     */
    boolean release(CellReservation call) {
        if (leases) {
            synchronized (leased) {
                leased.remove(call);
            }
        }
        inUse.addAndGet(-call.permits());
        return waiting > 0;
    }

    /** Nanoseconds until the oldest lease ends; {@link Long#MAX_VALUE} when none will. */
    long nanosToLeaseEnd(long now) {
        if (terms.lease == Long.MAX_VALUE) {
            return Long.MAX_VALUE;
        }
        synchronized (leased) {
            return leased.isEmpty()
                    ? Long.MAX_VALUE
                    : Math.max(0, leased.iterator().next().mark() + terms.lease - now);
        }
    }

    /** Calls whose lease is over no longer count. */
    void endLeases(long now) {
        if (terms.lease == Long.MAX_VALUE) {
            return;
        }
        while (true) {
            CellReservation oldest;
            synchronized (leased) {
                oldest = leased.isEmpty() ? null : leased.iterator().next();
            }
            if (oldest == null || now - oldest.mark() < terms.lease) {
                return;
            }
            oldest.release();
        }
    }

    @Override
    boolean cancel(CellReservation reservation, long now) {
        reservation.release();
        return true;
    }

    @Override
    long stamp() {
        return inUse.get();
    }

    @Override
    long remaining(long now) {
        endLeases(now);
        return Math.max(0, terms.permits - inUse.get());
    }

    @Override
    long nanosToFresh(long now) {
        return inUse.get() == 0 && waiting == 0 ? 0 : Long.MAX_VALUE;
    }

    /** Retires the cell if no call is in flight and none waits. */
    boolean retireIfIdle() {
        synchronized (queue) {
            return queue.isEmpty() && inUse.compareAndSet(0, RETIRED);
        }
    }

    /** Calls in flight cannot be handed over: the cell itself goes on under the new terms. */
    @Override
    Cell follow(io.ratelimited.core.Terms.Change change) {
        synchronized (queue) {
            renewTerms();
        }
        return this;
    }

    /** Under the monitor of the queue, so that racing callers never go back to older terms. */
    private void renewTerms() {
        for (io.ratelimited.core.Terms.Change change; (change = terms.change()) != null; ) {
            terms = (Terms) change.next();
        }
    }

    @Override
    Cell retire() {
        throw inFlight();
    }

    @Override
    Cell copy() {
        throw inFlight();
    }

    @Override
    void absorb(Cell other) {
        throw inFlight();
    }

    @Override
    Budget leave(long now) {
        throw inFlight();
    }

    private static IllegalStateException inFlight() {
        return new IllegalStateException("calls in flight cannot be moved to another cell");
    }

    /** The parameters of one limit. */
    static final class Terms extends io.ratelimited.core.Terms {

        private final long permits;
        /** Nanoseconds; {@link Long#MAX_VALUE} for none. */
        private final long lease;

        Terms(Limit limit) {
            super(limit);
            this.permits = limit.maxConcurrent();
            this.lease = limit.lease() == null ? Long.MAX_VALUE : limit.lease().toNanos();
        }

        @Override
        Cell whole(long now) {
            return new Concurrency(this);
        }

        @Override
        Cell resume(Budget budget, long now) {
            throw inFlight();
        }

        @Override
        long idleNanos() {
            return 0;
        }
    }
}
