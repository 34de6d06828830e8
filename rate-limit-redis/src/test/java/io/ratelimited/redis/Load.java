package io.ratelimited.redis;

import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntFunction;

/** Callers that ask again and again until closed; remembers the longest that anyone was kept. */
final class Load implements AutoCloseable {

    private final List<Thread> threads = new ArrayList<>();
    private final Map<Source, LongAdder> decisions = new EnumMap<>(Source.class);
    private final LongAdder admitted = new LongAdder();
    private final AtomicLong longestNanos = new AtomicLong();
    private final LongAdder failures = new LongAdder();
    private volatile boolean stopped;

    /** Callers that pause between calls, so that a busy machine is not mistaken for a slow limiter. */
    Load(RateLimiter limiter, int callers, IntFunction<Object> key) {
        this(limiter, callers, key, 200_000);
    }

    Load(RateLimiter limiter, int callers, IntFunction<Object> key, long pauseNanos) {
        for (Source source : Source.values()) {
            decisions.put(source, new LongAdder());
        }
        for (int i = 0; i < callers; i++) {
            int caller = i;
            Thread thread = new Thread(() -> run(limiter, key.apply(caller), pauseNanos), "load-" + i);
            thread.setDaemon(true);
            thread.start();
            threads.add(thread);
        }
    }

    private void run(RateLimiter limiter, Object key, long pauseNanos) {
        while (!stopped) {
            long begin = System.nanoTime();
            try {
                Reservation reservation = limiter.reserve(key, 1, 0);
                decisions.get(reservation.decision().source()).increment();
                if (!reservation.isRefused()) {
                    admitted.increment();
                }
            } catch (RuntimeException ex) {
                failures.increment();
            }
            long taken = System.nanoTime() - begin;
            longestNanos.accumulateAndGet(taken, Math::max);
            if (pauseNanos > 0) {
                LockSupport.parkNanos(pauseNanos);
            }
        }
    }

    long decisions(Source source) {
        return decisions.get(source).sum();
    }

    long decisions() {
        return decisions.values().stream().mapToLong(LongAdder::sum).sum();
    }

    long admitted() {
        return admitted.sum();
    }

    long failures() {
        return failures.sum();
    }

    /** Since the last call of this method. */
    long longestMillis() {
        return longestNanos.getAndSet(0) / 1_000_000;
    }

    @Override
    public void close() {
        stopped = true;
        for (Thread thread : threads) {
            try {
                thread.join();
            } catch (InterruptedException ex) {
                throw new IllegalStateException(ex);
            }
        }
    }
}
