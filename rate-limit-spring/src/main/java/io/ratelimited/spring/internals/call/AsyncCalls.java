package io.ratelimited.spring.internals.call;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.internals.threads.CallbackThreads;
import io.ratelimited.spring.internals.expression.CallResult;
import io.ratelimited.spring.internals.request.CurrentRequest;
import io.ratelimited.spring.internals.text.LogText;
import java.util.Objects;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;

/**
 * Calls that return a {@link CompletionStage}: a refusal is a failed future, and a wait does not block the caller. A
 * call that is admitted at once is made as if it had no limit: same thread, same future.
 */
public final class AsyncCalls {

    private static final LogText.Lines LOG = LogText.lines(AsyncCalls.class);

    private AsyncCalls() {}

    /** Calls a supplier under its limits; the call ends when its stage completes. */
    public static <T extends @Nullable Object> CompletableFuture<T> call(
            LimitEnforcer enforcer,
            LimitRequest[] requests,
            @Nullable CurrentRequest request,
            Callable<? extends @Nullable CompletionStage<T>> call) {
        try {
            CompletionStage<T> stage = AsyncCalls.<T>run(
                    enforcer.reserveAsync(requests, request),
                    enforcer,
                    request,
                    call::call,
                    CompletableFuture::failedFuture);
            return stage == null ? CompletableFuture.completedFuture(null) : stage.toCompletableFuture();
        } catch (Throwable ex) {
            return CompletableFuture.failedFuture(ex);
        }
    }

    /**
     * Makes a call once it is admitted.
     *
     * @param entered completes when the call is admitted or refused
     * @param request of the call; null outside of one
     * @param refused makes the result of a refused call
     */
    public static <T extends @Nullable Object> @Nullable CompletionStage<T> run(
            CompletableFuture<Admission> entered,
            LimitEnforcer enforcer,
            @Nullable CurrentRequest request,
            Body<T> body,
            Refused<T> refused)
            throws Throwable {
        if (!entered.isDone()) {
            return new Waiting<>(entered, body, refused)
                    .start(enforcer.continuations().ofCaller(request));
        }
        Admission admission;
        try {
            admission = entered.join();
        } catch (RuntimeException ex) {
            return refusal(CallResult.unwrap(ex), refused);
        }
        return start(admission, body);
    }

    /**
     * Makes an admitted call; throws its exceptions, and returns the very stage that it returns, unless the call ends
     * with that stage: then one that completes when the call has ended for its limits, too.
     */
    private static <T extends @Nullable Object> @Nullable CompletionStage<T> start(Admission admission, Body<T> body)
            throws Throwable {
        CompletionStage<T> stage;
        try {
            stage = body.start();
        } catch (Throwable ex) {
            admission.end(CallResult.of(null, ex));
            throw ex;
        }
        if (stage != null && admission.followsResult()) {
            return new Result<T>().follow(stage, admission);
        }
        admission.end(CallResult.of(null, null));
        return stage;
    }

    private static <T extends @Nullable Object> CompletionStage<T> refusal(Throwable failure, Refused<T> refused) {
        try {
            return failure instanceof RateLimitExceededException refusal
                    ? refused.instead(refusal)
                    : CompletableFuture.failedFuture(failure);
        } catch (Throwable ex) {
            return CompletableFuture.failedFuture(ex);
        }
    }

    /** Ends the wait of a call that will not be made, or gives its permits back. Never fails. */
    static void giveBack(CompletableFuture<Admission> entered) {
        try {
            if (!entered.cancel(false) && !entered.isCompletedExceptionally()) {
                entered.join().cancel();
            }
        } catch (RuntimeException | Error ex) {
            LOG.warn("the permits of a call that is not made could not be refunded", ex);
        }
    }

    /**
     * The future that the caller gets. A caller or a timeout that completes or cancels it completes or cancels the future of
     * the method, too, as without a limit: otherwise a call that nothing else ends would be in flight for ever.
     */
    private static class Result<T extends @Nullable Object> extends CallerFuture<T> {

        /** Null until the method has returned. */
        private volatile @Nullable CompletionStage<T> returned;
        /** Whether the caller ends the stage of the method. */
        private volatile boolean endedByCaller;

