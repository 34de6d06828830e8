package io.ratelimited.core.internals.memory;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.github.benmanes.caffeine.cache.RemovalCause;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.internals.threads.CallbackThreads;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The cells of the keys of one limit, in a cache bounded by number. A log of a caller whose own number is large counts as the
 * number of keys that could have its memory. No eviction hands out budget:
 *
 * <ul>
 *   <li>C1 A cell leaves by being retired first, so that a caller still holding it looks the key up again.
 *   <li>C2 A cell that is evicted while it is not in its initial state is remembered in {@link EvictedKeys}.
 *   <li>C3 A new cell starts with the spending that the evicted keys know of its key: never less than the key has spent. A
 *       key may be limited too early, but none is ever admitted above its limit.
 * </ul>
 *
 * The cache calls the listener within the removal of the entry, before another thread can load the key: C2 happens
 * before C3.
 *
 * <p>The cache uses no time: a sweep removes the cells that are in their initial state again. So a call on a known key writes nothing but
 * its cell; and while the cache is less than half full, it keeps no record of use either.
 */
final class CachedCells {

    /** A sweep takes about a hundredth of this a key, so that sweeping stays below a hundredth of a processor. */
    private static final long NANOS_BETWEEN_SWEEPS_PER_KEY = 10_000;

    private final Cache<Object, Cell> cells;
    /** Whether cells may count as several keys. */
    private final boolean differInSize;

    private final SteadyClock clock;
    private volatile CellParameters parameters;
    /** Time of the next sweep, in the time of the parameters. */
    private volatile long nextSweep;

    private final AtomicBoolean sweeping = new AtomicBoolean();

    private final long maximumKeys;
    /** By their windows: {@link CellKeys#windowOf}. Each is made by the first eviction that needs it. */
    private final Map<String, EvictedKeys> evicted = new ConcurrentHashMap<>();

    CachedCells(CellParameters parameters, SteadyClock clock, long maximumKeys) {
        this.parameters = parameters;
        this.clock = clock;
        this.maximumKeys = maximumKeys;
        Caffeine<Object, Cell> cache = Caffeine.newBuilder().evictionListener(this::fold);
        this.differInSize = parameters.limit().algorithm() == Algorithm.SLIDING_LOG;
        this.cells = (differInSize
                        ? cache.maximumWeight(maximumKeys).weigher((key, cell) -> cell.weight())
                        : cache.maximumSize(maximumKeys))
                .build();
        planSweep(Long.MAX_VALUE);
    }

    private long now(CellParameters own) {
        return clock.now(own.followsCalendar());
    }

    /** @param most the longest time until the next sweep */
    private void planSweep(long most) {
        long pause = Math.max(TimeUnit.SECONDS.toNanos(1), parameters.idleNanos());
        long whole = Math.max(pause, cells.estimatedSize() * NANOS_BETWEEN_SWEEPS_PER_KEY);
        nextSweep = now(parameters) + Math.min(most, whole);
    }

    /** The sweep runs in another thread, since it takes time in proportion to the number of keys. */
    private void sweepIfDue(long now) {
        if (now - nextSweep >= 0 && sweeping.compareAndSet(false, true)) {
            planSweep(Long.MAX_VALUE);
            CallbackThreads.SHARED.execute(this::sweep);
        }
    }

    private void sweep() {
        try {
            cells.asMap().forEach((key, cell) -> {
                if (cell.parameters().change() != null || isInitial(cell)) {
                    cells.asMap().computeIfPresent(key, (k, present) -> {
                        Cell last = present.newest();
                        return isInitial(last) && last.retireIfInitial(now(last.parameters())) ? null : last;
                    });
                }
            });
            evicted.values().forEach(known -> known.forget(this::isInitial));
        } finally {
            sweeping.set(false);
        }
    }

    private boolean isInitial(Cell cell) {
        return cell.nanosToInitial(now(cell.parameters())) == 0 && !cell.keepsBlock(clock.sinceBegin());
    }

