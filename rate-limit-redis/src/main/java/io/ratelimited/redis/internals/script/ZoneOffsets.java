package io.ratelimited.redis.internals.script;

import io.ratelimited.core.Limit;
import io.ratelimited.core.Ticker;
import java.time.Duration;
import java.time.Instant;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * The offsets of a time zone from UTC for the script of {@code FIXED_WINDOW}: before and after each change of the clocks in
 * the years around now. The script picks by the server's time, so that a wrong clock here does no harm. Whole periods by
 * which the clocks have been moved since 1970 do not move the windows, as in memory. Thread-safe.
 */
final class ZoneOffsets {

    /** Microseconds. */
    private static final long SECOND = 1_000_000;

    private final ZoneRules rules;
    private final Duration period;
    private final Ticker ticker;
    private volatile Known known;

    private record Known(List<String> arguments, long until) {}

    ZoneOffsets(Limit limit, Ticker ticker) {
        this.rules = limit.zone().getRules();
        this.period = limit.rate().period();
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
        Instant now = Instant.EPOCH.plusNanos(ticker.epochNanos());
        Duration around = Duration.ofDays(400).plus(period.multipliedBy(2));
        List<String> arguments = new ArrayList<>();
        arguments.add(offset(now.minus(around)));
        ZoneOffsetTransition next = rules.nextTransition(now.minus(around));
        while (next != null && next.getInstant().isBefore(now.plus(around))) {
            arguments.add(Long.toString(next.toEpochSecond() * SECOND));
            arguments.add(offset(next.getInstant()));
            next = rules.nextTransition(next.getInstant());
        }
        arguments.add("");
        return new Known(List.copyOf(arguments), ticker.nanos() + TimeUnit.HOURS.toNanos(1));
    }

    private String offset(Instant at) {
        long standard = rules.getStandardOffset(Instant.EPOCH).getTotalSeconds() * SECOND;
        long total = rules.getOffset(at).getTotalSeconds() * SECOND;
        return Long.toString(standard + (total - standard) % ScriptFamily.micros(period));
    }
}
