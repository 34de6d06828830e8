package io.ratelimited.redis.internals.limiter;

import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * By whose numbers keys have called last: of the last 10,000 keys at least, once a caller has had its own numbers. The numbers of
 * others are known only to the expression that yields them. Thread-safe.
 *
 * @param <T> the limiter of callers with the same numbers
 */
final class LastCallers<T> {

    private static final int GENERATION = 10_000;

    private volatile ConcurrentHashMap<String, T> young = new ConcurrentHashMap<>();
    private volatile ConcurrentHashMap<String, T> old = new ConcurrentHashMap<>();
    private volatile boolean used;

    /** @param own whether the caller has its own numbers */
    void add(@Nullable String text, T limiter, boolean own) {
        if (text == null || !(own || used)) {
            return;
        }
        used = true;
        ConcurrentHashMap<String, T> last = young;
        if (last.put(text, limiter) == null && last.mappingCount() >= GENERATION) {
            old = last;
            young = new ConcurrentHashMap<>();
        }
    }

    @Nullable
    T of(String text) {
        T found = young.get(text);
        return found == null ? old.get(text) : found;
    }
}
