package io.ratelimited.core;

import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Cells that exist only while calls are in flight: there are never more than there are calls, so nothing has to be
 * evicted.
 */
final class BusyCells implements Cells {

    private final ConcurrentHashMap<Object, Concurrency> cells = new ConcurrentHashMap<>();
    private final SteadyClock clock;
    private volatile Terms terms;

    BusyCells(Terms terms, SteadyClock clock) {
        this.terms = terms;
        this.clock = clock;
    }

    @Override
    public Cell get(Object key, Terms current, long now) {
        Concurrency cell = cells.get(key);
        return cell != null ? cell : cells.computeIfAbsent(key, k -> (Concurrency) terms.fresh(0));
    }

    @Override
    public Cell peek(Object key, Terms current, long now) {
        Concurrency cell = cells.get(key);
        return cell != null ? cell : terms.fresh(0);
    }

    @Override
    public void follow(Object key, Cell moved) {
        // The cell itself goes on, or whoever retired it is removing it.
        Cells.newest(moved);
    }

    @Override
    public @Nullable Cell successor(Object key, Cell cell) {
        return null;
    }

    @Override
    public void reset(Object key) {
        // Calls in flight still count, and there is nothing else to forget.
    }

    @Override
    public void termsChanged(Terms next) {
        terms = next;
    }

    @Override
    public void serve() {
        long now = clock.now(terms);
        cells.values().forEach(cell -> cell.serve(now));
    }

    @Override
    public void ended(Object key) {
        cells.computeIfPresent(key, (k, cell) -> cell.retireIfIdle() ? null : cell);
    }

    @Override
    public long size() {
        return cells.size();
    }

    @Override
    public Stream<Object> keys() {
        return cells.keySet().stream();
    }
}
