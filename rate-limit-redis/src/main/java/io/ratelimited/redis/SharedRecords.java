package io.ratelimited.redis;

import io.ratelimited.core.Ticker;
import io.ratelimited.redis.internals.connection.GuardedConnection;
import io.ratelimited.redis.internals.connection.Replies;
import io.ratelimited.redis.internals.connection.Script;
import io.ratelimited.redis.internals.connection.ScriptArguments;
import io.ratelimited.redis.internals.limiter.LimiterContext;
import java.net.URLDecoder;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * Texts that all nodes share: one for a limit, and one for each of its callers. All of them are one record in Redis with one
 * version, which increases with each write. Every node has a copy, so finding a text needs no command. A node updates its
 * copy when the heartbeat reports another version. A write in Redis is atomic, and only succeeds if the writer knows the
 * current text. Thread-safe.
 *
 * <p>A text in another format is skipped and reported; the next write of its key replaces it.
 *
 * <ol>
 *   <li>Redis stores the latest writes in order, each with the version before it. A node whose version is among them reads
 *       the later writes, one by one; any other node reads the whole record. So a copy always equals the record at one
 *       version.
 *   <li>Of two entries with the same key, the one with the larger version applies. An entry that was removed or has ended is
 *       kept for an hour, because another node may know the one that it replaced. A node that reads the whole record writes
 *       back entries that Redis lacks, or has in an older version, for example after a failover or a restart without its data.
 *   <li>A node that was disconnected for more than half of that hour takes the record from Redis, and writes nothing back.
 * </ol>
 */
public final class SharedRecords {

    /** Entries that are written back at once: each is several commands to Redis, which does nothing else meanwhile. */
    private static final int WRITTEN_BACK = 100;
    /** Fields that a write lets Redis forget: more than are written, and few of the latest writes. */
    private static final int FORGOTTEN = 2;
    /** Callers that are remembered, for each that may have a text. Those that have ended make room at once, up to this. */
    private static final int REMEMBERED = 2;
    /** For how long Redis remembers what was removed or has ended; see {@code changes.lua}. */
    private static final long REMEMBERED_NANOS = TimeUnit.HOURS.toNanos(1);

    /** The version of a node that has nothing. */
    private static final long NONE = 0;
    /** No node writes this version or a larger one, which scripts could not count up. */
    private static final long TOO_LARGE = (1L << 53) - 1;

    private static final CompletableFuture<Void> DONE = CompletableFuture.completedFuture(null);
    /** In place of an entry that Redis does not have any more. */
    private static final Entry REMOVED = new Entry(0, "", null, null, null, "");

    /** Version, end, time, author and text; at most 18 digits fit into a long. */
    private static final Pattern STORED =
            Pattern.compile("(\\d{1,18}) (\\d{1,18}) (\\d{1,18}) ([^ ]*) (.*)", Pattern.DOTALL);

    private final LimiterContext context;
    private final GuardedConnection connection;
    private final String[] keys;
    /** Changed with the lock. */
    private final Map<Key, Entry> entries = new ConcurrentHashMap<>();

    private final List<Follower> followers = new CopyOnWriteArrayList<>();
    /** Fields that hold no entry. Guarded by this, like all that follows. */
    private final Set<String> unreadable = new TreeSet<>();
    /** The version of the record that this node has. */
    private long known;
    /** When this node had all of it for the last time, in nanoseconds of the ticker. */
    private long completeAt;

    private CompletableFuture<Void> reading = DONE;

    /**
     * The owner of a text.
     *
     * @param limit name of the limit
     * @param caller name of its caller; null for the text of the limit itself
     */
    public record Key(String limit, @Nullable String caller) {

        private String field() {
            return caller == null ? "l" + limit : "c" + caller + ":" + limit;
        }

        /** Null if nobody has such a field. */
        private static @Nullable Key of(String field) {
            int colon = field.indexOf(':');
            if (field.startsWith("l")) {
                return new Key(field.substring(1), null);
            }
            return field.startsWith("c") && colon > 0
                    ? new Key(field.substring(colon + 1), field.substring(1, colon))
                    : null;
        }
    }

