package io.ratelimited.redis.limiter;

import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import java.time.Duration;
import java.time.Instant;
import java.time.ZoneId;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;
import java.util.ArrayList;
import java.util.List;

/**
 * What the script of {@code FIXED_WINDOW} must know of a time zone: the offset from UTC before, and after, each change
 * of the clocks in the years around now. The script picks by the server's time, so that a wrong clock here does no harm.
 * Whole periods by which summer time moves the clocks do not move the windows, as in memory.
 */
final class ZoneOffsets {

    /** Microseconds. */
    private static final long SECOND = 1_000_000;

    private static final Duration AROUND = Duration.ofDays(400);
    private static final Duration REFRESH = Duration.ofHours(1);

    private final ZoneRules rules;
    /** Microseconds. */
    private final long period;

    private final Duration ahead;
    private final Ticker ticker;
    private volatile Known known;

    private record Known(List<String> arguments, long until) {}

    ZoneOffsets(Limit limit, Ticker ticker) {
        ZoneId zone = limit.zone();
        Duration period = limit.rate().period();
        this.rules = zone.getRules();
        this.period = LimitTerms.micros(period);
        this.ahead = AROUND.plus(period.multipliedBy(2));
        this.ticker = ticker;
        this.known = read();
    }

    List<String> arguments() {
        Known current = known;
        if (current.until - ticker.nanos() < 0) {
            current = read();
            known = current;
        }
        return current.arguments;
    }

    private Known read() {
        List<String> arguments = new ArrayList<>();
        long nanos = ticker.epochNanos();
        Instant now = Instant.ofEpochSecond(Math.floorDiv(nanos, 1_000_000_000L), Math.floorMod(nanos, 1_000_000_000L));
        Instant at = now.minus(ahead);
        arguments.add(offset(at));
        ZoneOffsetTransition next = rules.nextTransition(at);
        while (next != null && next.getInstant().isBefore(now.plus(ahead))) {
            arguments.add(Long.toString(next.toEpochSecond() * SECOND));
            arguments.add(offset(next.getInstant()));
            next = rules.nextTransition(next.getInstant());
        }
        arguments.add("");
        return new Known(List.copyOf(arguments), ticker.nanos() + REFRESH.toNanos());
    }

    private String offset(Instant at) {
        long standard = rules.getStandardOffset(at).getTotalSeconds() * SECOND;
        long total = rules.getOffset(at).getTotalSeconds() * SECOND;
        return Long.toString(standard + (total - standard) % period);
    }
}