    /**
     * The cell of a key, made if there is none.
     *
     * @param current the parameters in whose time the caller read {@code now}
     * @param now the time at which a new cell is in its initial state; a later one would charge the first caller for the difference
     */
    Cell get(Object key, CellParameters current, long now) {
        sweepIfDue(now);
        Cell cell = cells.getIfPresent(key);
        if (cell == null) {
            return cells.get(key, k -> create(k, current, now));
        }
        if (differInSize && cell.hasGrown()) {
            // The cache weighs it again.
            cells.asMap().computeIfPresent(key, (k, same) -> same);
        }
        return cell;
    }

    /** The cell of a key, or one as {@link #get} would make it, without remembering the key. */
    Cell peek(Object key, CellParameters current, long now) {
        Cell cell = cells.policy().getIfPresentQuietly(key);
        return cell != null ? cell : create(key, current, now);
    }

    private Cell create(Object key, CellParameters seen, long now) {
        CellParameters current = seen.numbers() == null ? parameters : seen;
        Cell initial = current.initial(current == seen ? now : now(current));
        EvictedKeys known = evicted.get(CellKeys.windowOf(key));
        Cell cell = known == null ? null : known.continued(key);
        if (cell == null) {
            return initial;
        }
        if (cell.parameters() == current) {
            cell.budget().absorb(initial.budget());
        }
        return cell;
    }

    private void fold(@Nullable Object key, @Nullable Cell cell, RemovalCause cause) {
        if (key == null || cell == null) {
            return;
        }
        Cell last = cell.retire().newest();
        if (!isInitial(last)) {
            evicted.computeIfAbsent(CellKeys.windowOf(key), window -> new EvictedKeys(maximumKeys))
                    .add(key, last.compacted(), now(last.parameters()));
        }
    }

    /**
     * Replaces the cell of a key whose parameters have been replaced, or whose caller has other numbers.
     *
     * @param suited makes the cell with the numbers of the caller
     */
    void follow(Object key, UnaryOperator<Cell> suited) {
        cells.asMap().computeIfPresent(key, (k, cell) -> suited.apply(cell));
    }

    /** Replaces a cell if the key still has it. Returns the cell of the key, if there is one. */
    @Nullable
    Cell replace(Object key, Cell cell, Successor successor) {
        return cells.asMap().computeIfPresent(key, (k, last) -> successor.of(last, cell, now(last.parameters())));
    }

    /** Makes the cell that replaces another one and can do more. */
    @FunctionalInterface
    interface Successor {

        /** The cell that follows at a time; null for none. */
        @Nullable
        Cell of(Cell cell, long now);

        /** The cell that follows the present one, if that is the cell to replace; else the present one. */
        default Cell of(Cell present, Cell replaced, long now) {
            Cell next = present == replaced ? of(present, now) : null;
            return next == null ? present : next;
        }
    }

    /** Returns whether a key would have an initial cell if it lost the one that it has: C3 has nothing for it. */
    boolean isNewWithoutCell(Object key) {
        EvictedKeys known = evicted.get(CellKeys.windowOf(key));
        return known == null || !known.knows(key);
    }

    /** Gives the key a new cell with the given parameters. If the limit has changed meanwhile, the cell follows as any other. */
    void reset(Object key, CellParameters own) {
        cells.asMap().compute(key, (k, cell) -> {
            if (cell != null) {
                cell.retire();
            }
            EvictedKeys known = evicted.get(CellKeys.windowOf(k));
            if (known != null) {
                known.forget(k);
            }
            // What the key shares with others stays: only a cell of its own keeps it from that.
            if (cell == null && parameters.limit().block() == null && isNewWithoutCell(k)) {
                return null;
            }
            long now = now(own);
            Cell fresh = own.initial(now);
            fresh.forgetBefore(now);
            return fresh;
        });
    }

    /** The next sweep comes no later than it would have come: a limit that changes often is swept as often as another one. */
    void replaceParameters(CellParameters next) {
        long left = nextSweep - now(parameters);
        parameters = next;
        planSweep(left);
    }

    long size() {
        return cells.estimatedSize();
    }

    /** The cell of a key, if there is one now. */
    @Nullable
    Cell known(Object key) {
        return cells.policy().getIfPresentQuietly(key);
    }

    /** The keys that have a cell now, weakly consistent. */
    Stream<Object> keys() {
        return cells.asMap().keySet().stream();
    }
}
