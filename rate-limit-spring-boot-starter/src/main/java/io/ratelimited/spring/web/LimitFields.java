package io.ratelimited.spring.web;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.spring.RateLimitProperties.Headers;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.StringJoiner;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * The limits that a response tells of, each once, with its last decision: {@code RateLimit-Policy} and {@code RateLimit}
 * of draft-ietf-httpapi-ratelimit-headers-10, which are Lists of RFC 9651, or the older {@code X-RateLimit} fields.
 * Thread-safe.
 *
 * <p>The quota {@code q} is the burst of a bucket or queue and the permits of a window; of SMOOTH_BURSTY the permits it
 * stores, at least 1; of WARM_UP the permits of the rate. The window {@code w} is how long the rate takes for them.
 */
final class LimitFields {

    /** The largest Integer of RFC 9651. */
    private static final long MOST = 999_999_999_999_999L;

    private static final BigInteger NANOS = BigInteger.valueOf(1_000_000_000);

    private final Map<String, Told> limits = new LinkedHashMap<>();

    /** A limit has decided. */
    synchronized void decided(Limit limit, Decision decision) {
        if (isTold(limit)) {
            limits.put(limit.name(), new Told(limit, decision));
        }
    }

    /** A limit applies, but nothing more is known of it than before. */
    synchronized void applies(Limit limit) {
        if (isTold(limit)) {
            limits.putIfAbsent(limit.name(), new Told(limit, null));
        }
    }

    synchronized boolean knows(String limit) {
        return limits.containsKey(limit);
    }

    /** A limit that limits nothing is not told of. */
    private static boolean isTold(Limit limit) {
        return limit.algorithm() == Algorithm.CONCURRENCY || !limit.rate().isUnlimited();
    }

    /**
     * Sets the fields.
     *
     * @param setter takes name and value, and replaces what the field held
     */
    synchronized void write(Headers style, BiConsumer<String, String> setter) {
        if (limits.isEmpty()) {
            return;
        }
        switch (style) {
            case STANDARD -> writeStandard(setter);
            case LEGACY -> writeLegacy(setter);
            case NONE -> {}
        }
    }

    private void writeStandard(BiConsumer<String, String> setter) {
        StringJoiner policies = new StringJoiner(", ");
        StringJoiner states = new StringJoiner(", ");
        Long retryAfter = retryAfter();
        for (Told told : limits.values()) {
            String name = string(told.limit.name());
            policies.add(name + told.policy());
            if (told.decision != null) {
                Long reset = reset(told.decision, retryAfter);
                states.add(name + ";r=" + told.remaining() + (reset == null ? "" : ";t=" + reset));
            }
        }
        setter.accept("RateLimit-Policy", policies.toString());
        if (states.length() > 0) {
            setter.accept("RateLimit", states.toString());
        }
    }

    /** One limit only: one that refused, else the one with the least remaining. */
    private void writeLegacy(BiConsumer<String, String> setter) {
        limits.values().stream()
                .filter(told -> told.decision != null)
                .min(Comparator.comparing((Told told) -> told.isAdmitted())
                        .thenComparing(Told::remaining)
                        .thenComparing(Told::quota))
                .ifPresent(told -> {
                    setter.accept("X-RateLimit-Limit", String.valueOf(told.quota()));
                    setter.accept("X-RateLimit-Remaining", String.valueOf(told.remaining()));
                    Long reset = told.decision == null ? null : reset(told.decision, retryAfter());
                    if (reset != null) {
                        setter.accept("X-RateLimit-Reset", String.valueOf(reset));
                    }
                });
    }

    /** The soonest retry of all that refused. */
    private @Nullable Long retryAfter() {
        return limits.values().stream()
                .map(told -> told.decision == null ? null : retryAfter(told.decision))
                .filter(seconds -> seconds != null)
                .min(Comparator.naturalOrder())
                .orElse(null);
    }

    /** The value of {@code Retry-After}: whole seconds, at least 1; null when admitted, for ever, or unknown. */
    static @Nullable Long retryAfter(Decision decision) {
        Duration retryAfter = decision.retryAfter();
        return retryAfter == null || decision.never() ? null : Long.valueOf(Math.max(1, seconds(retryAfter)));
    }

    /**
     * Seconds until there is more. Retry-After must not point before it, so what would be later is cut to it for the
     * limit that refused, and left out for the others.
     */
    private static @Nullable Long reset(Decision decision, @Nullable Long retryAfter) {
        long reset = seconds(decision.reset());
        if (retryAfter == null || reset <= retryAfter) {
            return reset == 0 ? null : Long.valueOf(reset);
        }
        return decision.admitted() ? null : retryAfter;
    }

    private static long seconds(Duration duration) {
        return Math.min(MOST, duration.getSeconds() + (duration.getNano() > 0 ? 1 : 0));
    }

    /**
     * A String of RFC 9651, which is ASCII: other characters of a name are percent-encoded UTF-8, and so is the percent
     * sign, so that two names never become one.
     */
    static String string(String name) {
        StringBuilder text = new StringBuilder(name.length() + 2).append('"');
        for (byte unit : name.getBytes(StandardCharsets.UTF_8)) {
            if (unit == '"' || unit == '\\') {
                text.append('\\').append((char) unit);
            } else if (unit < ' ' || unit == 0x7F || unit == '%') {
                text.append(String.format("%%%02X", unit));
            } else {
                text.append((char) unit);
            }
        }
        return text.append('"').toString();
    }

    /** A limit and its last decision; null if it has not decided. */
    private record Told(Limit limit, @Nullable Decision decision) {

        private boolean isAdmitted() {
            return decision != null && decision.admitted();
        }

        private long remaining() {
            return decision == null ? 0 : Math.min(quota(), decision.remaining());
        }

        private String policy() {
            long quota = quota();
            if (limit.algorithm() == Algorithm.CONCURRENCY) {
                return ";q=" + quota + ";qu=\"concurrent-requests\"";
            }
            return ";q=" + quota + (quota == 0 ? "" : ";w=" + window(quota));
        }

        private long quota() {
            if (limit.algorithm() != Algorithm.CONCURRENCY && limit.rate().isClosed()) {
                return 0;
            }
            long quota = switch (limit.algorithm()) {
                case TOKEN_BUCKET, GCRA, LEAKY_BUCKET -> limit.burst();
                case SMOOTH_BURSTY -> Math.max(1, limit.burst());
                case WARM_UP, FIXED_WINDOW, SLIDING_WINDOW, SLIDING_LOG ->
                    limit.rate().permits();
                case CONCURRENCY -> limit.maxConcurrent();
            };
            return Math.min(MOST, quota);
        }

        /** Seconds in which the rate gives the quota, rounded up. */
        private long window(long quota) {
            Duration period = limit.rate().period();
            long permits = limit.rate().permits();
            if (quota == permits) {
                return seconds(period);
            }
            BigInteger nanos = BigInteger.valueOf(quota).multiply(BigInteger.valueOf(period.toNanos()));
            BigInteger[] seconds = nanos.divideAndRemainder(NANOS.multiply(BigInteger.valueOf(permits)));
            return Math.min(MOST, seconds[0].longValueExact() + seconds[1].signum());
        }
    }
}
