package io.ratelimited.spring.check;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.spring.LimitProperties;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.limit.ConfiguredLimit;
import io.ratelimited.spring.limit.LimitRegistry;
import io.ratelimited.spring.limit.LogText;
import io.ratelimited.spring.limit.PropertyText;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.Collectors;
import org.springframework.context.ApplicationListener;
import org.springframework.context.event.ContextRefreshedEvent;

/**
 * Logs each limit once, in one line, when the context has started, and warns where the keys that limits may remember in memory
 * do not fit in it, and where calls that wait may take the threads of all requests.
 */
public final class LimitLog implements ApplicationListener<ContextRefreshedEvent> {

    private static final LogText.Lines LOG = LogText.lines(LimitLog.class);
    /** Of a key whose text is as long as it may be, with its cell and its places in the map: measured 155 to 280. */
    private static final long BYTES_PER_KEY = 300;

    private static final long BYTES_PER_MEGABYTE = 1 << 20;

    private final LimitRegistry registry;
    private final long maximumKeys;
    private final long heapBytes;
    private final Set<String> logged = ConcurrentHashMap.newKeySet();
    private volatile String warned = "";
    private volatile String warnedOfSleepers = "";

    /**
     * @param maximumKeys the most keys that each limit in memory remembers
     * @param heapBytes how large the heap may grow
     */
    public LimitLog(LimitRegistry registry, long maximumKeys, long heapBytes) {
        this.registry = registry;
        this.maximumKeys = maximumKeys;
        this.heapBytes = heapBytes;
    }

    /** Child contexts publish the event here too, so each limit is logged only once. */
    @Override
    public void onApplicationEvent(ContextRefreshedEvent event) {
        registry.all().stream()
                .filter(limit -> LOG.isInfoEnabled() && logged.add(limit.name()))
                .forEach(limit -> LOG.info("Rate limit " + describe(limit)));
        warnOfMemory();
        warnOfSleepers();
    }

    private void warnOfSleepers() {
        int half = registry.threads().half();
        List<ConfiguredLimit> sleeping = registry.all().stream()
                .filter(limit -> limit.maySleep() && limit.maxWaiting() > half)
                .toList();
        String names = sleeping.stream().map(ConfiguredLimit::name).collect(Collectors.joining(", "));
        if (names.isEmpty() || names.equals(warnedOfSleepers)) {
            return;
        }
        warnedOfSleepers = names;
        LOG.warn("Calls that wait can take the threads of all requests: max-waiting of " + names
                + " lets more than half of"
                + " the " + registry.threads().number() + " threads sleep. Lower it to " + half
                + ", return a CompletableFuture or a reactive type from the methods, or use virtual threads"
                + " (spring.threads.virtual.enabled).");
    }

    private void warnOfMemory() {
        List<ConfiguredLimit> keyed =
                registry.all().stream().filter(ConfiguredLimit::remembersKeys).toList();
        double bytesPerKey = keyed.stream().mapToLong(LimitLog::bytesPerKey).sum();
        double bytes = bytesPerKey * maximumKeys;
        String names = keyed.stream().map(ConfiguredLimit::name).collect(Collectors.joining(", "));
        if (bytes <= heapBytes / 2.0 || names.equals(warned)) {
            return;
        }
        warned = names;
        LOG.warn(String.format(
                Locale.ROOT,
                "Callers with many keys can fill memory: the limits %s may remember %,d keys each, which take %,.0f MB,"
                        + " more than half of the heap of %,d MB. Set rate-limit.memory.maximum-keys to %d, or give"
                        + " the JVM a larger heap (-Xmx).",
                names,
                maximumKeys,
                bytes / BYTES_PER_MEGABYTE,
                heapBytes / BYTES_PER_MEGABYTE,
                Math.max(1, (long) (heapBytes / 2.0 / bytesPerKey))));
    }

    /** A log keeps a time for each permit. */
    private static long bytesPerKey(NamedLimit limit) {
        return limit.limit().algorithm() == Algorithm.SLIDING_LOG
                ? BYTES_PER_KEY + Long.BYTES * limit.limit().rate().permits()
                : BYTES_PER_KEY;
    }

    private static String describe(NamedLimit limit) {
        StringBuilder text =
                new StringBuilder(limit.limit().toString()).append(", policy ").append(PropertyText.of(limit.policy()));
        if (limit.policy() == Policy.WAIT) {
            text.append(" up to ").append(limit.maxWaitNanos() / 1_000_000).append("ms");
        }
        if (limit.properties().key() != null) {
            text.append(", key ").append(limit.properties().key());
        }
        LimitProperties properties = limit.properties();
        if (!"memory".equals(properties.backend())) {
            text.append(", on ").append(properties.backend());
        }
        if (properties.onFailure() != null) {
            text.append(", on-failure ").append(PropertyText.of(properties.onFailure()));
        }
        if (properties.maxOvershoot() != null) {
            text.append(", max-overshoot ").append(properties.maxOvershoot());
        }
        if (!limit.tiers().isEmpty()) {
            text.append(", tiers ")
                    .append(limit.tiers().keySet().stream().sorted().toList());
        }
        return text.append(" (").append(limit.place()).append(')').toString();
    }
}
