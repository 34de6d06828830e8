package io.ratelimited.core;

import java.time.Duration;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Decides in the memory of this process. A limit without keys has its one cell in a field; keys have theirs in a
 * {@link Cells map} that is made by the first of them. Thread-safe; a decision takes no lock that is held while waiting,
 * and {@link #tryAcquire} on a known key allocates nothing.
 */
public final class InMemoryRateLimiter implements RateLimiter {

    /** Keys remembered by a limit that states no other number. */
    public static final long DEFAULT_MAXIMUM_KEYS = 1_000_000;

    /** Of no cell. */
    private static final long NO_STAMP = Long.MIN_VALUE + 7;

    private final SteadyClock clock;
    private final boolean inFlight;
    private final long maximumKeys;
    private final WaitingRoom waitingRoom;
    /** While they change a call may find a cell of older or of newer terms, which has its own time: {@link #nowOf}. */
    private volatile Terms terms;

    private volatile Cell single;
    private volatile @Nullable Cells keyed;

    /** A limiter on the system's clock, remembering up to {@value #DEFAULT_MAXIMUM_KEYS} keys. */
    public InMemoryRateLimiter(Limit limit) {
        this(limit, Ticker.system(), DEFAULT_MAXIMUM_KEYS);
    }

    /**
     * @param maximumKeys keys remembered at the most, 1 or more; what is evicted beyond that is folded into shared
     *     state, so that a flood of keys gives nobody more than the limit
     */
    public InMemoryRateLimiter(Limit limit, Ticker ticker, long maximumKeys) {
        this(limit, ticker, maximumKeys, false);
    }

    private InMemoryRateLimiter(Limit limit, Ticker ticker, long maximumKeys, boolean empty) {
        if (maximumKeys < 1) {
            throw new IllegalArgumentException("maximumKeys must be at least 1: " + maximumKeys);
        }
        this.clock = new SteadyClock(ticker);
        this.inFlight = limit.algorithm() == Algorithm.CONCURRENCY;
        this.waitingRoom = new WaitingRoom(ticker, () -> limit().maxWaiting());
        this.maximumKeys = maximumKeys;
        this.terms = Terms.of(limit, ticker.nanos());
        if (empty) {
            terms.startEmpty();
        }
        this.single = terms.fresh(clock.now(terms));
    }

    /**
     * A limiter whose buckets hold nothing at first, for one that takes over from another whose budgets it cannot know:
     * the change gives nobody a burst. Windows and queues start as always.
     */
    public static InMemoryRateLimiter startingEmpty(Limit limit, Ticker ticker, long maximumKeys) {
        return new InMemoryRateLimiter(limit, ticker, maximumKeys, true);
    }

    @Override
    public Limit limit() {
        return terms.limit();
    }

    @Override
    public boolean tryAcquire(@Nullable Object key, long permits) {
        requirePermits(permits);
        if (inFlight) {
            throw new UnsupportedOperationException(
                    "a call under CONCURRENCY has to be released when it ends: use reserve, or execute, instead of tryAcquire");
        }
        Object id = key == null ? null : KeyDigest.shorten(key);
        long stamp = NO_STAMP;
        while (true) {
            Terms current = terms;
            long read = clock.now(current);
            Cell cell = id == null ? single : cells().get(id, current, read);
            long now = nowOf(cell, current, read);
            long outcome = cell.take(permits, now);
            if (outcome >= 0) {
                return true;
            }
            if (outcome == Cell.MOVED) {
                follow(id, cell);
            } else if (!clock.mayBeStale(cell.terms(), now, outcome) || stamp == (stamp = cell.stamp())) {
                return false;
            }
        }
    }

    @Override
    public Reservation reserve(@Nullable Object key, long permits, long maxWaitNanos) {
        requirePermits(permits);
        Object id = key == null ? null : KeyDigest.shorten(key);
        long maxWait = waitingRoom.longestWait(maxWaitNanos);
        CellReservation reservation = new CellReservation(this, id, permits, maxWait);
        long stamp = NO_STAMP;
        while (true) {
            Terms current = terms;
            long read = clock.now(current);
            Cell cell = id == null ? single : cells().get(id, current, read);
            long now = nowOf(cell, current, read);
            long outcome = cell.reserve(permits, now, maxWait, reservation);
            if (outcome == Cell.MOVED) {
                follow(id, cell);
            } else if (!clock.mayBeStale(cell.terms(), now, outcome) || stamp == (stamp = cell.stamp())) {
                reservation.decided(cell, now, outcome);
                if (outcome < 0) {
                    ended(id);
                }
                return reservation;
            }
        }
    }

    @Override
    public Decision peek(@Nullable Object key, long permits, long maxWaitNanos) {
        requirePermits(permits);
        Object id = key == null ? null : KeyDigest.shorten(key);
        long stamp = NO_STAMP;
        while (true) {
            Terms current = terms;
            long read = clock.now(current);
            Cell cell = id == null ? single : cells().peek(id, current, read);
            long now = nowOf(cell, current, read);
            long outcome = cell.peek(permits, now, clampWait(maxWaitNanos));
            if (clock.mayBeStale(cell.terms(), now, outcome) && stamp != (stamp = cell.stamp())) {
                continue;
            }
            Decision decision = outcome == Cell.MOVED ? null : decision(cell, now, outcome);
            if (decision != null) {
                return decision;
            }
            follow(id, cell);
        }
    }

    /**
     * The time for a cell. The clock is read before the cell is looked up, for a new cell is fresh at that time. A cell of
     * other terms may count in another time.
     */
    private long nowOf(Cell cell, Terms current, long read) {
        Terms own = cell.terms();
        return own == current ? read : clock.now(own);
    }

    /** Gives back what the cell of a reservation could not, for which it takes another. */
    void giveBack(@Nullable Object id, Cell cell, CellReservation reservation) {
        Cell successor = id == null ? successor(cell) : cells().successor(id, cell);
        if (successor != null) {
            successor.cancel(reservation, now(successor));
        }
    }

    private synchronized @Nullable Cell successor(Cell cell) {
        Cell next = single == cell ? cell.divide() : null;
        if (next != null) {
            single = next;
        }
        return single.succeeds(cell) ? single : null;
    }

    /** The decision on a reservation, with the budget of its key as it is now. */
    Decision describe(@Nullable Object id, long outcome) {
        while (true) {
            Terms current = terms;
            long read = clock.now(current);
            Cell cell = id == null ? single : cells().peek(id, current, read);
            long now = nowOf(cell, current, read);
            Decision decision = decision(cell, now, outcome);
            if (decision != null) {
                return decision;
            }
            follow(id, cell);
        }
    }

    /** Null when the cell was retired meanwhile, so that what it says of its budget means nothing. */
    private static @Nullable Decision decision(Cell cell, long now, long outcome) {
        boolean admitted = outcome >= 0;
        boolean told = !admitted && outcome != Cell.NEVER && outcome != Cell.UNKNOWN;
        long toWhole = cell.nanosToWhole(now);
        long remaining = cell.remaining(now);
        if (cell.peek(1, now, 0) == Cell.MOVED) {
            return null;
        }
        return new Decision(
                cell.terms().limit().name(),
                admitted,
                Duration.ofNanos(Math.max(0, outcome)),
                told ? Duration.ofNanos(~outcome) : null,
                outcome == Cell.NEVER,
                remaining,
                Duration.ofNanos(toWhole == Long.MAX_VALUE ? 0 : toWhole),
                Decision.Source.MEMORY);
    }

    @Override
    public void reset(@Nullable Object key) {
        if (key != null) {
            cells().reset(KeyDigest.shorten(key));
        } else if (limit().algorithm() != Algorithm.CONCURRENCY) {
            synchronized (this) {
                single.retire();
                single = terms.fresh(clock.now(terms));
            }
        }
    }

    @Override
    public void update(Limit limit) {
        replaceTerms(limit);
        Cell cell = single;
        cell.serve(clock.now(cell.terms()));
        Cells cells = keyed;
        if (cells != null) {
            cells.serve();
        }
    }

    private synchronized void replaceTerms(Limit limit) {
        Limit old = limit();
        if (!limit.name().equals(old.name())) {
            throw new IllegalArgumentException(
                    "a limit cannot be renamed at run time: '" + old.name() + "' to '" + limit.name() + "'");
        }
        if (limit.algorithm() != old.algorithm()
                && (limit.algorithm() == Algorithm.CONCURRENCY || old.algorithm() == Algorithm.CONCURRENCY)) {
            throw new IllegalArgumentException(
                    "limit '" + old.name() + "' cannot change from " + old.algorithm() + " to " + limit.algorithm()
                            + " at run time: calls in flight cannot be counted over time; restart instead");
        }
        Terms before = terms;
        Terms next = Terms.of(limit, clock.ticker().nanos());
        long leftAt = clock.now(before);
        long resumedAt = clock.now(next);
        if (old.algorithm() != Algorithm.CONCURRENCY) {
            next.inherit(before, leftAt, resumedAt);
        }
        before.replaceBy(next, leftAt, resumedAt);
        terms = next;
        single = Cells.newest(single);
        Cells cells = keyed;
        if (cells != null) {
            cells.termsChanged(next);
        }
    }

    @Override
    public long keys() {
        Cells cells = keyed;
        return cells == null ? 0 : cells.size();
    }

    @Override
    public int waiting() {
        return waitingRoom.size();
    }

    @Override
    public Stream<Object> knownKeys() {
        Cells cells = keyed;
        return cells == null ? Stream.empty() : cells.keys();
    }

    @Override
    public Decision.Source source() {
        return Decision.Source.MEMORY;
    }

    WaitingRoom waitingRoom() {
        return waitingRoom;
    }

    Ticker ticker() {
        return clock.ticker();
    }

    long now(Cell cell) {
        return clock.now(cell.terms());
    }

    /** A call of the key has ended or was refused. */
    void ended(@Nullable Object id) {
        if (id != null) {
            cells().ended(id);
        }
    }

    private Cells cells() {
        Cells cells = keyed;
        return cells != null ? cells : makeCells();
    }

    private synchronized Cells makeCells() {
        Cells cells = keyed;
        if (cells == null) {
            cells = Cells.of(terms, clock, maximumKeys);
            keyed = cells;
        }
        return cells;
    }

    private void follow(@Nullable Object id, Cell moved) {
        if (id != null) {
            cells().follow(id, moved);
        } else {
            synchronized (this) {
                single = Cells.newest(single);
            }
        }
    }

    private static long clampWait(long maxWaitNanos) {
        return Math.max(0, Math.min(PermitTime.FAR, maxWaitNanos));
    }

    private static void requirePermits(long permits) {
        if (permits < 1) {
            throw new IllegalArgumentException("permits must be at least 1: " + permits);
        }
    }
}
