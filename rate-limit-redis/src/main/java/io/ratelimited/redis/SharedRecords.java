package io.ratelimited.redis;

import io.ratelimited.core.Ticker;
import io.ratelimited.redis.connection.GuardedConnection;
import io.ratelimited.redis.connection.Replies;
import io.ratelimited.redis.connection.Script;
import io.ratelimited.redis.connection.ScriptArguments;
import io.ratelimited.redis.limiter.LimiterContext;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Texts that the nodes of a cluster share: one for a limit, and one for each of its callers. Every node has a copy, which
 * follows Redis by the heartbeat: a read costs no command. A write is made in Redis at once, whole or not at all, and only
 * on what the writer knows. Thread-safe.
 *
 * <ol>
 *   <li>Redis gives each write a version that is larger than all before it, and nodes fetch what is newer than what they have.
 *   <li>Redis and each node add up the versions of the records that they have. A node whose sum is another one, or that has
 *       a later version than all of Redis, compares everything, and writes back what Redis has lost, as after a failover or a
 *       restart without its data.
 *   <li>A node that has been away longer than Redis remembers removed records takes all that is there, and writes nothing back.
 * </ol>
 */
public final class SharedRecords {

    private static final int PAGE = 500;
    /** Sums are modulo this, so that a script can add with whole numbers. */
    private static final long SUM_LIMIT = 1L << 52;
    /** For how long a record that has ended is remembered, so that no other node brings back what it has replaced. */
    private static final long REMEMBERED_NANOS = TimeUnit.HOURS.toNanos(1);

    private static final long WRITES_NOTHING_BACK = -1;

    private final LimiterContext context;
    private final GuardedConnection connection;
    private final String[] keys;
    private final Map<String, Entry> entries = new ConcurrentHashMap<>();
    private final List<Consumer<Collection<Key>>> listeners = new CopyOnWriteArrayList<>();
    /** All writes up to this position are in {@link #entries}. Guarded by this, like the others. */
    private long known;
    /** Removals up to this position may have been forgotten. */
    private long floor;
    /** Of the versions of all records that have a text. */
    private long sum;
    /** The latest version of all records: Redis has lost something if its position is before it. */
    private long newest;

    private CompletableFuture<Void> reading = CompletableFuture.completedFuture(null);

    /**
     * Whose record it is.
     *
     * @param limit name of the limit
     * @param caller name of its caller; null for the record of the limit itself
     */
    public record Key(String limit, @Nullable String caller) {

        private String field() {
            return caller == null ? "l" + limit : "c" + caller + ":" + limit;
        }

        private static Key of(String field) {
            int colon = field.indexOf(':');
            return field.startsWith("l")
                    ? new Key(field.substring(1), null)
                    : new Key(field.substring(colon + 1), field.substring(1, colon));
        }
    }

    /**
     * A record.
     *
     * @param version of the write that it is from
     * @param text what was written; empty if it was removed
     * @param endsAt when it ends, in nanoseconds of the backend's {@link Ticker}; null for never
     */
    public record Entry(long version, String text, @Nullable Long endsAt, long endMicros) {}

    /** What has become of a write. */
    public enum Outcome {
        WRITTEN,
        /** Another node has written the record meanwhile. Nothing has changed; this node has its version now. */
        OUTDATED,
        /** The limit has as many callers as it may have. Nothing has changed. */
        FULL
    }

    SharedRecords(LimiterContext context, String[] keys) {
        this.context = context;
        this.connection = context.connection();
        this.keys = keys;
    }

    /** The record as far as this node knows, perhaps one that has ended; null if it never was, or ended long ago. */
    public @Nullable Entry find(Key key) {
        return entries.get(key.field());
    }

    /** The names of the callers of a limit that have a record, removed ones included. */
    public Set<String> callers(String limit) {
        Set<String> callers = new HashSet<>();
        entries.keySet().forEach(field -> {
            Key key = Key.of(field);
            if (key.caller != null && key.limit.equals(limit)) {
                callers.add(key.caller);
            }
        });
        return callers;
    }

    /** Tells a listener, on threads for callers, whose records may have changed: {@link #find} has what they are. */
    public void onChange(Consumer<Collection<Key>> listener) {
        listeners.add(listener);
    }

