package io.ratelimited.redis.connection;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.SynchronousQueue;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import java.util.function.Supplier;

/**
 * The threads of a connection: a timer, whose tasks never block, and a few threads for what may block, such as looking up
 * a name before connecting. Whatever a task throws, the threads go on.
 */
final class Threads implements AutoCloseable {

    private static final int MOST_BLOCKED = 8;

    private final EventLog log;
    private final ScheduledThreadPoolExecutor timer =
            new ScheduledThreadPoolExecutor(1, named("rate-limit-redis-timer"), new ThreadPoolExecutor.DiscardPolicy());
    private final ThreadPoolExecutor blocking = new ThreadPoolExecutor(
            0, MOST_BLOCKED, 1, TimeUnit.SECONDS, new SynchronousQueue<>(), named("rate-limit-redis-connecting"));

    Threads(EventLog log) {
        this.log = log;
        timer.setRemoveOnCancelPolicy(true);
    }

    private static ThreadFactory named(String name) {
        return task -> {
            Thread thread = new Thread(task, name);
            thread.setDaemon(true);
            return thread;
        };
    }

    /** Runs a task that does not block. */
    Future<?> later(long millis, Runnable task) {
        return timer.schedule(guarded(task), millis, TimeUnit.MILLISECONDS);
    }

    /** Runs a task that does not block, again and again. */
    void every(long millis, Runnable task) {
        timer.scheduleWithFixedDelay(guarded(task), millis, millis, TimeUnit.MILLISECONDS);
    }

    /**
     * Calls what may block or throw.
     *
     * @param boundMillis after which the result has failed
     * @param discard is given what arrives after that
     */
    <T> CompletableFuture<T> call(
            Supplier<? extends CompletionStage<T>> task, long boundMillis, Consumer<? super T> discard) {
        CompletableFuture<T> result = new CompletableFuture<>();
        AtomicBoolean over = new AtomicBoolean();
        Future<?> bound = later(boundMillis, () -> {
            if (!over.getAndSet(true)) {
                result.completeExceptionally(new TimeoutException("no answer within " + boundMillis + " ms"));
            }
        });
        Runnable run = () -> {
            CompletionStage<T> begun;
            try {
                begun = task.get();
            } catch (RuntimeException | Error ex) {
                begun = CompletableFuture.failedFuture(ex);
            }
            begun.whenComplete((value, failure) -> {
                boolean late = over.getAndSet(true);
                bound.cancel(false);
                if (failure != null) {
                    result.completeExceptionally(Replies.cause(failure));
                } else if (late) {
                    discard.accept(value);
                } else {
                    result.complete(value);
                }
            });
        };
        try {
            blocking.execute(run);
        } catch (RejectedExecutionException ex) {
            over.set(true);
            bound.cancel(false);
            result.completeExceptionally(new TimeoutException("all threads that connect are blocked"));
        }
        return result;
    }

    /** A task whose failure does not end what runs it. */
    private Runnable guarded(Runnable task) {
        return () -> {
            try {
                task.run();
            } catch (RuntimeException | Error ex) {
                log.debug("a task of the limits on Redis failed", ex);
            }
        };
    }

    @Override
    public void close() {
        timer.shutdownNow();
        blocking.shutdownNow();
    }
}
