package io.ratelimited.spring.internals.check;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.spring.MissingKey;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.limit.KeyMemory;
import io.ratelimited.spring.internals.limit.LimitProperty;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.PropertyText;
import java.time.Duration;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.context.ApplicationListener;
import org.springframework.context.event.ContextRefreshedEvent;

/**
 * Logs each limit once, in one line, when the context has started, and warns where the keys that limits may remember in memory
 * do not fit in it, and where calls that wait may take the threads of all requests.
 */
public final class LimitLog implements ApplicationListener<ContextRefreshedEvent> {

    private static final LogText.Lines LOG = LogText.lines(LimitLog.class);
    private static final long BYTES_PER_MEGABYTE = 1 << 20;

    /** Properties that the line shows by itself: as part of the limit, or in words. */
    private static final Set<LimitProperty> SHOWN = EnumSet.of(
            LimitProperty.ALGORITHM,
            LimitProperty.RATE,
            LimitProperty.BURST,
            LimitProperty.WARMUP,
            LimitProperty.ZONE,
            LimitProperty.STARTS_ON,
            LimitProperty.SLOTS,
            LimitProperty.MAX_CONCURRENT,
            LimitProperty.MIN_CONCURRENT,
            LimitProperty.BLOCK,
            LimitProperty.BLOCK_MAX,
            LimitProperty.POLICY,
            LimitProperty.MAX_WAIT,
            LimitProperty.KEY,
            LimitProperty.BACKEND,
            LimitProperty.ON_FAILURE,
            LimitProperty.MAX_OVERSHOOT,
            LimitProperty.TIERS);

    /** Values that say nothing, because every limit has them. */
    private static final Map<LimitProperty, Object> DEFAULTS = Map.of(
            LimitProperty.MAX_WAITING,
            1000,
            LimitProperty.MISSING_KEY,
            MissingKey.SHARED,
            LimitProperty.HTTP_HEADERS,
            LimitProperty.ShownHeaders.SHOWN);

    /** The default name of a second annotation. */
    private static final Pattern NUMBERED = Pattern.compile(".*#\\d+");

    private final LimitRegistry registry;
    private final KeyMemory memory;
    private final Set<String> logged = ConcurrentHashMap.newKeySet();
    private final Set<String> closed = ConcurrentHashMap.newKeySet();
    private final Set<String> nameless = ConcurrentHashMap.newKeySet();
    private volatile String warned = "";
    private volatile String warnedOfSleepers = "";

    /** @param memory the number of keys that each limit and tier in memory remembers */
    public LimitLog(LimitRegistry registry, KeyMemory memory) {
        this.registry = registry;
        this.memory = memory;
    }

    /** Child contexts publish the event here too, so each limit is logged only once. */
    @Override
    public void onApplicationEvent(ContextRefreshedEvent event) {
        registry.all().stream()
                .filter(limit -> LOG.isInfoEnabled() && logged.add(limit.name()))
                .forEach(limit -> LOG.info("Rate limit " + describe(limit)));
        warnOfMemory();
        warnOfSleepers();
        registry.all().forEach(this::warnOfMistakes);
    }

    /** Settings that are allowed and seldom meant. */
    private void warnOfMistakes(ConfiguredLimit limit) {
        String where = " Origin: " + limit.place() + ".";
        // A closed limit with open tiers, or with numbers of each caller, is one for callers that have them.
        boolean some = limit.mayHaveNumbers() || limit.tiers().values().stream().anyMatch(tier -> !admitsNone(tier));
        if (admitsNone(limit.limit()) && !some && closed.add(limit.name())) {
            LOG.warn("Rate limit '" + limit.name() + "' rejects every call, because its " + closedBy(limit.limit())
                    + "." + where + " Set a number above 0, or remove the limit. [RL-270]");
        }
        if (!admitsNone(limit.limit())) {
            limit.tiers().forEach((name, tier) -> {
                if (admitsNone(tier) && closed.add(limit.name() + " " + name)) {
                    LOG.warn("Tier '" + name + "' of rate limit '" + limit.name()
                            + "' rejects every call, because its " + closedBy(tier) + "." + where
                            + " Set a number above 0, or remove the tier. [RL-270]");
                }
            });
        }
        if (NUMBERED.matcher(limit.name()).matches() && limit.showsHeaders() && nameless.add(limit.name())) {
            LOG.warn("Rate limit '" + limit.name() + "' has no name, so responses show the name of its method." + where
                    + " Give it a name, as in @RateLimited(name = \"orders-per-day\"), or set http-headers to none."
                    + " [RL-272]");
        }
    }

    private static String closedBy(Limit limit) {
        return limit.algorithm().countsCallsInFlight() ? "max-concurrent is 0" : "rate is " + limit.rate();
    }

