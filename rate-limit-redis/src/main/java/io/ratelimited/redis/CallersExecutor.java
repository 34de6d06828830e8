package io.ratelimited.redis;

import io.ratelimited.core.internals.threads.CallbackThreads;
import java.util.concurrent.Executor;

/**
 * Gives the code that callers have attached to asynchronous decisions to an executor of the application, which may block or
 * throw. Threads of our own give it the tasks, so that no thread of the connection is held up. They run a task that it
 * rejects, so that every caller is answered.
 */
final class CallersExecutor {

    private CallersExecutor() {}

    static Executor of(Executor executor) {
        Executor own = CallbackThreads.SHARED;
        Executor safe = orElse(executor, own);
        return executor == own ? own : task -> own.execute(() -> safe.execute(task));
    }

    /** Returns an executor that runs the tasks that one executor rejects on another. */
    static Executor orElse(Executor executor, Executor other) {
        return task -> {
            try {
                executor.execute(task);
            } catch (RuntimeException | Error ex) {
                // Whether or not the task has begun: a future runs its task once only.
                other.execute(task);
            }
        };
    }
}
