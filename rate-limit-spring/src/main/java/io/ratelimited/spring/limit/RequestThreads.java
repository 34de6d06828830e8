package io.ratelimited.spring.limit;

import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/**
 * The threads that serve requests. Where they are a bounded pool, callers that sleep in them keep all other requests out:
 * half of them stay free from all waits, those of methods and of outgoing calls together. Thread-safe.
 */
public final class RequestThreads {

    /** As many as needed. */
    public static final RequestThreads UNBOUNDED = new RequestThreads(0);

    private static final int DEFAULT_MAX_WAITING = 1000;

    private final int number;
    private final AtomicInteger sleeping;

    private RequestThreads(int number, AtomicInteger sleeping) {
        this.number = number;
        this.sleeping = sleeping;
    }

    /** @param number 0 where there are as many as needed */
    public RequestThreads(int number) {
        this(number, new AtomicInteger());
    }

    /** Returns how many there are; 0 where there are as many as needed. */
    public int number() {
        return number;
    }

    /** Returns these, or others if there are fewer of them; calls that sleep already count. */
    RequestThreads orFewer(RequestThreads others) {
        return others.half() < half()
                ? new RequestThreads(others.number, number == 0 ? others.sleeping : sleeping)
                : this;
    }

    /**
     * Lets a caller sleep in its thread, until it {@link #leave leaves}.
     *
     * @param stated the number that a property lets sleep at once, if that is more than half of the threads
     * @return false when so many sleep already
     */
    public boolean tryEnter(int stated) {
        int most = Math.max(half(), stated);
        return number == 0 || sleeping.getAndUpdate(now -> now < most ? now + 1 : now) < most;
    }

    /** Lets a caller leave that has slept. */
    public void leave() {
        if (number > 0) {
            sleeping.decrementAndGet();
        }
    }

    /** Returns how many may sleep so that half of the threads are left for other requests. */
    public int half() {
        return number == 0 ? Integer.MAX_VALUE : Math.max(1, number / 2);
    }

    /** The default of {@code max-waiting} that leaves half of the threads; null if that of the core does. */
    @Nullable
    Integer maxWaiting() {
        return half() < DEFAULT_MAX_WAITING ? half() : null;
    }
}