    private static boolean admitsNone(Limit limit) {
        return limit.algorithm().countsCallsInFlight()
                ? limit.maxConcurrent() == 0
                : limit.rate().isClosed();
    }

    private void warnOfSleepers() {
        int half = registry.threads().half();
        List<ConfiguredLimit> sleeping = registry.all().stream()
                .filter(limit -> limit.maySleep() && limit.statedMaxWaiting() > half)
                .toList();
        String names = sleeping.stream().map(ConfiguredLimit::name).collect(Collectors.joining(", "));
        if (names.isEmpty() || names.equals(warnedOfSleepers)) {
            return;
        }
        warnedOfSleepers = names;
        LOG.warn("Waiting calls can block the threads of other requests: max-waiting of " + names
                + " allows more than half of"
                + " the " + registry.threads().number() + " threads to wait. Lower it to " + half
                + ", or return a CompletableFuture or a reactive type from the methods. [RL-211]");
    }

    private void warnOfMemory() {
        List<ConfiguredLimit> keyed = registry.rememberingKeys();
        double part = (double) memory.half() / KeyMemory.limiters(keyed);
        List<String> large = new ArrayList<>();
        boolean log = false;
        double bytesPerKey = 0;
        double bytes = 0;
        for (ConfiguredLimit limit : keyed) {
            double largest = part;
            String size = "";
            for (Limit each : limit.limitAndTiers()) {
                long keys = memory.maximumKeys(each, keyed);
                long ofKey = KeyMemory.bytesPerKey(each, limit.mayHaveNumbers());
                double taken = (double) keys * ofKey;
                bytesPerKey += ofKey;
                bytes += taken;
                if (taken > largest) {
                    largest = taken;
                    size = String.format(Locale.ROOT, "%,d keys of %,d bytes", keys, ofKey);
                    log |= each.algorithm() == Algorithm.SLIDING_LOG;
                }
            }
            if (!size.isEmpty()) {
                boolean alone = limit.tiers().isEmpty();
                large.add(limit.name() + (alone ? " (" + size + ")" : " and its tiers (" + size + " each)"));
            }
        }
        String names = String.join(", ", large);
        if (bytes <= memory.half() || names.equals(warned)) {
            return;
        }
        warned = names;
        LOG.warn(String.format(
                Locale.ROOT,
                "Many keys can fill the memory: those of all limits may take %,.0f MB, more than half of the heap of"
                        + " %,d MB. Most of it is for %s. Set rate-limit.memory.maximum-keys of all limits to %d, or give"
                        + " the JVM a larger heap (-Xmx).%s [RL-210]",
                bytes / BYTES_PER_MEGABYTE,
                memory.heapBytes() / BYTES_PER_MEGABYTE,
                names,
                Math.max(1, (long) (memory.half() / bytesPerKey)),
                log ? " For a sliding-log, you can also lower the rate, or use sliding-window." : ""));
    }

    /** Every value that is set, so that the log of a deployment shows what is in force. */
    private static String describe(ConfiguredLimit limit) {
        StringBuilder text =
                new StringBuilder(limit.limit().toString()).append(", policy ").append(PropertyText.of(limit.policy()));
        if (limit.policy() == Policy.WAIT) {
            text.append(" up to ").append(PropertyText.of(Duration.ofNanos(limit.maxWaitNanos())));
        } else if (limit.enforcedMaxWaitNanos() > 0) {
            append(text, "max-wait ", Duration.ofNanos(limit.enforcedMaxWaitNanos()));
        }
        Map<LimitProperty, Object> values = limit.values();
        append(text, "key ", values.get(LimitProperty.KEY));
        if (!"memory".equals(values.get(LimitProperty.BACKEND))) {
            append(text, "on ", values.get(LimitProperty.BACKEND));
        }
        append(text, "on-failure ", values.get(LimitProperty.ON_FAILURE));
        append(text, "max-overshoot ", values.get(LimitProperty.MAX_OVERSHOOT));
        if (!limit.tiers().isEmpty()) {
            text.append(", tiers ")
                    .append(limit.tiers().keySet().stream().sorted().toList());
        }
        values.forEach((property, value) -> {
            if (!SHOWN.contains(property) && !value.equals(DEFAULTS.get(property))) {
                append(text, property.kebab() + " ", value);
            }
        });
        text.append(" (").append(limit.place());
        if (limit.hasDefaults()) {
            text.append(", with rate-limit.defaults");
        }
        return text.append(')').toString();
    }

    private static void append(StringBuilder text, String name, @Nullable Object value) {
        if (value != null) {
            text.append(", ").append(name).append(PropertyText.text(value));
        }
    }
}
