package io.ratelimited.spring.internals.web;

import io.ratelimited.core.Ticker;
import io.ratelimited.spring.internals.expression.InvalidCallException;
import io.ratelimited.spring.internals.text.LogText;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** Logs calls with values that no limit can be asked with, once a minute and expression: a caller can send any number of them. */
public final class InvalidCallLog {

    private static final LogText.Lines LOG = LogText.lines(InvalidCallLog.class);
    private static final long MINUTE = TimeUnit.MINUTES.toNanos(1);

    private final Ticker ticker;
    /** Time at which each expression was logged last: {@link Ticker#nanos}. */
    private final Map<String, Long> logged = new ConcurrentHashMap<>();

    public InvalidCallLog(Ticker ticker) {
        this.ticker = ticker;
    }

    /** Logs the rejection if it is the first of its minute. */
    public void log(InvalidCallException invalid) {
        long now = ticker.nanos();
        Long last = logged.putIfAbsent(invalid.expression(), now);
        if (last == null || (now - last >= MINUTE && logged.replace(invalid.expression(), last, now))) {
            LOG.warn(invalid.getMessage() + ". Further failures are logged once per minute.");
        }
    }
}
