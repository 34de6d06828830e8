package io.ratelimited.spring.redis;

import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.SharedRecords;
import io.ratelimited.spring.backend.SharedChanges;
import java.time.Duration;
import java.util.Collection;
import java.util.Queue;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The changes that instances share are records in Redis. */
record RedisSharedChanges(Supplier<RedisBackend> backend) implements SharedChanges {

    private SharedRecords records() {
        return backend.get().records();
    }

    @Override
    public @Nullable Change find(String limit, @Nullable String caller) {
        SharedRecords.Key key = new SharedRecords.Key(limit, caller);
        SharedRecords.Entry entry = records().find(key);
        return entry == null ? null : change(key, entry);
    }

    private static Change change(SharedRecords.Key key, SharedRecords.Entry entry) {
        return new Change(
                key.limit(),
                key.caller(),
                entry.version(),
                entry.text(),
                entry.endsAt(),
                entry.author(),
                entry.writtenAt());
    }

    @Override
    public Collection<String> callers(String limit) {
        return records().callers(limit);
    }

    @Override
    public Written write(
            String limit,
            @Nullable String caller,
            long basedOn,
            String text,
            @Nullable Duration lasting,
            @Nullable String author,
            int maximumCallers) {
        SharedRecords.Key key = new SharedRecords.Key(limit, caller);
        return switch (records().write(key, basedOn, text, lasting, author, maximumCallers)) {
            case WRITTEN -> Written.DONE;
            case OUTDATED -> Written.OUTDATED;
            case FULL -> Written.FULL;
        };
    }

    @Override
    public Supplier<@Nullable Change> follow(Runnable task) {
        Queue<SharedRecords.Change> changes = records().follow(task);
        return () -> {
            SharedRecords.Change next = changes.poll();
            return next == null ? null : change(next.key(), next.entry());
        };
    }
}
