package io.ratelimited.redis;

import io.ratelimited.core.Ticker;
import io.ratelimited.redis.SharedRecords.Entry;
import io.ratelimited.redis.SharedRecords.Page;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * This node's copy of {@link SharedRecords}, by their fields in Redis, and the position up to which it is complete.
 * Thread-safe.
 */
final class RecordCopy {

    /** Sums are modulo this, so that a script can add with whole numbers. */
    private static final long SUM_LIMIT = 1L << 52;
    /** Time for which an ended record is remembered, so that no other node brings back the records that it has replaced. */
    private static final long REMEMBERED_NANOS = TimeUnit.HOURS.toNanos(1);

    private final Ticker ticker;
    private final Map<String, Entry> entries = new ConcurrentHashMap<>();
    /** Fields that hold no record there. Guarded by this, like all that follows. */
    private final Set<String> unreadable = new TreeSet<>();
    /** All writes up to this position are in {@link #entries}. */
    private long known;
    /** Removals up to this position may have been forgotten. */
    private long floor;
    /** Sum of the versions of all records that have a text. */
    private long sum;
    /** The rest of the sum in Redis when everything was compared last, such as of records that are not readable any more. */
    private long sumBesides;
    /** The latest version of all records: Redis has lost something if its position is before it. */
    private long newest;

    RecordCopy(Ticker ticker) {
        this.ticker = ticker;
    }

    @Nullable
    Entry find(String field) {
        return entries.get(field);
    }

    Set<String> fields() {
        return entries.keySet();
    }

    synchronized Set<String> unreadable() {
        return new TreeSet<>(unreadable);
    }

    synchronized long known() {
        return known;
    }

    synchronized long floor() {
        return floor;
    }

    /** Returns whether nothing is missing here, by the last position and the sum there. */
    synchronized boolean isSame(long position, long sumThere) {
        return position == known && position >= newest && sumThere == expectedSum();
    }

    synchronized boolean isAheadOf(Page page, long since) {
        return page.position() < Math.max(since, newest);
    }

    synchronized boolean differsFrom(Page page) {
        return page.sum() != expectedSum();
    }

    private long expectedSum() {
        return (sum + sumBesides) % SUM_LIMIT;
    }

    /** @param entry null if it cannot be read: then the known one stays */
    synchronized void put(String field, @Nullable Entry entry) {
        if (entry == null) {
            unreadable.add(field);
            return;
        }
        unreadable.remove(field);
        Entry before = entries.get(field);
        if (before == null || entry.version() >= before.version()) {
            replace(field, entry);
        }
    }

    private void replace(String field, @Nullable Entry entry) {
        Entry before = entry == null ? entries.remove(field) : entries.put(field, entry);
        sum = Math.floorMod(sum - counted(before) + counted(entry), SUM_LIMIT);
        newest = Math.max(newest, entry == null ? 0 : entry.version());
    }

    private static long counted(@Nullable Entry entry) {
        return entry == null || entry.text().isEmpty() ? 0 : entry.version();
    }

    /**
     * Takes over the records that were written since.
     *
     * @return the fields that may have changed
     */
    synchronized Set<String> add(Page page) {
        long now = ticker.nanos();
        entries.values()
                .removeIf(entry ->
                        entry.text().isEmpty() && entry.endsAt() != null && now - entry.endsAt() >= REMEMBERED_NANOS);
        page.entries().forEach(this::put);
        know(page.last(), page.floor());
        Set<String> changed = new HashSet<>(page.entries().keySet());
        changed.removeAll(unreadable);
        return changed;
    }

    private void know(long position, long floorThere) {
        known = position;
        // A server that has restarted empty does not know which removals others have forgotten.
        floor = Math.max(floor, floorThere);
    }

    /** Returns the records that Redis has lost. */
    Map<String, Entry> newerThan(Map<String, @Nullable Entry> all) {
        Map<String, Entry> lost = new HashMap<>();
        entries.forEach((field, entry) -> {
            Entry there = all.get(field);
            if (there == null || there.version() < entry.version()) {
                lost.put(field, entry);
            }
        });
        return lost;
    }

    /**
     * Takes over all records of Redis, and those that were written since.
     *
     * @param last the last page of it
     * @return the fields that may have changed
     */
    synchronized Set<String> take(Map<String, @Nullable Entry> all, Page last) {
        Set<String> changed = new HashSet<>();
        entries.forEach((field, entry) -> {
            if (!all.containsKey(field) && entry.version() <= last.position()) {
                replace(field, null);
                changed.add(field);
            }
        });
        unreadable.clear();
        all.forEach((field, entry) -> {
            if (entry == null) {
                unreadable.add(field);
                return;
            }
            Entry before = entries.get(field);
            if (before == null || before.version() <= last.position()) {
                replace(field, entry);
            }
            if (before == null || before.version() != entry.version() || entry.endsAt() != null) {
                changed.add(field);
            }
        });
        newest = entries.values().stream().mapToLong(Entry::version).max().orElse(0);
        know(last.position(), last.floor());
        long here = entries.values().stream()
                .filter(entry -> entry.version() <= last.position())
                .mapToLong(RecordCopy::counted)
                .reduce(0, (a, b) -> (a + b) % SUM_LIMIT);
        sumBesides = Math.floorMod(last.sum() - here, SUM_LIMIT);
        return changed;
    }
}
