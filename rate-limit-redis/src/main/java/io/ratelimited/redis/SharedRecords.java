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
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Texts that the nodes of a cluster share: one for a limit, and one for each of its callers. Every node has a copy, which
 * follows Redis by the heartbeat: a read costs no command. A write is made in Redis at once, whole or not at all, and only
 * if the writer knows the present version. Thread-safe.
 *
 * <p>A text of another form is skipped and reported, and replaced by the next write of its record.
 *
 * <ol>
 *   <li>Redis gives each write a version that is larger than all before it, and nodes fetch the records that are newer than
 *       theirs.
 *   <li>Redis and each node add up the versions of the records that they have. A node whose sum is another one, or that has
 *       a later version than all of Redis, compares everything, and writes back the records that Redis has lost, as after a
 *       failover or a restart without its data.
 *   <li>A node that has been away longer than Redis remembers removed records takes all that is there, and writes nothing back.
 * </ol>
 */
public final class SharedRecords {

    private static final int PAGE = 500;
    /** Records that are written back at once: each is several commands to Redis, which does nothing else meanwhile. */
    private static final int WRITTEN_BACK = 100;

    private static final long WRITES_NOTHING_BACK = -1;

    /** Version, end and text; at most 18 digits fit into a long. */
    private static final Pattern STORED = Pattern.compile("(\\d{1,18}) (\\d{1,18}) (.*)", Pattern.DOTALL);

    private final LimiterContext context;
    private final GuardedConnection connection;
    private final String[] keys;
    private final RecordCopy copy;
    private final List<Consumer<Collection<Key>>> listeners = new CopyOnWriteArrayList<>();
    /** Guarded by this. */
    private CompletableFuture<Void> reading = CompletableFuture.completedFuture(null);

    /**
     * The owner of a record.
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

        private static boolean isField(String field) {
            return field.startsWith("l") || (field.startsWith("c") && field.indexOf(':') > 0);
        }
    }

    /**
     * A record.
     *
     * @param version of the write that it is from
     * @param text the text that was written; empty if it was removed
     * @param endsAt its end, in nanoseconds of the backend's {@link Ticker}; null for never
     */
    public record Entry(long version, String text, @Nullable Long endsAt, long endMicros) {}