    /**
     * An entry of the record.
     *
     * @param version version of its write
     * @param text the text; empty if it was removed
     * @param endsAt its end, in nanoseconds of the backend's {@link Ticker}; null for no end
     * @param author the name of its author; null if it is not known
     * @param writtenAt the time of the write, by the clock of Redis; null if Redis has lost it
     * @param stored its format in Redis
     */
    public record Entry(
            long version,
            String text,
            @Nullable Long endsAt,
            @Nullable String author,
            @Nullable Instant writtenAt,
            String stored) {}

    /** A write that this node has received. */
    public record Change(Key key, Entry entry) {}

    private record Follower(Queue<Change> changes, Runnable task) {}

    /** The outcome of a write. */
    public enum Outcome {
        WRITTEN,
        /** Another node has written the text meanwhile. Nothing was changed; this node knows that text now. */
        OUTDATED,
        /**
         * The limit has the maximum number of callers with a text, or twice as many of whom a text is remembered, which most have
         * had within the last hour. Nothing was changed.
         */
        FULL
    }

    SharedRecords(LimiterContext context, String recordKey, String latestKey) {
        this.context = context;
        this.connection = context.connection();
        this.keys = new String[] {recordKey, latestKey};
    }

    /** Returns the entry that this node knows, which may have ended; null if there is none, or it ended long ago. */
    public @Nullable Entry find(Key key) {
        return entries.get(key);
    }

    /** Returns the names of the callers of a limit with an entry, including removed ones. */
    public Set<String> callers(String limit) {
        return entries.keySet().stream()
                .filter(key -> key.caller != null && key.limit.equals(limit))
                .map(Key::caller)
                .collect(Collectors.toSet());
    }

    /**
     * Follows the record from now on.
     *
     * @param task runs on threads for callbacks when there are new changes
     * @return the changes, in the order of their writes, until they are polled
     */
    public Queue<Change> follow(Runnable task) {
        Queue<Change> changes = new ConcurrentLinkedQueue<>();
        followers.add(new Follower(changes, task));
        return changes;
    }

