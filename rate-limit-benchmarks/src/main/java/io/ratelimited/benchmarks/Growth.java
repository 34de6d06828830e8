package io.ratelimited.benchmarks;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;

/** How long many new keys take, what stays in the heap for each with the key, and how long collections stopped the process. */
public final class Growth {

    private static Object kept = "";

    private Growth() {}

    /** Takes what keeps the keys, and their number. */
    public static void main(String[] args) {
        int keys = Integer.parseInt(args[1]);
        Consumer<String> use = switch (args[0]) {
            case "map" -> {
                ConcurrentHashMap<String, AtomicLong> map = new ConcurrentHashMap<>();
                kept = map;
                yield key -> map.computeIfAbsent(key, k -> new AtomicLong()).incrementAndGet();
            }
            case "caffeine" -> {
                Cache<String, AtomicLong> cache = Caffeine.newBuilder()
                        .maximumSize(2L * keys)
                        .expireAfterAccess(Duration.ofHours(1))
                        .build();
                kept = cache;
                yield key -> cache.get(key, k -> new AtomicLong()).incrementAndGet();
            }
            case "ours" -> {
                InMemoryRateLimiter limiter = new InMemoryRateLimiter(
                        Peers.limit(Algorithm.TOKEN_BUCKET, "10/h"), Ticker.system(), 2L * keys);
                kept = limiter;
                yield key -> limiter.tryAcquire(key, 1);
            }
            default -> throw new IllegalArgumentException("unknown: " + args[0]);
        };
        long before = used();
        long paused = paused();
        long begin = System.nanoTime();
        for (int i = 0; i < keys; i++) {
            use.accept("caller-" + (100_000_000 + i));
        }
        double seconds = (System.nanoTime() - begin) / 1e9;
        paused = paused() - paused;
        System.out.printf(
                Locale.ROOT,
                "%s, %,d keys: %.1f s, collections %.1f s, %d B a key%n",
                args[0],
                keys,
                seconds,
                paused / 1e3,
                (used() - before) / keys);
        if (kept.equals("")) {
            throw new IllegalStateException("nothing was kept");
        }
    }

    private static long used() {
        for (int i = 0; i < 3; i++) {
            System.gc();
        }
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    private static long paused() {
        return ManagementFactory.getGarbageCollectorMXBeans().stream()
                .mapToLong(GarbageCollectorMXBean::getCollectionTime)
                .sum();
    }
}
