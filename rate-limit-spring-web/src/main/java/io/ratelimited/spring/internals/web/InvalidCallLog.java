package io.ratelimited.spring.internals.web;

import io.ratelimited.core.Ticker;
import io.ratelimited.spring.internals.expression.InvalidCallException;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.text.OncePerMinute;

/** Logs calls with values that no limit can be asked with, once a minute and expression: a caller can send any number of them. */
public final class InvalidCallLog {

    private static final LogText.Lines LOG = LogText.lines(InvalidCallLog.class);

    /** By their expressions. */
    private final OncePerMinute<String> failures;

    public InvalidCallLog(Ticker ticker) {
        this.failures = new OncePerMinute<>(ticker);
    }

    /** Logs the rejection if it is the first of its minute. */
    public void log(InvalidCallException invalid) {
        if (failures.isDue(invalid.expression())) {
            LOG.warn(invalid.getMessage() + ". Further failures are logged once per minute.");
        }
    }
}
