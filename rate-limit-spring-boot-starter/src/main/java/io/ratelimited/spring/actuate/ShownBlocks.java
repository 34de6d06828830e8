package io.ratelimited.spring.actuate;

import io.ratelimited.core.BlockedKey;
import io.ratelimited.core.CanonicalKey;
import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import io.ratelimited.spring.internals.limit.ConfiguredLimit;
import io.ratelimited.spring.internals.text.PropertyText;
import java.time.Duration;
import java.time.Instant;
import java.time.temporal.ChronoUnit;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** Blocked keys as the endpoint shows them: only of limits that have blocks, or had them. Thread-safe. */
record ShownBlocks(ShownKeys keys, Ticker ticker) {

    private static final int SHOWN = 100;

    /** Adds how many keys of a limit are blocked, and those whose blocks end last. */
    void add(ConfiguredLimit limit, Map<String, Object> report) {
        List<BlockedKey> blocked =
                limit.limiters().stream().flatMap(RateLimiter::blockedKeys).toList();
        if (blocked.isEmpty()
                && limit.limiters().stream().allMatch(own -> own.limit().block() == null)) {
            return;
        }
        report.put("blocked", blocked.size());
        report.put(
                "blockedKeys",
                blocked.stream()
                        .sorted(Comparator.comparing(BlockedKey::left).reversed())
                        .limit(SHOWN)
                        .map(this::describe)
                        .toList());
    }

    private Map<String, Object> describe(BlockedKey block) {
        Map<String, Object> report = new LinkedHashMap<>();
        report.put("key", keys.show(block.key()));
        report.put("until", until(block.left()));
        report.put("left", PropertyText.seconds(block.left()));
        report.put("level", block.level());
        return report;
    }

    /** Adds whether a key is blocked, and until when. */
    void add(RateLimiter limiter, Object key, Decision decision, Map<String, Object> report) {
        if (limiter.limit().block() == null && !decision.blocked()) {
            return;
        }
        report.put("blocked", decision.blocked());
        if (decision.blocked()) {
            String text = CanonicalKey.text(key);
            limiter.blockedKeys()
                    .filter(block -> CanonicalKey.text(block.key()).equals(text))
                    .findFirst()
                    .ifPresentOrElse(
                            block -> {
                                report.put("blockedUntil", until(block.left()));
                                report.put("blockLevel", block.level());
                            },
                            // Another instance has blocked the key: the retry is not before the end of the block.
                            () -> report.put(
                                    "blockedUntil",
                                    until(Objects.requireNonNullElse(decision.retryAfter(), decision.reset()))));
        }
    }

    /** The time of the clock after a duration, rounded up to the second. */
    private String until(Duration left) {
        return Instant.EPOCH
                .plusNanos(ticker.epochNanos())
                .plus(left)
                .plusNanos(999_999_999)
                .truncatedTo(ChronoUnit.SECONDS)
                .toString();
    }
}
