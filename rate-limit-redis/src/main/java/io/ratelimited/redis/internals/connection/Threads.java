package io.ratelimited.redis.internals.connection;

import io.ratelimited.core.Ticker;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.time.Instant;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.FutureTask;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The environment of a connection: the time, a timer, and threads. Nothing else in this package reads the system's clock,
 * starts a thread or draws a random number, so that a test can run a connection in one thread and on a time of its own. The
 * threads go on whatever a task throws.
 */
public final class Threads implements AutoCloseable {

    /** The log has the name of the class that users know. */
    private static final Logger LOG = System.getLogger("io.ratelimited.redis.RedisBackend");

    private static final int MAX_BLOCKED = 8;
    /** Calls that wait for a thread, as while all of them look up names. */
    private static final int MAX_WAITING = 1024;

    private static final int MAX_LOG_ENTRIES = 64;

    private final Ticker clock;
    private final Executor blocking;
    private final Executor log;
    private final Runnable onClose;
    private volatile boolean closed;

    /**
     * @param clock the time, and the timer; its tasks do not block
     * @param blocking runs tasks that may block, such as looking up a name before connecting
     * @param log writes the log
     */
    public Threads(Ticker clock, Executor blocking, Executor log) {
        this(clock, blocking, log, () -> {});
    }

    private Threads(Ticker clock, Executor blocking, Executor log, Runnable onClose) {
        this.clock = clock;
        this.blocking = blocking;
        this.log = log;
        this.onClose = onClose;
    }

    /** The system's clock, two threads of a timer, up to eight for tasks that may block, and one for the log. */
    public static Threads real() {
        ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(
                2, named("rate-limit-redis-timer"), new ThreadPoolExecutor.DiscardPolicy());
        timer.setRemoveOnCancelPolicy(true);
        return real(new Timer(timer), timer::shutdownNow);
    }

    /** The threads of {@link #real()} on another clock. */
    static Threads real(Ticker clock, Runnable onClose) {
        ThreadPoolExecutor blocking =
                pool(MAX_BLOCKED, new LinkedBlockingQueue<>(MAX_WAITING), "rate-limit-redis-connecting");
        ThreadPoolExecutor log = pool(1, new ArrayBlockingQueue<>(MAX_LOG_ENTRIES), "rate-limit-redis-log");
        return new Threads(clock, blocking, log, () -> {
            onClose.run();
            blocking.shutdownNow();
            // Writes the lines that wait, and ends.
            log.shutdown();
        });
    }

    private static ThreadPoolExecutor pool(int threads, BlockingQueue<Runnable> queue, String name) {
        ThreadPoolExecutor pool = new ThreadPoolExecutor(
                threads, threads, 1, TimeUnit.SECONDS, queue, named(name), new ThreadPoolExecutor.DiscardPolicy());
        pool.allowCoreThreadTimeOut(true);
        return pool;
    }

    private static ThreadFactory named(String name) {
        return task -> {
            Thread thread = new Thread(task, name);
            thread.setDaemon(true);
            return thread;
        };
    }

    /** The system's clock with a timer of our own: that of the JVM runs its tasks in the common pool, which may be busy. */
    private record Timer(ScheduledThreadPoolExecutor timer) implements Ticker {

        @Override
        public long nanos() {
            return Ticker.system().nanos();
        }

        @Override
        public long epochNanos() {
            return Ticker.system().epochNanos();
        }

        @Override
        public void sleepUntil(long deadline) throws InterruptedException {
            Ticker.system().sleepUntil(deadline);
        }

        @Override
        public Runnable schedule(long deadline, Runnable task) {
            Future<?> scheduled = timer.schedule(task, deadline - nanos(), TimeUnit.NANOSECONDS);
            return () -> scheduled.cancel(false);
        }
    }

    /** Monotonic time in nanoseconds. */
    public long nanos() {
        return clock.nanos();
    }

    /** {@link #nanos} of a connection of Lettuce, which no test runs on a time of its own. */
    static long systemNanos() {
        return Ticker.system().nanos();
    }