        /**
         * Ends with the stage.
         *
         * @param admission of a call that ends with the stage, before any reaction to its end; null if there is none
         */
        CompletableFuture<T> follow(CompletionStage<T> stage, @Nullable Admission admission) {
            returned = stage;
            stage.whenComplete((value, thrown) -> {
                Throwable failure = thrown == null ? null : CallResult.unwrap(thrown);
                try {
                    if (admission != null && endedByCaller) {
                        admission.end(CallResult.of(value, failure).asCancelled());
                    } else if (admission != null) {
                        admission.endWith(value, failure);
                    }
                } catch (RuntimeException | Error ex) {
                    // The caller must not wait for ever because a backend fails.
                    LOG.warn("the end of a call could not be reported to its limits", ex);
                }
                if (failure != null) {
                    failed(failure);
                } else {
                    succeeded(value);
                }
            });
            // If the caller has ended it before the method returned, or by CompletableFuture.completeAsync.
            whenComplete((value, failure) -> endFirst(own -> {
                if (isCancelled()) {
                    return own.cancel(true);
                }
                return failure != null ? own.completeExceptionally(failure) : own.complete(value);
            }));
            return this;
        }

        @Override
        boolean endFirst(Predicate<CompletableFuture<T>> end) {
            CompletionStage<T> stage = returned;
            if (stage == null) {
                return false;
            }
            CompletableFuture<T> own;
            try {
                own = stage.toCompletableFuture();
            } catch (UnsupportedOperationException ex) {
                return false; // a stage that only its method ends
            }
            endedByCaller = own == stage && !own.isDone();
            return end.test(own) && own == stage;
        }
    }

    /** A call that was not decided at once. */
    private static final class Waiting<T extends @Nullable Object> extends Result<T> {

        private final CompletableFuture<Admission> entered;
        private final Body<T> body;
        private final Refused<T> refused;
        /** Whether the call is made, or ended by its caller before: one of the two. */
        private final AtomicBoolean claimed = new AtomicBoolean();

        private Waiting(CompletableFuture<Admission> entered, Body<T> body, Refused<T> refused) {
            this.entered = entered;
            this.body = body;
            this.refused = refused;
        }

        private CompletableFuture<T> start(Executor later) {
            // This may be the thread of a call that has ended. An executor may block whoever gives it a task, until one
            // of its own has ended, such as that call.
            entered.whenComplete(
                    (admission, failure) -> CallbackThreads.SHARED.execute(() -> submit(later, admission, failure)));
            whenComplete((value, failure) -> giveBack()); // by CompletableFuture.completeAsync
            return this;
        }

        /** A caller that ends this future does not wait any more, for its turn or for a thread. */
        @Override
        boolean endFirst(Predicate<CompletableFuture<T>> end) {
            return !giveBack() && super.endFirst(end);
        }

        private void submit(Executor later, @Nullable Admission admission, @Nullable Throwable failure) {
            if (claimed.get()) {
                return;
            }
            try {
                later.execute(() -> decided(admission, failure));
            } catch (RuntimeException | Error ex) {
                // An application that stops takes no more tasks, and a machine may have no more threads: the reason why
                // the call is not made is known all the same.
                if (giveBack()) {
                    failed(failure == null ? ex : CallResult.unwrap(failure));
                }
            }
        }

        private void decided(@Nullable Admission admission, @Nullable Throwable failure) {
            if (!claimed.compareAndSet(false, true)) {
                return;
            }
            try {
                CompletionStage<T> stage = admission == null
                        ? refusal(CallResult.unwrap(Objects.requireNonNull(failure)), refused)
                        : AsyncCalls.start(admission, body);
                if (stage == null) {
                    succeeded(null);
                } else {
                    follow(stage, null);
                }
            } catch (Throwable ex) {
                failed(ex);
            }
        }

        /** Returns whether the call will not be made because of this. */
        private boolean giveBack() {
            if (!claimed.compareAndSet(false, true)) {
                return false;
            }
            AsyncCalls.giveBack(entered);
            return true;
        }
    }

    /** The call itself. */
    public interface Body<T extends @Nullable Object> {

        /** Makes the call. */
        @Nullable
        CompletionStage<T> start() throws Throwable;
    }

    /** The result of a refused call. */
    public interface Refused<T extends @Nullable Object> {

        /** Makes the result. */
        CompletionStage<T> instead(RateLimitExceededException refusal) throws Throwable;
    }
}
