package io.ratelimited.redis.simulation;

import java.util.ArrayList;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** The handler of an application's log, which sees failures that the backend reports there, and may throw. */
final class LogProbe extends Handler implements AutoCloseable {

    private final Logger logger = Logger.getLogger("io.ratelimited.redis.RedisBackend");
    private final List<String> failures = new ArrayList<>();
    private boolean throwing;

    LogProbe() {
        logger.setUseParentHandlers(false);
        logger.setLevel(Level.FINE);
        logger.addHandler(this);
    }

    void begin() {
        throwing = false;
        failures.clear();
    }

    void throwing(boolean value) {
        throwing = value;
    }

    List<String> failures() {
        return failures;
    }

    @Override
    public void publish(LogRecord line) {
        if (line.getLevel().intValue() < Level.INFO.intValue() && line.getThrown() != null) {
            failures.add(line.getMessage() + ": " + line.getThrown());
        }
        if (throwing) {
            throw new IllegalStateException("a handler of the application");
        }
    }

    @Override
    public void flush() {}

    @Override
    public void close() {
        logger.removeHandler(this);
        logger.setLevel(null);
        logger.setUseParentHandlers(true);
    }
}
