package io.ratelimited.spring.internals.call;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.internals.limit.RequestThreads;
import io.ratelimited.spring.internals.limit.Sleeper;
import io.ratelimited.spring.internals.text.LogText;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import java.util.function.Supplier;

/**
 * The place where calls sleep that wait with a thread, for limits or others: never on an event loop, and in a thread of a
 * pool that serves requests only while half of those are left. Thread-safe.
 */
public final class CallerThreads {

    private static final LogText.Lines LOG = LogText.lines(CallerThreads.class);

    private final Supplier<RequestThreads> threads;
    /** Names of the waiters whose calls have been refused on an event loop. */
    private final Set<String> refusedOnEventLoops = ConcurrentHashMap.newKeySet();

    /** @param threads returns those that the calling thread is of */
    CallerThreads(Supplier<RequestThreads> threads) {
        this.threads = threads;
    }

    /** Returns whether the calling thread is one that may sleep. */
    boolean mayCurrentSleep() {
        return !EventLoops.isCurrentThread();
    }

    /**
     * The threads of the kind that the calling thread is of: those that serve requests, or any number. A call that sleeps
     * enters and leaves the same object.
     */
    RequestThreads seats() {
        return threads.get();
    }

    /** Warns once that a policy cannot be applied in the calling thread. */
    void warnOfEventLoop(String waiter, String remedy) {
        if (refusedOnEventLoops.add(waiter)) {
            LOG.warn(waiter + " has the policy WAIT, but thread "
                    + Thread.currentThread().getName()
                    + " is an event loop and must not block: its calls over the limit are rejected immediately. "
                    + remedy);
        }
    }

    /**
     * Waits in the calling thread for an attempt that waits without one. Where the thread must not sleep, the attempt is
     * asked not to wait.
     *
     * @param waiter the name of the waiter, for the warning
     * @param remedy for the warning that the thread is an event loop
     * @param waits whether the policy of the waiter is to wait
     * @param attempt takes whether it may wait; called again if it would wait and no more threads may sleep
     * @return the result of the attempt; of one that ends just when it is to be cancelled, too, since it may hold permits
     * @throws InterruptedException when interrupted while it waits; the attempt has been cancelled
     */
    public <T> T await(String waiter, String remedy, boolean waits, Function<Boolean, CompletableFuture<T>> attempt)
            throws InterruptedException {
        boolean onEventLoop = !mayCurrentSleep();
        RequestThreads seats = seats();
        Sleeper sleeper = new Sleeper(List.of(), List.of());
        CompletableFuture<T> result = attempt.apply(!onEventLoop && seats.mayEnter(0, sleeper));
        boolean seated = !result.isDone() && seats.tryEnter(0, sleeper);
        if (!seated && !result.isDone() && result.cancel(false)) {
            result = attempt.apply(false);
        }
        try {
            return resultOf(result);
        } catch (RateLimitExceededException ex) {
            if (waits && onEventLoop) {
                warnOfEventLoop(waiter, remedy);
            }
            throw ex;
        } finally {
            if (seated) {
                seats.leave(sleeper);
            }
        }
    }

    /**
     * Waits for a result in the calling thread.
     *
     * @return the result; of one that ends just when an interrupt is to cancel it, too
     * @throws InterruptedException when interrupted while it waits; the result has been cancelled
     */
    static <T> T resultOf(CompletableFuture<T> result) throws InterruptedException {
        try {
            return get(result);
        } catch (InterruptedException ex) {
            if (result.cancel(false)) {
                throw ex;
            }
            try {
                return get(result);
            } finally {
                Thread.currentThread().interrupt();
            }
        }
    }

    private static <T> T get(CompletableFuture<T> result) throws InterruptedException {
        try {
            return result.get();
        } catch (ExecutionException ex) {
            Throwable cause = ex.getCause();
            if (cause instanceof Error error) {
                throw error;
            }
            throw cause instanceof RuntimeException failure ? failure : new IllegalStateException(cause);
        }
    }
}
