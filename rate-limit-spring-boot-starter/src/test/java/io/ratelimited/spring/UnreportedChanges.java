package io.ratelimited.spring;

import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.springframework.boot.logging.LogLevel;
import org.springframework.boot.logging.LoggingSystem;

/** Leaves out the line of each change: ten thousand of them take longer to be written than to be made. */
public final class UnreportedChanges implements BeforeEachCallback, AfterEachCallback {

    private static final String LOGGER = "io.ratelimited.spring.limit.ChangeReports";

    private final LoggingSystem logging = LoggingSystem.get(getClass().getClassLoader());

    @Override
    public void beforeEach(ExtensionContext context) {
        logging.setLogLevel(LOGGER, LogLevel.WARN);
    }

    @Override
    public void afterEach(ExtensionContext context) {
        logging.setLogLevel(LOGGER, null);
    }
}
