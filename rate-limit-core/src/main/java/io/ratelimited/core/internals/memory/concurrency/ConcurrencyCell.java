package io.ratelimited.core.internals.memory.concurrency;

import static io.ratelimited.core.internals.memory.concurrency.ConcurrencyReservation.ADMITTED;
import static io.ratelimited.core.internals.memory.concurrency.ConcurrencyReservation.FULL;
import static io.ratelimited.core.internals.memory.concurrency.ConcurrencyReservation.NEVER;

import io.ratelimited.core.End;
import io.ratelimited.core.WaitingRoom;
import io.ratelimited.core.internals.several.JointLocks;
import java.util.ArrayList;
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
 * <p>Where a class has a share, its permits are also counted by class. The word and these counts change together, under
 * the monitor of the queue, and calls are decided under it. Otherwise a permit of the share could be seen as used and as
 * kept free, both at once.
 *
 * <p>No permit is lost between the word and the queue: a waiter raises {@link #waiting} before it reads the word again,
 * and a release lowers the word before it reads {@link #waiting}, so one of the two sees the other. An admission wakes
 * nobody: it uses at least as many permits as other calls no longer have to leave free for its class.
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

    /** Guarded by itself. */
    private final ClassQueue<QueuedReservation> queue = new ClassQueue<>();
    /**
     * Permits in use by rank, of calls admitted since a class has a share; null before. Set once; its elements are guarded by
     * the queue.
     */
    private volatile int @Nullable [] usedByRank;
    /** Times at which calls were admitted, oldest first; kept only for calls that have a lease. Guarded by itself. */
    private final Map<ConcurrencyReservation, Long> leased = new LinkedHashMap<>(0);
    /** Whether {@link #leased} ever had an entry. */
    private volatile boolean leases;

    ConcurrencyCell(ConcurrencyLimiter limiter, @Nullable Object key) {
        this.limiter = limiter;
        this.key = key;
        countRanks();
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
    ConcurrencyReservation reserve(
            ConcurrencyLimiter.Parameters parameters, long permits, int rank, long maxWaitNanos) {
        endLeases();
        int[] counts = usedByRank;
        int outcome = waiting > 0 && mustQueue(rank, permits)
                ? refusal(permits, rank)
                : take(parameters, permits, rank, counts);
        if (outcome == GONE) {
            return null;
        }
        AdaptiveLimit adaptive = limiter.adaptive();
        if (outcome == FULL && adaptive != null) {
            long now = limiter.ticker().nanos();
            if (forgetsLimit(adaptive, now)) {
                outcome = take(parameters, permits, rank, counts);
            }
            if (outcome == FULL) {
                adaptive.full(now, used());
            }
        }
        if (outcome == FULL) {
            long maxWait = maxWaitNanos > 0 ? longestWait(rank, maxWaitNanos) : 0;
            if (maxWait > 0) {
                return enqueue(permits, rank, maxWait);
            }
        }
        ConcurrencyReservation call = adaptive != null && outcome == ADMITTED
                ? new ConcurrencyReservation.Timed(
                        this, permits, rank, limiter.ticker().nanos())
                : new ConcurrencyReservation(this, permits, rank, outcome);
        if (outcome == ADMITTED) {
            admitted(call, counts);
            if (adaptive != null && inUse >= adaptive.watched()) {
                adaptive.admitted(call.start(), inUse);
            }
        } else {
            limiter.removeIfIdle(key);
        }
        return call;
    }

    /** Returns whether the limit is gone, since no call has been rejected or has waited for long. */
    private boolean forgetsLimit(AdaptiveLimit adaptive, long now) {
        return waiting == 0 && adaptive.forgets(now, used());
    }

    /** As the waiting room says. Where it is full, the last call of the worst class that waits gives its seat to a better one. */
    private long longestWait(int rank, long maxWaitNanos) {
        long maxWait = limiter.waitingRoom().longestWait(key, maxWaitNanos);
        QueuedReservation last = maxWait > 0 ? null : lastBelow(rank);
        if (last == null) {
            return maxWait;
        }
        JointLocks.outside(last::crowdOut);
        return WaitingRoom.longestWait(maxWaitNanos);
    }

    /** Rejects calls of worse classes, the last one first, until there is a seat for one of the class. */
    void makeRoom(int rank) {
        while (limiter.waitingRoom().longestWait(key, 1) == 0) {
            QueuedReservation last = lastBelow(rank);
            if (last == null) {
                return;
            }
            last.crowdOut();
        }
    }

    /** The call that gives its seat to one of the class; null where none of a worse class waits. */
    private @Nullable QueuedReservation lastBelow(int rank) {
        if (limiter.classes().number() == 1) {
            return null;
        }
        synchronized (queue) {
            return queue.lastBelow(rank);
        }
    }

    /** @param counts those in which the call was counted; null if in none */
    private void admitted(ConcurrencyReservation call, int @Nullable [] counts) {
        if (counts != null) {
            call.counted();
        }
        startLease(call);
    }

    private void countRanks() {
        if (limiter.classes().hasShares()) {
            synchronized (queue) {
                usedByRank = usedByRank == null ? new int[Classes.MOST] : usedByRank;
            }
        }
    }

    /** Returns whether a call of the class stands behind one that waits: within its share, only behind its own class. */
    private boolean mustQueue(int rank, long permits) {
        Classes classes = limiter.classes();
        if (classes.number() == 1) {
            return true;
        }
        synchronized (queue) {
            return classes.isWithinShare(rank, permits, places(false), usedByRank)
                    ? queue.has(rank)
                    : queue.hasUpTo(rank);
        }
    }

    /** Returns the result that {@link #reserve} would return, and takes nothing. */
    int peek(long permits, int rank, long maxWaitNanos) {
        if (permits > heaviest(limiter.parameters(), rank)) {
            return NEVER;
        }
        endLeases();
        boolean fits = fits(permits, rank) && (waiting == 0 || !mustQueue(rank, permits));
        AdaptiveLimit adaptive = limiter.adaptive();
        if (!fits && adaptive != null && forgetsLimit(adaptive, limiter.ticker().nanos())) {
            fits = fits(permits, rank);
        }
        return fits || mayWait(rank, maxWaitNanos) ? ADMITTED : FULL;
    }

    private boolean mayWait(int rank, long maxWaitNanos) {
        return maxWaitNanos > 0
                && (limiter.waitingRoom().longestWait(key, maxWaitNanos) > 0 || lastBelow(rank) != null);
    }

    /** Free places. */
    long remaining() {
        endLeases();
        AdaptiveLimit adaptive = limiter.adaptive();
        long places = adaptive == null ? maxConcurrent() : Math.min(adaptive.limit(), adaptive.places(false));
        return Math.max(0, places - Math.max(0, inUse));
    }

    /** Permits in use. */
    long used() {
        return Math.max(0, inUse);
    }

    /** @param best whether for a call of the highest class */
    private long places(boolean best) {
        AdaptiveLimit adaptive = limiter.adaptive();
        return adaptive == null ? maxConcurrent() : adaptive.places(best);
    }

    /** Returns whether {@link #take} would find the permits free now. */
    private boolean fits(long permits, int rank) {
        int[] counts = usedByRank;
        if (counts == null) {
            return fits(limiter.parameters(), used(), permits, rank, null);
        }
        synchronized (queue) {
            return fits(limiter.parameters(), used(), permits, rank, counts);
        }
    }

    /** A call that may go at all goes when it is alone, whatever limit was found. */
    private boolean fits(
            ConcurrencyLimiter.Parameters parameters, long used, long permits, int rank, int @Nullable [] counts) {
        if (parameters.plain()) {
            return used + permits <= parameters.maxConcurrent();
        }
        Classes classes = parameters.classes();
        long places = places(false);
        long ceiling = classes.number() == 1 ? places : classes.ceiling(rank, permits, places, places(true), counts);
        return used + permits <= ceiling || (used == 0 && limiter.adaptive() != null);
    }

    private long maxConcurrent() {
        return limiter.parameters().maxConcurrent();
    }

    /** The most permits that a call of the class can ever have. */
    private long heaviest(ConcurrencyLimiter.Parameters parameters, int rank) {
        return parameters.plain() || limiter.adaptive() != null
                ? parameters.maxConcurrent()
                : parameters.classes().heaviest(rank, parameters.maxConcurrent());
    }

    private int refusal(long permits, int rank) {
        if (inUse == RETIRED) {
            return GONE;
        }
        return permits > heaviest(limiter.parameters(), rank) ? NEVER : FULL;
    }

    /** @param counts of the permits by class, which count those taken; null for none */
    private int take(ConcurrencyLimiter.Parameters parameters, long permits, int rank, int @Nullable [] counts) {
        if (counts == null) {
            return takeFree(parameters, permits, rank, null);
        }
        synchronized (queue) {
            int outcome = takeFree(parameters, permits, rank, counts);
            if (outcome == ADMITTED) {
                counts[rank] += (int) permits;
            }
            return outcome;
        }
    }

    private int takeFree(ConcurrencyLimiter.Parameters parameters, long permits, int rank, int @Nullable [] counts) {
        while (true) {
            long used = inUse;
            if (used == RETIRED) {
                return GONE;
            }
            if (permits > heaviest(parameters, rank)) {
                return NEVER;
            }
            if (!fits(parameters, used, permits, rank, counts)) {
                return FULL;
            }
            if (IN_USE.compareAndSet(this, used, used + permits)) {
                return ADMITTED;
            }
        }
    }

    /** Null when the last call has ended meanwhile and retired this cell: nobody would serve its queue. */
    private @Nullable ConcurrencyReservation enqueue(long permits, int rank, long maxWait) {
        long now = limiter.ticker().nanos();
        QueuedReservation call;
        synchronized (queue) {
            if (inUse == RETIRED) {
                return null;
            }
            call = new QueuedReservation(this, permits, rank, now + patience(maxWait, queue.standing(rank, now)));
            queue.add(rank, call, now);
            waiting = queue.size();
        }
        serve();
        return call;
    }

    /**
     * Where the limit seeks itself, a queue that does not empty makes waits shorter: they cost time and serve nobody more.
     * Calls of worse classes are served later, so their queue is none for this call.
     */
    private long patience(long maxWait, long standing) {
        if (limiter.adaptive() == null || standing <= 0) {
            return maxWait;
        }
        return (long) (maxWait / (1 + (double) standing / maxWait));
    }

    /**
     * Hands free permits to the head of the queue. A head that asks for more than are free waits, and so do those behind
     * it, but for classes that have less than their share. Runs callbacks of callers, so the caller holds no lock.
     */
    void serve() {
        while (waiting > 0) {
            QueuedReservation served;
            synchronized (queue) {
                served = serveOne();
                waiting = queue.size();
            }
            if (served == null) {
                return;
            }
            served.wake();
        }
    }

    /** Decides the first call that can be decided, and takes it out of the queue; null for none. */
    private @Nullable QueuedReservation serveOne() {
        int[] counts = usedByRank;
        boolean behind = false;
        for (int rank = 0; rank < queue.ranks(); rank++) {
            QueuedReservation head = queue.first(rank);
            if (head == null
                    || (behind && !limiter.classes().isWithinShare(rank, head.permits(), places(false), counts))) {
                continue;
            }
            int outcome = take(limiter.parameters(), head.permits(), rank, counts);
            if (outcome == ADMITTED || outcome == NEVER) {
                if (outcome == ADMITTED) {
                    head.started(
                            limiter.adaptive() == null ? 0 : limiter.ticker().nanos());
                    admitted(head, counts);
                }
                head.decided(outcome);
                queue.remove(rank, head);
                return head;
            }
            behind = true;
        }
        return null;
    }

    /** More calls may fit, and leases may end before the alarms of those that wait. */
    void limitChanged() {
        countRanks();
        endLeases();
        serve();
        List<QueuedReservation> left;
        synchronized (queue) {
            left = queue.all();
        }
        left.forEach(QueuedReservation::resetAlarm);
    }

    /**
     * Rejects a call that gives up, and decides those behind it in the same step: they are not decided before it, and if it asks
     * again, it finds their permits taken.
     *
     * @return the decided calls, which are to be woken after the one that gives up; null if that one was decided before
     */
    @Nullable
    List<QueuedReservation> leave(QueuedReservation call) {
        synchronized (queue) {
            if (!queue.remove(call.rank(), call)) {
                return null;
            }
            call.decided(FULL);
            List<QueuedReservation> served = new ArrayList<>(0);
            for (QueuedReservation next = serveOne(); next != null; next = serveOne()) {
                served.add(next);
            }
            waiting = queue.size();
            return served;
        }
    }

    /** Frees the permits of a call that has ended; called once a call. */
    void release(ConcurrencyReservation call, End end) {
        if (leases) {
            synchronized (leased) {
                leased.remove(call);
            }
        }
        long used = free(call);
        AdaptiveLimit adaptive = limiter.adaptive();
        if (adaptive != null) {
            adaptive.ended(call.start(), used + call.permits(), used, waiting > 0, end);
        }
        if (waiting > 0) {
            serve();
        }
        limiter.removeIfIdle(key);
    }

    /** Returns the permits that are still in use. */
    private long free(ConcurrencyReservation call) {
        int[] counts = usedByRank;
        if (counts == null || !call.isCounted()) {
            return IN_USE.addAndGet(this, -call.permits());
        }
        synchronized (queue) {
            counts[call.rank()] -= (int) call.permits();
            return IN_USE.addAndGet(this, -call.permits());
        }
    }

    /** Retires this cell if it has no call in flight and none waiting; returns whether it did. */
    boolean retireIfIdle() {
        synchronized (queue) {
            return queue.size() == 0 && IN_USE.compareAndSet(this, 0, RETIRED);
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
