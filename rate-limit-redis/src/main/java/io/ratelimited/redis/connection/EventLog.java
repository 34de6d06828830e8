package io.ratelimited.redis.connection;

import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * The log of what becomes of the connection, written by a thread of its own: a handler that blocks or throws holds up
 * nobody. What does not fit into the queue is dropped.
 */
final class EventLog implements AutoCloseable {

    /** The log has the name of the class that users know. */
    private static final Logger LOG = System.getLogger("io.ratelimited.redis.RedisBackend");

    private static final int MOST = 64;

    private final ThreadPoolExecutor writer = new ThreadPoolExecutor(
            1,
            1,
            1,
            TimeUnit.SECONDS,
            new ArrayBlockingQueue<>(MOST),
            task -> {
                Thread thread = new Thread(task, "rate-limit-redis-log");
                thread.setDaemon(true);
                return thread;
            },
            new ThreadPoolExecutor.DiscardPolicy());

    EventLog() {
        writer.allowCoreThreadTimeOut(true);
    }

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

    /** Writes what waits, and ends. */
    @Override
    public void close() {
        writer.shutdown();
    }
}
