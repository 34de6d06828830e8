package io.ratelimited.spring.actuate;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The most frequent keys of a stream, in bounded memory: Space-Saving (Metwally, Agrawal, El Abbadi, 2005). A key without
 * a counter takes over the smallest one. A key counted more often than the total divided by the number of counters has
 * one for certain; a count is never too low, and too high by at most its error.
 *
 * <p>Thread-safe: a key that has a counter is counted without a lock. A count that meets the loss of its counter is lost.
 */
final class TopKeys {

    private final int capacity;
    private final Map<Object, Count> counts = new ConcurrentHashMap<>();
    private final ReentrantLock replacing = new ReentrantLock();

    /** @param capacity counters, at least 1 */
    TopKeys(int capacity) {
        this.capacity = capacity;
    }

    void add(Object key) {
        Count known = counts.get(key);
        if (known != null) {
            known.value.incrementAndGet();
            return;
        }
        replacing.lock();
        try {
            known = counts.get(key);
            if (known != null) {
                known.value.incrementAndGet();
            } else if (counts.size() < capacity) {
                counts.put(key, new Count(0));
            } else {
                replaceSmallest(key);
            }
        } finally {
            replacing.unlock();
        }
    }

    private void replaceSmallest(Object key) {
        Object smallest = key;
        long least = Long.MAX_VALUE;
        for (Map.Entry<Object, Count> entry : counts.entrySet()) {
            long value = entry.getValue().value.get();
            if (value < least) {
                least = value;
                smallest = entry.getKey();
            }
        }
        counts.remove(smallest);
        counts.put(key, new Count(least));
    }

    /** The most frequent keys, most frequent first. */
    List<Top> top(int limit) {
        List<Top> all = new ArrayList<>();
        counts.forEach((key, count) -> all.add(new Top(key, count.value.get(), count.error)));
        all.sort(Comparator.comparingLong(Top::count).reversed());
        return List.copyOf(all.subList(0, Math.min(limit, all.size())));
    }

    /**
     * A key and its count.
     *
     * @param error the most by which the count may be too high
     */
    record Top(Object key, long count, long error) {}

    private static final class Count {

        private final long error;
        private final AtomicLong value;

        private Count(long error) {
            this.error = error;
            this.value = new AtomicLong(error + 1);
        }
    }
}
