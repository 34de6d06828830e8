package io.ratelimited.spring.internals.web;

import io.ratelimited.core.Ticker;
import io.ratelimited.spring.internals.call.InvalidPermitsException;
import io.ratelimited.spring.internals.text.LogText;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** Logs requests for permits that no call can have, once a minute and limit: a caller can send any number of them. */
public final class InvalidPermitsLog {

    private static final LogText.Lines LOG = LogText.lines(InvalidPermitsLog.class);
    private static final long MINUTE = TimeUnit.MINUTES.toNanos(1);

    private final Ticker ticker;
    /** Time at which each limit was logged last: {@link Ticker#nanos}. */
    private final Map<String, Long> logged = new ConcurrentHashMap<>();

    public InvalidPermitsLog(Ticker ticker) {
        this.ticker = ticker;
    }

    /** Logs the rejection if it is the first of its minute. */
    public void log(InvalidPermitsException invalid) {
        long now = ticker.nanos();
        Long last = logged.putIfAbsent(invalid.limit(), now);
        if (last == null || (now - last >= MINUTE && logged.replace(invalid.limit(), last, now))) {
            LOG.warn(invalid.getMessage() + ". Further failures are logged once per minute.");
        }
    }
}
