package io.ratelimited.spring.redis;

import io.ratelimited.redis.RedisBackend;
import io.ratelimited.redis.SharedRecords;
import io.ratelimited.spring.backend.SharedChanges;
import java.time.Duration;
import java.util.Collection;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The changes that instances share are records in Redis. */
final class RedisSharedChanges implements SharedChanges {

    private final Supplier<RedisBackend> backend;

    RedisSharedChanges(Supplier<RedisBackend> backend) {
        this.backend = backend;
    }

    private SharedRecords records() {
        return backend.get().records();
    }

    @Override
    public @Nullable Change find(String limit, @Nullable String caller) {
        SharedRecords.Entry entry = records().find(new SharedRecords.Key(limit, caller));
        return entry == null ? null : new Change(entry.version(), entry.text(), entry.endsAt());
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
            int maximumCallers) {
        return switch (records().write(new SharedRecords.Key(limit, caller), basedOn, text, lasting, maximumCallers)) {
            case WRITTEN -> Written.DONE;
            case OUTDATED -> Written.OUTDATED;
            case FULL -> Written.FULL;
        };
    }

    @Override
    public void onChange(BiConsumer<String, @Nullable String> listener) {
        records().onChange(keys -> keys.forEach(key -> listener.accept(key.limit(), key.caller())));
    }
}
