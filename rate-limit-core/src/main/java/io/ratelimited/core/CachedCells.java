package io.ratelimited.core;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.RemovalCause;
import java.util.concurrent.ForkJoinPool;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Cells in a cache bounded by number, such that no eviction hands out budget:
 *
 * <ul>
 *   <li>C1 A cell leaves by being retired first, so that a caller still holding it looks the key up again.
 *   <li>C2 A cell that leaves while it is not fresh is folded into one of a fixed array of shared cells, chosen by the
 *       hash of its key, which becomes at least as spent.
 *   <li>C3 A new cell starts as spent as the shared cell of its key. Keys that share one may be limited too early; none
 *       is ever admitted above its limit.
 * </ul>
 *
 * The cache calls the listener within the removal of the entry, before another thread can load the key: C2 happens
 * before C3.
 *
 * <p>The cache knows no time: when a cell is of no more use, the cell itself tells, and one that is fresh is swept out.
 * So a call on a known key writes nothing but its cell; and while fewer than half of the most keys are there, the cache
 * keeps no record of use either.
 */
final class CachedCells implements Cells {

    private static final int SHARED = 8192;
    /** A sweep takes about a hundredth of this a key, so that sweeping stays below a hundredth of a processor. */
    private static final long NANOS_BETWEEN_SWEEPS_PER_KEY = 10_000;

    private final Cache<Object, Cell> cells;
    private final SteadyClock clock;
    private volatile Terms terms;
    /** When to sweep next, in the time of the terms. */
    private volatile long nextSweep;

    private final AtomicBoolean sweeping = new AtomicBoolean();

    private final Object foldLock = new Object();
    /** Made by the first eviction that needs it; entries guarded by {@link #foldLock}. */
    private volatile @Nullable Cell @Nullable [] shared;

    CachedCells(Terms terms, SteadyClock clock, long maximumKeys) {
        this.terms = terms;
        this.clock = clock;
        this.cells = Caffeine.newBuilder()
                .maximumSize(maximumKeys)
                .evictionListener(this::fold)
                .build();
        planSweep();
    }

    private void planSweep() {
        long pause = Math.max(TimeUnit.SECONDS.toNanos(1), terms.idleNanos());
        nextSweep = clock.now(terms) + Math.max(pause, cells.estimatedSize() * NANOS_BETWEEN_SWEEPS_PER_KEY);
    }

    /** In another thread, since it takes time in proportion to the number of keys. */
    private void sweepIfDue(long now) {
        if (now - nextSweep >= 0 && sweeping.compareAndSet(false, true)) {
            planSweep();
            ForkJoinPool.commonPool().execute(this::sweep);
        }
    }

    private void sweep() {
        try {
            cells.asMap().forEach((key, cell) -> {
                if (cell.terms().change() != null || isFresh(cell)) {
                    cells.asMap().computeIfPresent(key, (k, present) -> {
                        Cell last = Cells.newest(present.retire());
                        return isFresh(last) ? null : last;
                    });
                }
            });
        } finally {
            sweeping.set(false);
        }
    }

    private boolean isFresh(Cell cell) {
        return cell.nanosToFresh(clock.now(cell.terms())) == 0;
    }

    @Override
    public Cell get(Object key, Terms current, long now) {
        sweepIfDue(now);
        Cell cell = cells.getIfPresent(key);
        return cell != null ? cell : cells.get(key, k -> create(k, current, now));
    }

    @Override
    public Cell peek(Object key, Terms current, long now) {
        Cell cell = cells.policy().getIfPresentQuietly(key);
        return cell != null ? cell : create(key, current, now);
    }

    private Cell create(Object key, Terms seen, long now) {
        Terms current = terms;
        Cell fresh = current.fresh(current == seen ? now : clock.now(current));
        @Nullable Cell[] array = shared;
        if (array == null) {
            return fresh;
        }
        synchronized (foldLock) {
            int index = index(key);
            if (array[index] == null) {
                return fresh;
            }
            array[index] = Cells.newest(array[index]);
            Cell cell = array[index].copy();
            if (cell.terms() == current) {
                cell.absorb(fresh);
            }
            return cell;
        }
    }

    private void fold(@Nullable Object key, @Nullable Cell cell, RemovalCause cause) {
        if (key == null || cell == null) {
            return;
        }
        Cell last = Cells.newest(cell.retire());
        if (isFresh(last)) {
            return;
        }
        synchronized (foldLock) {
            @Nullable Cell[] array = shared;
            if (array == null) {
                array = new Cell[SHARED];
            }
            int index = index(key);
            Cell sink = array[index];
            if (sink == null) {
                array[index] = last;
            } else {
                do {
                    sink = Cells.newest(sink);
                    last = Cells.newest(last);
                } while (sink.terms() != last.terms());
                sink.absorb(last);
                array[index] = sink;
            }
            shared = array;
        }
    }

    private static int index(Object key) {
        int hash = key.hashCode() * 0x9E3779B9;
        return hash >>> (32 - Integer.numberOfTrailingZeros(SHARED));
    }

    @Override
    public void follow(Object key, Cell moved) {
        cells.asMap().computeIfPresent(key, (k, cell) -> Cells.newest(cell));
    }

    @Override
    public @Nullable Cell successor(Object key, Cell cell) {
        Cell present = cells.asMap().computeIfPresent(key, (k, last) -> {
            Cell next = last == cell ? last.divide() : null;
            return next == null ? last : next;
        });
        return present != null && present.succeeds(cell) ? present : null;
    }

    @Override
    public void reset(Object key) {
        cells.asMap().compute(key, (k, cell) -> {
            if (cell != null) {
                cell.retire();
            }
            Terms current = terms;
            return current.fresh(clock.now(current));
        });
    }

    @Override
    public void termsChanged(Terms next) {
        terms = next;
        planSweep();
    }

    @Override
    public void serve() {
        // A caller who waits has its time and needs no waking.
    }

    @Override
    public void ended(Object key) {
        // The budget of a key outlives its calls.
    }

    @Override
    public long size() {
        return cells.estimatedSize();
    }

    @Override
    public Stream<Object> keys() {
        return cells.asMap().keySet().stream();
    }
}
