package io.ratelimited.benchmarks;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import com.google.common.util.concurrent.RateLimiter;
import io.github.resilience4j.ratelimiter.RateLimiterRegistry;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BiConsumer;
import org.openjdk.jol.info.GraphLayout;

/**
 * Prints the heap bytes of a key, without the key, for a limiter per key (the growth from 10,000 to 110,000 keys, or by as
 * many as an argument says), and of one limiter without keys, with all that it alone refers to.
 */
public final class Footprint {

    private static final int BEFORE = 10_000;
    private static final long KEY_BYTES =
            GraphLayout.parseInstance("caller-100000").totalSize();

    private static final List<Algorithm> ALGORITHMS = List.of(
            Algorithm.TOKEN_BUCKET,
            Algorithm.WARM_UP,
            Algorithm.FIXED_WINDOW,
            Algorithm.SLIDING_WINDOW,
            Algorithm.SLIDING_LOG);

    private Footprint() {}

    /** Prints a table. Takes how many keys are added, by default 100,000. */
    public static void main(String[] args) {
        int keys = args.length == 0 ? 100_000 : Integer.parseInt(args[0]);
        System.out.println("| heap bytes per key, without the key | |\n|---|---:|");
        Cache<String, AtomicLong> floor = cache();
        print("floor: Caffeine and AtomicLong", floor, keys, (map, key) -> floor.put(key, new AtomicLong()));
        ConcurrentHashMap<String, AtomicLong> map = new ConcurrentHashMap<>();
        print("floor: ConcurrentHashMap and AtomicLong", map, keys, (m, key) -> m.put(key, new AtomicLong()));
        for (Algorithm algorithm : ALGORITHMS) {
            InMemoryRateLimiter limiter =
                    new InMemoryRateLimiter(Peers.limit(algorithm, "10/h"), Ticker.system(), 1_000_000);
            print("**ours**: " + algorithm, limiter, keys, (l, key) -> l.tryAcquire(key, 1));
        }
        for (Algorithm algorithm : ALGORITHMS) {
            InMemoryRateLimiter limiter =
                    new InMemoryRateLimiter(Peers.limit(algorithm, "10/h"), Ticker.system(), 1_000_000);
            print("**ours**, charged: " + algorithm, limiter, keys, Footprint::charge);
        }
        Cache<String, RateLimiter> guava = cache();
        print("Guava in Caffeine", guava, keys, (g, key) -> g.put(key, RateLimiter.create(1)));
        Cache<String, Object> bucket4j = cache();
        print("Bucket4j in Caffeine", bucket4j, keys, (b, key) -> b.put(key, Peers.bucket4j(1)));
        RateLimiterRegistry resilience4j = RateLimiterRegistry.ofDefaults();
        print("Resilience4j registry", resilience4j, keys, RateLimiterRegistry::rateLimiter);
        System.out.println("\n| heap bytes of one limiter | |\n|---|---:|");
        for (Algorithm algorithm : ALGORITHMS) {
            InMemoryRateLimiter limiter = new InMemoryRateLimiter(Peers.limit(algorithm, "10/h"));
            limiter.tryAcquire(null, 1);
            print("**ours**: " + algorithm, limiter);
        }
        print("Guava", RateLimiter.create(1));
        print("Bucket4j", Peers.bucket4j(1));
        print("Resilience4j", Peers.resilience4j(1));
    }

    /** Of two calls at once, the first is settled for less. */
    private static void charge(InMemoryRateLimiter limiter, String key) {
        Reservation first = limiter.reserve(key, 2, 0);
        limiter.reserve(key, 2, 0);
        first.settle(1);
    }

    private static <V> Cache<String, V> cache() {
        return Caffeine.newBuilder()
                .maximumSize(1_000_000)
                .expireAfterAccess(Duration.ofHours(1))
                .build();
    }

    private static <T> void print(String what, T root, int keys, BiConsumer<T, String> use) {
        for (int i = 0; i < BEFORE; i++) {
            use.accept(root, "caller-" + (100_000 + i));
        }
        long before = GraphLayout.parseInstance(root).totalSize();
        for (int i = BEFORE; i < BEFORE + keys; i++) {
            use.accept(root, "caller-" + (100_000 + i));
        }
        long after = GraphLayout.parseInstance(root).totalSize();
        System.out.printf("| %s | %d |%n", what, (after - before) / keys - KEY_BYTES);
    }

    private static void print(String what, Object root) {
        System.out.printf("| %s | %d |%n", what, GraphLayout.parseInstance(root).totalSize());
    }
}
