package io.ratelimited.spring.internals.request;

import java.lang.reflect.Method;
import java.util.concurrent.CancellationException;
import java.util.concurrent.Executor;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The web request of a call: its facts, what decisions are written to, and here its end, which may come after the call that
 * returned its result and before its response is complete, and the threads that it runs on.
 */
public interface CurrentRequest extends RequestFacts, RequestDecisions {

    /**
     * Runs an action when the response has ended, if the response is made of a result after the method that returned it: of
     * a body that is a stream, of a response of a handler function, or of a result that Spring MVC awaits.
     *
     * @param complete runs when a stream is complete, before the client can know it and perhaps before the action, with which
     *     it also runs; not run where only the end of a stream is known
     * @param action takes the outcome of the result, its value or its error; a stream itself is its value. The error of
     *     a response that was aborted is a {@link CancellationException}
     * @return whether the action will be run, once or more
     */
    default boolean endsWith(
            Object result, Runnable complete, BiConsumer<@Nullable Object, @Nullable Throwable> action) {
        return false;
    }

    /**
     * Runs an action when the request has ended, or now if it has. For the result of its handler, which Spring MVC cancels at the
     * timeout of the request only, and not if it ends before that. Ignored where the end of a request cancels the result anyway.
     */
    default void atEnd(Runnable action) {}

    /**
     * Returns whether the request has been aborted and the failure of a call may come of it: its client has disconnected.
     *
     * @param failure the exception of a call of the request
     */
    default boolean isAborted(Throwable failure) {
        return false;
    }

    /**
     * Takes the time for which the request has waited for a thread to make a call on. It belongs to the wait of that call,
     * so the next call of the request does not find it again.
     *
     * @return nanoseconds since this was asked before; 0 where requests have their thread from the start
     */
    default long takeWaitedNanos() {
        return 0;
    }

    /**
     * Returns the event loop that serves the request, on which its reactive calls go on after a wait.
     *
     * @return runs a task at once if it is called on that event loop; null where the request has none
     */
    default @Nullable Executor eventLoop() {
        return null;
    }

    /**
     * Takes what the calling thread has of the request, for a task that goes on with the request on another thread.
     *
     * @return runs tasks at once, on the thread that calls it, where {@link Source#current()} then finds the request
     */
    default Executor scopeOfThisThread() {
        return Runnable::run;
    }

    /** Finds the request of a call. */
    interface Source {

        /**
         * Finds the request of the calling thread.
         *
         * @return null outside a web request
         */
        @Nullable
        CurrentRequest current();

        /**
         * Finds the request of a subscription to a reactive type.
         *
         * @param reactorContext looks up a key in the context of the subscription; null if it is absent
         * @return null outside a web request
         */
        default @Nullable CurrentRequest current(Function<Object, @Nullable Object> reactorContext) {
            return current();
        }

        /**
         * Returns whether the calling thread is one of a pool that serves requests. A thread of another pool that has been
         * handed a request is not.
         */
        default boolean isRequestThread() {
            return false;
        }

        /**
         * Prepares for a limit, before its first call: data that no limit needs costs nothing.
         *
         * @param reads whether an expression of the limit may read a word of requests, such as {@code principal}
         */
        default void prepare(Predicate<String> reads) {}

        /**
         * Prepares for a limited method whose calls block their thread.
         *
         * @param method of the class of the bean, not of an interface
         * @param limits returns how its limits use that thread
         */
        default void prepareBlocking(Method method, Supplier<ThreadUse> limits) {}
    }
}