    /**
     * Writes a text for all nodes. Blocks until Redis has replied, at most for the timeout. Afterwards, the change is among
     * those to poll. The removal of a caller's text that neither this node nor Redis has is no change.
     *
     * @param basedOn the version of the entry that it replaces; 0 if there is none
     * @param text empty to remove it
     * @param lasting its duration; null for no end
     * @param author the name of its author; null if it is not known
     * @param maximumCallers maximum number of callers of a limit with a text; twice as many are remembered
     * @throws RedisUnavailableException if Redis is unavailable; the message says whether the text may have been written
     */
    public Outcome write(
            Key key,
            long basedOn,
            String text,
            @Nullable Duration lasting,
            @Nullable String author,
            int maximumCallers) {
        try {
            return connection.await(writeAsync(key, basedOn, text, lasting, author, maximumCallers));
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
            Key key,
            long basedOn,
            String text,
            @Nullable Duration lasting,
            @Nullable String author,
            int maximumCallers) {
        if (isFull(key, text, maximumCallers)) {
            return CompletableFuture.completedFuture(Outcome.FULL);
        }
        long lasts = lasting == null ? 0 : TimeUnit.NANOSECONDS.toMicros(lasting.toNanos());
        long had = known();
        ScriptArguments args = arguments("write", had)
                .add(key.field())
                .add(basedOn)
                .add(text.isEmpty() ? -1 : lasts)
                .add((author == null ? "" : URLEncoder.encode(author, StandardCharsets.UTF_8)) + " " + text);
        long now = context.ticker().nanos();
        entries.entrySet().stream()
                .filter(entry -> isForgotten(entry.getValue(), now))
                .limit(FORGOTTEN)
                .forEach(entry -> args.add(entry.getKey().field()));
        return connection.eval(Script.CHANGES, keys, args).thenCompose(reply -> {
            Outcome outcome = reply.get(3).equals(1L) ? Outcome.WRITTEN : Outcome.OUTDATED;
            return take(had, reply).thenApply(done -> outcome);
        });
    }

    private synchronized long known() {
        return known;
    }

    private ScriptArguments arguments(String operation, long had) {
        return new ScriptArguments().add(connection.time()).add(operation).add(had);
    }

    /** Returns whether there is no room for what a write would add: a caller with a text, who is remembered when it has ended. */
    private boolean isFull(Key key, String text, int maximumCallers) {
        long now = context.ticker().nanos();
        Entry before = entries.get(key);
        if (key.caller == null || text.isEmpty() || isLive(before, now)) {
            return false;
        }
        int live = 0;
        int remembered = 0;
        for (Map.Entry<Key, Entry> each : entries.entrySet()) {
            Key other = each.getKey();
            if (other.caller != null && other.limit.equals(key.limit) && !isForgotten(each.getValue(), now)) {
                remembered++;
                live += isLive(each.getValue(), now) ? 1 : 0;
            }
        }
        boolean adds = before == null || isForgotten(before, now);
        return live >= maximumCallers || (adds && remembered >= REMEMBERED * maximumCallers);
    }

    private static boolean isLive(@Nullable Entry entry, long now) {
        return entry != null && !entry.text.isEmpty() && (entry.endsAt == null || now - entry.endsAt < 0);
    }

    private static boolean isForgotten(Entry entry, long now) {
        return entry.endsAt != null && now - entry.endsAt >= REMEMBERED_NANOS;
    }

    /**
     * Reads the changes that are missing on this node.
     *
     * @param version version of the record, from the heartbeat
     */
    synchronized CompletableFuture<Void> catchUp(long version) {
        if (version != known) {
            return read();
        }
        completeAt = context.ticker().nanos();
        return DONE;
    }

    private synchronized CompletableFuture<Void> read() {
        if (reading.isDone()) {
            reading = read(known);
        }
        return reading;
    }

    /** @param had the version that this node has */
    private CompletableFuture<Void> read(long had) {
        return page(had, "0").thenCompose(reply -> take(had, reply));
    }

    private CompletableFuture<List<Object>> page(long had, String cursor) {
        return connection.evalInBackground(
                Script.CHANGES, keys, arguments("read", had).add(cursor));
    }

    /** Takes over what Redis has replied to a node that had a version. */
    private CompletableFuture<Void> take(long had, List<Object> reply) {
        long version = (Long) reply.get(1);
        if (!isLatest(reply)) {
            return readOn(new Whole(had, version, new HashMap<>(), new TreeSet<>()), reply);
        }
        return advance(had, reply) ? DONE : read(known());
    }

    private static boolean isLatest(List<Object> reply) {
        return reply.get(2).equals("");
    }

    /**
     * The whole record.
     *
     * @param had the version that this node had before
     * @param version that of the first page: of what is written meanwhile the next reading has all
     */
    private record Whole(long had, long version, Map<Key, Entry> entries, Set<String> unreadable) {}

    private CompletableFuture<Void> readOn(Whole whole, List<Object> page) {
        for (int i = 5; i < page.size(); i += 3) {
            String field = (String) page.get(i);
            Change change = read(field, (String) page.get(i + 1), (Long) page.get(0));
            if (change != null) {
                whole.entries.put(change.key, change.entry);
            } else if (!field.equals("version")) {
                whole.unreadable.add(field);
            }
        }
        String cursor = (String) page.get(2);
        return cursor.equals("0") ? take(whole) : page(NONE, cursor).thenCompose(next -> readOn(whole, next));
    }

    /**
     * An entry as it is stored; {@code changes.lua} reads the same entries.
     *
     * @return null if it is something else
     */
    private @Nullable Change read(String field, String stored, long nowMicros) {
        Key key = Key.of(field);
        Matcher parts = STORED.matcher(stored);
        if (key == null || !parts.matches() || Long.parseLong(parts.group(1)) >= TOO_LARGE) {
            return null;
        }
        long endMicros = Long.parseLong(parts.group(2));
        // An end too far away for the clock is the last that it has.
        Long endsAt =
                endMicros == 0 ? null : context.ticker().nanos() + TimeUnit.MICROSECONDS.toNanos(endMicros - nowMicros);
        return new Change(
                key,
                new Entry(
                        Long.parseLong(parts.group(1)),
                        parts.group(5),
                        endsAt,
                        author(parts.group(4)),
                        Instant.EPOCH.plus(Long.parseLong(parts.group(3)), ChronoUnit.MICROS),
                        stored));
    }

    private static @Nullable String author(String encoded) {
        try {
            String author = URLDecoder.decode(encoded, StandardCharsets.UTF_8);
            return author.isEmpty() ? null : author;
        } catch (IllegalArgumentException ex) {
            // No instance has written it.
            return null;
        }
    }

    /**
     * Takes over the latest writes, one by one.
     *
     * @param had the version that they follow
     * @return whether this node has all of them now
     */
    private synchronized boolean advance(long had, List<Object> reply) {
        // Replies to commands that were under way together overlap.
        int next = had == known ? reply.size() - 3 : 1;
        for (int i = 4; i < reply.size(); i += 3) {
            next = reply.get(i).equals(known) ? i - 3 : next;
        }
        if (next == 1 && !reply.get(1).equals(known)) {
            return false;
        }
        List<Change> changes = new ArrayList<>();
        for (int i = next; i >= 4; i -= 3) {
            String field = (String) reply.get(i + 1);
            String stored = (String) reply.get(i + 2);
            unreadable.remove(field);
            Key key = Key.of(field);
            if (key != null && stored.isEmpty()) {
                // A limit has nothing that ends by itself.
                if (entries.remove(key) != null && key.caller != null) {
                    changes.add(new Change(key, REMOVED));
                }
                continue;
            }
            Change change = read(field, stored, (Long) reply.get(0));
            if (change == null) {
                unreadable.add(field);
            } else if (isNewer(change)) {
                entries.put(change.key, change.entry);
                changes.add(change);
            }
        }
        tell(changes);
        complete((Long) reply.get(1));
        return true;
    }

    private boolean isNewer(Change change) {
        Entry before = entries.get(change.key);
        return before == null || before.version < change.entry.version;
    }

    private void complete(long version) {
        known = version;
        completeAt = context.ticker().nanos();
    }

    private void tell(List<Change> changes) {
        reportUnreadable();
        if (!changes.isEmpty()) {
            followers.forEach(follower -> {
                follower.changes.addAll(changes);
                context.callers().execute(follower.task);
            });
        }
    }

    /** Takes over the whole record, and writes back what Redis has lost. */
    private synchronized CompletableFuture<Void> take(Whole whole) {
        if (whole.had != known) {
            return read(known);
        }
        long now = context.ticker().nanos();
        boolean writesBack = now - completeAt < REMEMBERED_NANOS / 2;
        Map<Key, Entry> lost = new HashMap<>();
        List<Change> changes = new ArrayList<>();
        entries.forEach((key, entry) -> {
            Entry there = whole.entries.get(key);
            // One that cannot be read is replaced by the next write.
            boolean isLost = there == null ? !whole.unreadable.contains(key.field()) : there.version < entry.version;
            if (isLost && writesBack && !isForgotten(entry, now)) {
                lost.put(key, entry);
            } else if (isLost) {
                entries.remove(key);
                changes.add(new Change(key, REMOVED));
            }
        });
        whole.entries.forEach((key, entry) -> {
            Change change = new Change(key, entry);
            if (isNewer(change)) {
                entries.put(key, entry);
                changes.add(change);
            }
        });
        changes.sort(Comparator.comparingLong(change -> change.entry.version));
        unreadable.clear();
        unreadable.addAll(whole.unreadable);
        tell(changes);
        if (lost.isEmpty()) {
            complete(whole.version);
            return DONE;
        }
        // With what others write back Redis has another version: the next heartbeat reads it again.
        return writeBack(List.copyOf(lost.entrySet())).thenAccept(done -> {});
    }

    private CompletableFuture<?> writeBack(List<Map.Entry<Key, Entry>> lost) {
        CompletableFuture<?> done = DONE;
        for (int i = 0; i < lost.size(); i += WRITTEN_BACK) {
            List<Map.Entry<Key, Entry>> part = lost.subList(i, Math.min(lost.size(), i + WRITTEN_BACK));
            done = done.thenCompose(before -> {
                ScriptArguments args = arguments("restore", NONE);
                part.forEach(each -> args.add(each.getKey().field()).add(each.getValue().stored));
                return connection.evalInBackground(Script.CHANGES, keys, args);
            });
        }
        return done;
    }

    private void reportUnreadable() {
        connection
                .health()
                .problem(
                        "records",
                        unreadable.isEmpty()
                                ? null
                                : "Ignored " + unreadable.size()
                                        + " unreadable records of changes in Redis, such as field '"
                                        + unreadable.iterator().next() + "' of " + keys[0]
                                        + ". Change or revert these limits and overrides, or delete the fields");
    }
}