    /** The outcome of a write. */
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
        this.copy = new RecordCopy(context.ticker());
    }

    /** The record as far as this node knows, perhaps one that has ended; null if it never was, or ended long ago. */
    public @Nullable Entry find(Key key) {
        return copy.find(key.field());
    }

    /** The names of the callers of a limit that have a record, removed ones included. */
    public Set<String> callers(String limit) {
        Set<String> callers = new HashSet<>();
        copy.fields().forEach(field -> {
            Key key = Key.of(field);
            if (key.caller != null && key.limit.equals(limit)) {
                callers.add(key.caller);
            }
        });
        return callers;
    }

    /**
     * Informs a listener, on threads for callers, of the keys of records that may have changed; {@link #find} returns the
     * records.
     */
    public void onChange(Consumer<Collection<Key>> listener) {
        listeners.add(listener);
    }

    /**
     * Writes a record for all nodes. Blocks for a round trip, at most for the timeout.
     *
     * @param basedOn the version that the record has; 0 if there is none
     * @param text empty to remove the record
     * @param lasting its length; null for ever
     * @param maximumCallers how many callers of a limit may have a record
     * @throws RedisUnavailableException when Redis does not answer; the message says whether it may have been written
     */
    public Outcome write(Key key, long basedOn, String text, @Nullable Duration lasting, int maximumCallers) {
        try {
            Outcome outcome = connection.await(writeAsync(key, basedOn, text, lasting, maximumCallers));
            Entry known = find(key);
            if (outcome == Outcome.OUTDATED && (known == null || known.version <= basedOn)) {
                // Redis has lost the version that this node knows.
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
                copy.put(key.field(), read(key.field(), (String) reply.get(2), now));
                reportUnreadable();
                tell(Set.of(key.field()));
                return Outcome.OUTDATED;
            }
            copy.put(key.field(), entry(version, (Long) reply.get(2), text, now));
            reportUnreadable();
            return Outcome.WRITTEN;
        });
    }

    private void reportUnreadable() {
        Set<String> unreadable = copy.unreadable();
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

    /**
     * A record as it is stored.
     *
     * @param stored version, end and text
     * @return null if it is something else
     */
    private @Nullable Entry read(String field, String stored, long nowMicros) {
        Matcher parts = STORED.matcher(stored);
        return Key.isField(field) && parts.matches()
                ? entry(Long.parseLong(parts.group(1)), Long.parseLong(parts.group(2)), parts.group(3), nowMicros)
                : null;
    }

    private Entry entry(long version, long endMicros, String text, long nowMicros) {
        Long endsAt = endMicros == 0 ? null : context.ticker().nanos() + (endMicros - nowMicros) * 1_000;
        return new Entry(version, text, endsAt, endMicros);
    }

    /**
     * Fetches the records that are missing here.
     *
     * @param position that of the last write, as the heartbeat has read it
     * @param sumThere of the versions of all records, as the heartbeat has read it
     */
    synchronized CompletableFuture<Void> follow(long position, long sumThere) {
        return copy.isSame(position, sumThere) ? CompletableFuture.completedFuture(null) : read();
    }

    private synchronized CompletableFuture<Void> read() {
        if (reading.isDone()) {
            reading = readNewer(copy.known());
        }
        return reading;
    }

    private synchronized CompletableFuture<Void> compare() {
        long since = copy.known();
        reading = reading.handle((done, failure) -> since).thenCompose(this::readAll);
        return reading;
    }

    /** @param entries null for those that cannot be read */
    record Page(long position, long sum, long floor, Map<String, @Nullable Entry> entries, long last) {}

    private CompletableFuture<Page> page(long from) {
        ScriptArguments args = new ScriptArguments()
                .add(connection.time())
                .add("read")
                .add(from)
                .add(PAGE);
        return connection.eval(Script.CHANGES, keys, args).thenApply(reply -> {
            long now = (Long) reply.get(0);
            long position = (Long) reply.get(1);
            Map<String, @Nullable Entry> found = new HashMap<>();
            long last = position;
            for (int i = 4; i < reply.size(); i += 3) {
                last = (Long) reply.get(i);
                String field = (String) reply.get(i + 1);
                found.put(field, read(field, (String) reply.get(i + 2), now));
            }
            return new Page(
                    position, (Long) reply.get(2), (Long) reply.get(3), found, found.size() < PAGE ? position : last);
        });
    }

    /** @param since the position that this node knew when it began to read */
    private CompletableFuture<Void> readNewer(long since) {
        return page(copy.known()).thenCompose(page -> {
            if (page.floor > since || copy.isAheadOf(page, since)) {
                return readAll(since);
            }
            tell(copy.add(page));
            reportUnreadable();
            if (page.last < page.position) {
                return readNewer(since);
            }
            return copy.differsFrom(page) ? readAll(since) : CompletableFuture.completedFuture(null);
        });
    }

    /**
     * Compares everything, and writes back the records that Redis has lost.
     *
     * @param since the position that this node knew when it began to read: a record that it alone has is out of date if
     *     Redis may have forgotten a later removal
     */
    private CompletableFuture<Void> readAll(long since) {
        return readAll(0, new HashMap<>(), since);
    }

    private CompletableFuture<Void> readAll(long from, Map<String, @Nullable Entry> all, long since) {
        return page(from).thenCompose(page -> {
            all.putAll(page.entries);
            if (page.last < page.position) {
                return readAll(page.last, all, since);
            }
            Map<String, Entry> lost = page.floor <= since ? copy.newerThan(all) : Map.of();
            if (!lost.isEmpty()) {
                return writeBack(lost).thenCompose(done -> readAll(WRITES_NOTHING_BACK));
            }
            tell(copy.take(all, page));
            reportUnreadable();
            return CompletableFuture.completedFuture(null);
        });
    }

    private CompletableFuture<?> writeBack(Map<String, Entry> lost) {
        CompletableFuture<?> done = CompletableFuture.completedFuture(null);
        List<Map.Entry<String, Entry>> all = new ArrayList<>(lost.entrySet());
        for (int i = 0; i < all.size(); i += WRITTEN_BACK) {
            List<Map.Entry<String, Entry>> part = all.subList(i, Math.min(all.size(), i + WRITTEN_BACK));
            done = done.thenCompose(before -> {
                ScriptArguments args = new ScriptArguments()
                        .add(connection.time())
                        .add("merge")
                        .add(copy.floor());
                part.forEach(each -> args.add(each.getKey())
                        .add(each.getValue().version)
                        .add(each.getValue().endMicros)
                        .add(each.getValue().text));
                return connection.eval(Script.CHANGES, keys, args);
            });
        }
        return done;
    }

    private void tell(Set<String> changed) {
        if (!changed.isEmpty()) {
            List<Key> whose = changed.stream().map(Key::of).toList();
            context.callers().execute(() -> listeners.forEach(listener -> listener.accept(whose)));
        }
    }
}