    /**
     * Writes a record for all nodes. Blocks for a round trip, at the most for the timeout.
     *
     * @param basedOn the version that the record has; 0 if there is none
     * @param text empty to remove the record
     * @param lasting how long it lasts; null for ever
     * @param maximumCallers how many callers of a limit may have a record
     * @throws RedisUnavailableException when Redis does not answer; the message says whether it may have been written
     */
    public Outcome write(Key key, long basedOn, String text, @Nullable Duration lasting, int maximumCallers) {
        try {
            Outcome outcome = connection.await(writeAsync(key, basedOn, text, lasting, maximumCallers));
            Entry known = find(key);
            if (outcome == Outcome.OUTDATED && (known == null || known.version <= basedOn)) {
                // Redis has lost what this node knows of the record.
                connection.await(compare());
            }
            return outcome;
        } catch (ExecutionException ex) {
            Throwable cause = Replies.cause(ex);
            throw context.unavailable()
                    .apply(
                            "limit '" + key.limit + "' " + (Replies.isNotSent(cause) ? "is not" : "may not be")
                                    + " changed for all instances",
                            cause);
        }
    }

    CompletableFuture<Outcome> writeAsync(
            Key key, long basedOn, String text, @Nullable Duration lasting, int maximumCallers) {
        ScriptArguments args = new ScriptArguments()
                .add(connection.time())
                .add("write")
                .add(key.field())
                .add(basedOn)
                .add(lasting == null ? 0 : TimeUnit.NANOSECONDS.toMicros(lasting.toNanos()))
                .add(maximumCallers)
                .add(text);
        return connection.eval(Script.CHANGES, keys, args).thenApply(reply -> {
            long version = (Long) reply.get(0);
            if (version < 0) {
                return Outcome.FULL;
            }
            long now = (Long) reply.get(1);
            if (version == 0) {
                put(key.field(), entry((String) reply.get(2), now));
                tell(Set.of(key.field()));
                return Outcome.OUTDATED;
            }
            put(key.field(), entry(version, (Long) reply.get(2), text, now));
            return Outcome.WRITTEN;
        });
    }

    private synchronized void put(String field, Entry entry) {
        Entry before = entries.get(field);
        if (before == null || entry.version >= before.version) {
            replace(field, entry);
        }
    }

    private synchronized void replace(String field, @Nullable Entry entry) {
        Entry before = entry == null ? entries.remove(field) : entries.put(field, entry);
        sum = Math.floorMod(sum - counted(before) + counted(entry), SUM_LIMIT);
        newest = Math.max(newest, entry == null ? 0 : entry.version);
    }

    private static long counted(@Nullable Entry entry) {
        return entry == null || entry.text.isEmpty() ? 0 : entry.version;
    }

    /** @param stored version, end and text */
    private Entry entry(String stored, long nowMicros) {
        String[] parts = stored.split(" ", 3);
        return entry(Long.parseLong(parts[0]), Long.parseLong(parts[1]), parts[2], nowMicros);
    }

    private Entry entry(long version, long endMicros, String text, long nowMicros) {
        Long endsAt = endMicros == 0 ? null : context.ticker().nanos() + (endMicros - nowMicros) * 1_000;
        return new Entry(version, text, endsAt, endMicros);
    }

    /**
     * Fetches what is missing here.
     *
     * @param position that of the last write, as the heartbeat has read it
     * @param sumThere of the versions of all records, as the heartbeat has read it
     */
    synchronized CompletableFuture<Void> follow(long position, long sumThere) {
        boolean isSame = position == known && position >= newest && sumThere == sum;
        return isSame ? CompletableFuture.completedFuture(null) : read();
    }

    private synchronized CompletableFuture<Void> read() {
        if (reading.isDone()) {
            reading = readNewer(known);
        }
        return reading;
    }

    private synchronized CompletableFuture<Void> compare() {
        long since = known;
        reading = reading.handle((done, failure) -> since).thenCompose(this::readAll);
        return reading;
    }

    private record Page(long position, long sum, long floor, Map<String, Entry> entries, long last) {}

    private CompletableFuture<Page> page(long from) {
        ScriptArguments args = new ScriptArguments()
                .add(connection.time())
                .add("read")
                .add(from)
                .add(PAGE);
        return connection.eval(Script.CHANGES, keys, args).thenApply(reply -> {
            long now = (Long) reply.get(0);
            long position = (Long) reply.get(1);
            Map<String, Entry> found = new HashMap<>();
            long last = position;
            for (int i = 4; i < reply.size(); i += 3) {
                last = (Long) reply.get(i);
                found.put((String) reply.get(i + 1), entry((String) reply.get(i + 2), now));
            }
            return new Page(
                    position, (Long) reply.get(2), (Long) reply.get(3), found, found.size() < PAGE ? position : last);
        });
    }