    /** Holds this thread for so few nanoseconds that to sleep would take longer. */
    static void spin(long nanos) {
        long end = systemNanos() + nanos;
        while (systemNanos() - end < 0) {
            Thread.onSpinWait();
        }
    }

    Instant now() {
        long nanos = clock.epochNanos();
        return Instant.ofEpochSecond(Math.floorDiv(nanos, 1_000_000_000L), Math.floorMod(nanos, 1_000_000_000L));
    }

    /** Writes one line to the log, whatever the text quotes; it is made by the executor of the log, too. A handler that blocks or throws holds up nobody. */
    void warn(Supplier<String> text) {
        log(Level.WARNING, text, null);
    }

    /** As {@link #warn(Supplier)}, for events that are in order. */
    void info(Supplier<String> text) {
        log(Level.INFO, text, null);
    }

    /** {@link #warn(Supplier)} with a stack. */
    void warn(Supplier<String> text, Throwable stack) {
        log(Level.WARNING, text, stack);
    }

    private void log(Level level, Supplier<String> text, @Nullable Throwable failure) {
        log.execute(() -> {
            try {
                LOG.log(level, Replies.line(text.get()), failure);
            } catch (RuntimeException | Error ex) {
                // A handler of the application: there is nowhere to report this to.
            }
        });
    }

    /** Blocks until done, at the longest for the timeout, after which the future has failed. Keeps an interrupt for later. */
    <T> T await(CompletableFuture<T> future, long timeoutNanos) throws ExecutionException {
        long deadline = nanos() + timeoutNanos;
        boolean interrupted = false;
        try {
            while (true) {
                try {
                    return future.get(Math.max(0, deadline - nanos()), TimeUnit.NANOSECONDS);
                } catch (InterruptedException ex) {
                    interrupted = true;
                } catch (TimeoutException ex) {
                    future.completeExceptionally(new TimeoutException("Redis did not decide in time"));
                }
            }
        } finally {
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    /**
     * Runs a task that does not block.
     *
     * @return cancels the task if it has not begun
     */
    Runnable later(long millis, Runnable task) {
        return at(clock.nanos() + TimeUnit.MILLISECONDS.toNanos(millis), task);
    }

    /** {@link #later}, at a value of {@link #nanos}. */
    Runnable at(long deadline, Runnable task) {
        return closed ? () -> {} : clock.schedule(deadline, () -> run(task));
    }

    /** Runs a task that does not block, again and again. */
    void every(long millis, Runnable task) {
        later(millis, () -> {
            run(task);
            every(millis, task);
        });
    }

    /** Runs a task now, unless this is closed. */
    void run(Runnable task) {
        if (!closed) {
            try {
                task.run();
            } catch (RuntimeException | Error ex) {
                failed(ex);
            }
        }
    }

    void failed(Throwable failure) {
        log(Level.DEBUG, () -> "a task of the limits on Redis failed", failure);
    }

    /**
     * Calls a task that may block or throw.
     *
     * @param boundMillis after which the result has failed, whether or not the task has begun, and a thread that the task
     *     still blocks is interrupted: there are few
     * @param discard takes a result that arrives after that
     */
    <T> CompletableFuture<T> call(
            Supplier<? extends CompletionStage<T>> task, long boundMillis, Consumer<? super T> discard) {
        CompletableFuture<T> result = new CompletableFuture<>();
        Runnable begin = () -> Replies.of(task).whenComplete((value, failure) -> {
            if (failure != null) {
                result.completeExceptionally(Replies.cause(failure));
            } else if (!result.complete(value)) {
                discard.accept(value);
            }
        });
        FutureTask<?> begun = new FutureTask<>(begin, null);
        Runnable cancelBound = later(boundMillis, () -> {
            result.completeExceptionally(new TimeoutException("no response within " + boundMillis + " ms"));
            begun.cancel(true);
        });
        result.whenComplete((value, failure) -> cancelBound.run());
        blocking.execute(begun);
        return result;
    }

    /** No task begins any more. */
    @Override
    public void close() {
        closed = true;
        onClose.run();
    }
}
