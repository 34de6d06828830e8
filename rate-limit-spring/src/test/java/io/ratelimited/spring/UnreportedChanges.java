package io.ratelimited.spring;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.slf4j.LoggerFactory;

/** Leaves out the line of each change: ten thousand of them take longer to be written than to be made. */
public final class UnreportedChanges implements BeforeEachCallback, AfterEachCallback {

    private final Logger reports =
            (Logger) LoggerFactory.getLogger("io.ratelimited.spring.internals.limit.ChangeReports");

    @Override
    public void beforeEach(ExtensionContext context) {
        reports.setLevel(Level.WARN);
    }

    @Override
    public void afterEach(ExtensionContext context) {
        reports.setLevel(null);
    }
}
