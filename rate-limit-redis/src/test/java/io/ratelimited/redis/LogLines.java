package io.ratelimited.redis;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

/** The lines that the backends of a test log. */
public final class LogLines extends Handler implements BeforeEachCallback, AfterEachCallback {

    private static final Logger LOGGER = Logger.getLogger(RedisBackend.class.getName());

    /** A thread of each backend writes what nobody waits for, and ends when the backend is closed and all is written. */
    private static final String WRITER = "rate-limit-redis-log";

    private final List<String> lines = new CopyOnWriteArrayList<>();
    private final List<Level> levels = new CopyOnWriteArrayList<>();

    public List<String> all() {
        return lines;
    }

    public List<Level> levels() {
        return levels;
    }

    @Override
    public void beforeEach(ExtensionContext context) {
        RedisProcess.until(LogLines::othersHaveWritten, "the lines of other tests are written", Duration.ofMinutes(1));
        LOGGER.addHandler(this);
    }

    private static boolean othersHaveWritten() {
        return Thread.getAllStackTraces().keySet().stream()
                .noneMatch(thread -> thread.getName().equals(WRITER));
    }

    @Override
    public void afterEach(ExtensionContext context) {
        LOGGER.removeHandler(this);
    }

    @Override
    public void publish(LogRecord line) {
        levels.add(line.getLevel());
        lines.add(line.getMessage());
    }

    @Override
    public void flush() {}

    @Override
    public void close() {}
}
