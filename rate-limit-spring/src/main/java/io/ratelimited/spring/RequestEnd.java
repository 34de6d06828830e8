package io.ratelimited.spring;

import java.util.concurrent.CancellationException;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/** The end of a web request, which may come after the call that returned its result, and before its response is complete. */
public interface RequestEnd {

    /**
     * Runs an action when the response has ended, if the response is made of a result after the method that returned it: of
     * a body that is a stream, of a response of a handler function, or of a result that Spring MVC awaits.
     *
     * @param action takes the outcome of the result, its value or its error; a stream itself is its value. The error of
     *     a response that was aborted is a {@link CancellationException}
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
}
