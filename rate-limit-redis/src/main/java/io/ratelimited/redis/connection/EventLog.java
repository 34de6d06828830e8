package io.ratelimited.redis.connection;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * The log of what becomes of the connection. A handler that blocks or throws holds up nobody: the entries are written by an
 * executor for them alone, which drops what it has no room for.
 */
record EventLog(Executor writer) {

    /** The log has the name of the class that users know. */
    private static final Logger LOG = System.getLogger("io.ratelimited.redis.RedisBackend");

    void warn(String message) {
        write(Level.WARNING, message, null);
    }

    void debug(String message, Throwable failure) {
        write(Level.DEBUG, message, failure);
    }

    private void write(Level level, String message, @Nullable Throwable failure) {
        writer.execute(() -> {
            try {
                LOG.log(level, message, failure);
            } catch (RuntimeException | Error ex) {
                // A handler of the application: there is nowhere to report this to.
            }
        });
    }
}
