package io.ratelimited.spring;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import java.lang.reflect.Method;
import java.util.List;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/** The web request of a call: keys are read from it, and headers are written to it. */
public interface CurrentRequest {

    /** Address of the client as the server resolved it, an IPv6 address reduced to its network; null if unknown. */
    @Nullable
    String clientIp();

    /** The authenticated caller; null if there is none. */
    java.security.@Nullable Principal principal();

    /** First value of a request header; null if absent. */
    @Nullable
    String header(String name);

    /** Id of the session, if there is one; never creates one. */
    @Nullable
    String session();

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
     * Runs a task of the request on this thread, where {@link Source#current()} then finds the request. Where requests
     * stay on their own thread, this only runs the task.
     */
    default void run(Runnable task) {
        task.run();
    }

    /**
     * Takes the decision of a limit on a call of this request.
     *
     * @param limit the limit that has decided
     * @param applied the limit itself, or that of the caller's tier
     * @param decision the decision, made on demand
     */
    void decided(NamedLimit limit, Limit applied, Outcome outcome, Supplier<Decision> decision);

    /**
     * Takes a limit that applies to a call of this request, but has not decided: another one refused the call before.
     *
     * @param applied the limit itself, or that of the caller's tier
     */
    default void applies(NamedLimit limit, Limit applied) {}

    /**
     * Remembers that the request has been charged by a use of a limit that charges every request only once.
     *
     * @param use the name of the use
     */
    default void charged(String use) {}

    /** Returns whether the request has been {@link #charged} by a use of a limit. */
    default boolean isCharged(String use) {
        return false;
    }

    /**
     * Runs an action when the response has ended, if the response is made of a result after the method that returned it: of
     * a body that is a stream, of a response of a handler function, or of a result that Spring MVC awaits.
     *
     * @param action takes the outcome of the result, its value or its error; a stream itself is its value. The error of
     *     a response that was aborted is a {@link java.util.concurrent.CancellationException}
     * @return whether the action will be run, once or more
     */
    default boolean endsWith(Object result, BiConsumer<@Nullable Object, @Nullable Throwable> action) {
        return false;
    }

    /**
     * Returns whether the request has been aborted and the failure of a call may come of it: its client has disconnected.
     *
     * @param failure the exception of a call of the request
     */
    default boolean isAborted(Throwable failure) {
        return false;
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
         * Prepares for a limit, before its first call: data that no limit needs costs nothing.
         *
         * @param reads whether an expression of the limit may read a word of requests, such as {@code principal}
         */
        default void prepare(Predicate<String> reads) {}

        /**
         * Prepares for a limited method whose calls block their thread.
         *
         * @param method of the class of the bean, not of an interface
         */
        default void prepareBlocking(Method method, List<NamedLimit> limits) {}
    }
}
