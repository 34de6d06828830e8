package io.ratelimited.spring.internals.web.servlet;

import jakarta.servlet.http.HttpServletRequest;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.concurrent.TimeoutException;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.springframework.web.context.request.NativeWebRequest;
import org.springframework.web.context.request.async.CallableProcessingInterceptor;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.context.request.async.DeferredResultProcessingInterceptor;
import org.springframework.web.context.request.async.WebAsyncManager;
import org.springframework.web.context.request.async.WebAsyncTask;
import org.springframework.web.context.request.async.WebAsyncUtils;

/** The outcome of a result that Spring MVC awaits: its value, or its error, which the handler method did not throw. */
final class AsyncOutcome implements CallableProcessingInterceptor, DeferredResultProcessingInterceptor {

    private final Object returned;
    private volatile boolean started;
    /** Whether a timeout or an error of the connection has come before the result; an interrupted task still has one then. */
    private volatile boolean aborted;
    /** Whether that was a timeout. */
    private volatile boolean timedOut;
    /** Null until it is known. */
    private volatile @Nullable Known known;

    private record Known(@Nullable Object value, @Nullable Throwable error) {}

    private AsyncOutcome(Object returned) {
        this.returned = returned;
    }

    /** The outcome of the result that a handler method of the request has returned, before Spring MVC handles it. */
    static AsyncOutcome of(Object returned, HttpServletRequest request) {
        AsyncOutcome outcome = new AsyncOutcome(returned);
        WebAsyncManager manager = WebAsyncUtils.getAsyncManager(request);
        manager.registerCallableInterceptor(outcome, outcome);
        manager.registerDeferredResultInterceptor(outcome, outcome);
        return outcome;
    }

    @Override
    public <T> void preProcess(NativeWebRequest request, Callable<T> task) {
        started = true;
    }

    @Override
    public <T> void preProcess(NativeWebRequest request, DeferredResult<T> result) {
        started = true;
    }

    @Override
    public <T> void postProcess(NativeWebRequest request, Callable<T> task, @Nullable Object result) {
        ended(result);
    }

    @Override
    public <T> void postProcess(NativeWebRequest request, DeferredResult<T> deferred, @Nullable Object result) {
        ended(result);
    }

    @Override
    public <T> Object handleTimeout(NativeWebRequest request, Callable<T> task) {
        timedOut = true;
        return aborted();
    }

    @Override
    public <T> Object handleError(NativeWebRequest request, Callable<T> task, Throwable failure) {
        return aborted();
    }

    @Override
    public <T> boolean handleTimeout(NativeWebRequest request, DeferredResult<T> result) {
        timedOut = true;
        aborted();
        return true;
    }

    @Override
    public <T> boolean handleError(NativeWebRequest request, DeferredResult<T> result, Throwable failure) {
        aborted();
        return true;
    }

    /** The result of a handler of timeouts that leaves the answer to others. */
    private Object aborted() {
        aborted = true;
        return CallableProcessingInterceptor.RESULT_NONE;
    }

    private void ended(@Nullable Object result) {
        known = result instanceof Throwable error ? new Known(value(null), error) : new Known(value(result), null);
    }

    /** A stream has none; it may know itself what it has written. */
    boolean hasValue() {
        return returned instanceof Callable || returned instanceof DeferredResult || returned instanceof WebAsyncTask;
    }

    private @Nullable Object value(@Nullable Object result) {
        return hasValue() ? result : returned;
    }

    /** The failure of a response that Spring MVC has gone on with; null if there is none, or only a timeout. */
    @Nullable
    Throwable failure() {
        Known outcome = known;
        if (outcome != null && outcome.error != null) {
            return outcome.error;
        }
        return aborted && !timedOut ? unfinished() : null;
    }

    /** A cancellation for the cost of the call; its cause says whether the time was over. */
    private CancellationException unfinished() {
        CancellationException unfinished =
                new CancellationException("the response ended before its result was available");
        if (timedOut) {
            unfinished.initCause(new TimeoutException("the result timed out"));
        }
        return unfinished;
    }

    /** Returns whether the result, or the end of a stream, is not known yet. */
    boolean isAwaited() {
        return started && known == null && !aborted;
    }

    /**
     * The response has ended.
     *
     * @param action takes the value or the error; a response that ended sooner than the result was cancelled
     */
    void report(BiConsumer<@Nullable Object, @Nullable Throwable> action) {
        Known outcome = known;
        if (outcome != null && !aborted) {
            action.accept(outcome.value, outcome.error);
        } else if (started) {
            action.accept(value(null), unfinished());
        } else {
            action.accept(returned, null);
        }
    }
}
