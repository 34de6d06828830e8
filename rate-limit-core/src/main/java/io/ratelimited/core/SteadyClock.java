package io.ratelimited.core;

/**
 * The time of one limiter: a clock that steps back is held where it was. A step of less than {@link #GRAIN} goes
 * unseen, so that the latest time is written once a millisecond and not on every call; cells are safe against it.
 *
 * <p>Thread-safe: {@link #latest} is written by racing threads, and any of their values will do.
 */
final class SteadyClock {

    static final long GRAIN = 1_000_000;

    private final Ticker ticker;
    private long latest;
    private long latestOfCalendar;

    SteadyClock(Ticker ticker) {
        this.ticker = ticker;
        this.latest = ticker.nanos();
        this.latestOfCalendar = ticker.epochNanos();
    }

    Ticker ticker() {
        return ticker;
    }

    /** The time in which the cells of these terms count. */
    long now(Terms terms) {
        return terms.followsCalendar() ? calendar() : nanos();
    }

    private long nanos() {
        // To know the ticker by identity is cheaper than to ask for its class.
        long now = ticker == SystemTicker.INSTANCE ? SystemTicker.INSTANCE.nanos() : ticker.nanos();
        long ahead = now - latest;
        if (ahead > GRAIN) {
            latest = now;
        } else if (ahead < 0) {
            return latest;
        }
        return now;
    }

    private long calendar() {
        long now = ticker.epochNanos();
        long ahead = now - latestOfCalendar;
        if (ahead > GRAIN) {
            latestOfCalendar = now;
        } else if (ahead < 0) {
            return latestOfCalendar;
        }
        return now;
    }
}