    /** @param since what this node knew when it began to read */
    private CompletableFuture<Void> readNewer(long since) {
        return page(known).thenCompose(page -> {
            if (page.floor > since || isBehind(page, since)) {
                return readAll(since);
            }
            forgetRemoved();
            page.entries.forEach(this::put);
            know(page.last, page.floor);
            tell(page.entries.keySet());
            if (page.last < page.position) {
                return readNewer(since);
            }
            return differsFrom(page) ? readAll(since) : CompletableFuture.completedFuture(null);
        });
    }

    private synchronized void forgetRemoved() {
        long now = context.ticker().nanos();
        entries.values()
                .removeIf(entry ->
                        entry.text.isEmpty() && entry.endsAt != null && now - entry.endsAt >= REMEMBERED_NANOS);
    }

    private synchronized boolean isBehind(Page page, long since) {
        return page.position < Math.max(since, newest);
    }

    private synchronized boolean differsFrom(Page page) {
        return page.sum != sum;
    }

    private synchronized void know(long position, long floorThere) {
        known = position;
        // A server that has restarted empty does not know what others have forgotten.
        floor = Math.max(floor, floorThere);
    }

    /**
     * Compares everything, and writes back what Redis has lost.
     *
     * @param since what this node knew when it began to read: what it alone has is out of date if Redis may have forgotten
     *     a later removal
     */
    private CompletableFuture<Void> readAll(long since) {
        return readAll(0, new HashMap<>(), since);
    }

    private CompletableFuture<Void> readAll(long from, Map<String, Entry> all, long since) {
        return page(from).thenCompose(page -> {
            all.putAll(page.entries);
            if (page.last < page.position) {
                return readAll(page.last, all, since);
            }
            Map<String, Entry> lost = page.floor <= since ? newerThan(all) : Map.of();
            if (!lost.isEmpty()) {
                return writeBack(lost).thenCompose(done -> readAll(WRITES_NOTHING_BACK));
            }
            take(all, page);
            return CompletableFuture.completedFuture(null);
        });
    }

    private Map<String, Entry> newerThan(Map<String, Entry> all) {
        Map<String, Entry> lost = new HashMap<>();
        entries.forEach((field, entry) -> {
            Entry there = all.get(field);
            if (there == null || there.version < entry.version) {
                lost.put(field, entry);
            }
        });
        return lost;
    }

    private CompletableFuture<?> writeBack(Map<String, Entry> lost) {
        CompletableFuture<?> done = CompletableFuture.completedFuture(null);
        List<Map.Entry<String, Entry>> all = new ArrayList<>(lost.entrySet());
        for (int i = 0; i < all.size(); i += PAGE) {
            List<Map.Entry<String, Entry>> part = all.subList(i, Math.min(all.size(), i + PAGE));
            done = done.thenCompose(before -> {
                ScriptArguments args = new ScriptArguments()
                        .add(connection.time())
                        .add("merge")
                        .add(floor);
                part.forEach(each -> args.add(each.getKey())
                        .add(each.getValue().version)
                        .add(each.getValue().endMicros)
                        .add(each.getValue().text));
                return connection.eval(Script.CHANGES, keys, args);
            });
        }
        return done;
    }

    /** Has what Redis has, and what was written since. */
    private synchronized void take(Map<String, Entry> all, Page page) {
        Set<String> changed = new HashSet<>();
        entries.forEach((field, entry) -> {
            if (!all.containsKey(field) && entry.version <= page.position) {
                replace(field, null);
                changed.add(field);
            }
        });
        all.forEach((field, entry) -> {
            Entry before = entries.get(field);
            if (before == null || before.version <= page.position) {
                replace(field, entry);
            }
            if (before == null || before.version != entry.version || entry.endsAt != null) {
                changed.add(field);
            }
        });
        newest = entries.values().stream().mapToLong(Entry::version).max().orElse(0);
        know(page.position, page.floor);
        tell(changed);
    }

    private void tell(Set<String> changed) {
        if (!changed.isEmpty()) {
            List<Key> whose = changed.stream().map(Key::of).toList();
            context.callers().execute(() -> listeners.forEach(listener -> listener.accept(whose)));
        }
    }
}
