package io.ratelimited.spring.internals.web;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Limit.Attribute;
import io.ratelimited.core.Rate;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.calendar.CalendarWindows;
import java.math.BigInteger;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.time.Instant;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/**
 * The part of the rate limit fields that does not depend on a decision. Computed once, because every response repeats it.
 *
 * @param limit the limit; one that changes is another object
 * @param isShown false for a limit that limits nothing, and for one whose number is not the caller's business: it changes by
 *     itself
 * @param name its name as a String of RFC 9651
 * @param quota number of calls of one permit that may go at once after a long rest: the {@code remaining} of a decision is
 *     never more
 * @param text its item of {@code RateLimit-Policy}; without {@code w} where that depends on the time
 * @param calendar the windows of a rate of the calendar, whose length depends on the time
 */
record QuotaPolicy(
        Limit limit,
        boolean isShown,
        String name,
        long quota,
        String text,
        @Nullable CalendarWindows calendar) {

    /** The largest Integer of RFC 9651. */
    private static final long MAX_INTEGER = 999_999_999_999_999L;

    private static final BigInteger NANOS = BigInteger.valueOf(1_000_000_000);

    /**
     * Policies by the identity of their limit. Two limits may share a slot: then each computes its policy anew when its turn
     * comes.
     */
    private static final QuotaPolicy[] CACHE = new QuotaPolicy[256];

    @SuppressWarnings("ReferenceEquality") // To compare all that a limit has would cost more than to look it up.
    static QuotaPolicy of(Limit limit) {
        int slot = System.identityHashCode(limit) & (CACHE.length - 1);
        QuotaPolicy cached = CACHE[slot];
        if (cached == null || cached.limit != limit) {
            cached = create(limit);
            CACHE[slot] = cached;
        }
        return cached;
    }

    private static QuotaPolicy create(Limit limit) {
        String name = string(limit.name());
        boolean shown = !limit.isUnlimited() && !limit.algorithm().findsItsLimit();
        long quota = shown ? quota(limit) : 0;
        String text = name + ";q=" + quota;
        if (limit.algorithm().countsCallsInFlight()) {
            text += ";qu=\"concurrent-requests\"";
        } else if (quota > 0 && limit.calendar() == null) {
            text += ";w=" + window(limit, quota);
        }
        return new QuotaPolicy(limit, shown, name, quota, text, quota > 0 ? limit.calendar() : null);
    }

    /** The item of {@code RateLimit-Policy} at the present time. */
    String text(Ticker ticker) {
        return calendar == null
                ? text
                : text + ";w=" + seconds(calendar.length(Instant.EPOCH.plusNanos(ticker.epochNanos())));
    }

    private static long quota(Limit limit) {
        if (limit.isClosed()) {
            return 0;
        }
        Algorithm algorithm = limit.algorithm();
        return Math.min(
                MAX_INTEGER,
                switch (algorithm.family()) {
                    case BUCKET -> limit.burst();
                    // One call goes at a time, and before it the calls that an idle time has stored.
                    case PACED -> algorithm.queues() || !algorithm.uses(Attribute.BURST) ? 1 : stored(limit) + 1;
                    case WINDOW -> limit.rate().permits();
                    case IN_FLIGHT -> limit.maxConcurrent();
                });
    }

    /** Whole permits: a fraction lets no call go. */
    private static long stored(Limit limit) {
        Rate rate = limit.rate();
        return limit.storesOneSecond()
                ? BigInteger.valueOf(rate.permits())
                        .multiply(NANOS)
                        .divide(BigInteger.valueOf(rate.period().toNanos()))
                        .longValue()
                : limit.burst();
    }

    /** Seconds in which the rate gives the quota, rounded up. */
    private static long window(Limit limit, long quota) {
        Duration period = limit.rate().period();
        long permits = limit.rate().permits();
        if (quota == permits) {
            return seconds(period);
        }
        BigInteger nanos = BigInteger.valueOf(quota).multiply(BigInteger.valueOf(period.toNanos()));
        BigInteger[] seconds = nanos.divideAndRemainder(NANOS.multiply(BigInteger.valueOf(permits)));
        return Math.min(MAX_INTEGER, seconds[0].longValueExact() + seconds[1].signum());
    }

    /** Whole seconds, rounded up. */
    static long seconds(Duration duration) {
        return Math.min(MAX_INTEGER, duration.getSeconds() + (duration.getNano() > 0 ? 1 : 0));
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
                text.append(String.format(Locale.ROOT, "%%%02X", unit));
            } else {
                text.append((char) unit);
            }
        }
        return text.append('"').toString();
    }
}
