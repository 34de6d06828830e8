package io.ratelimited.redis;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Decision.Source;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.LongAdder;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntFunction;

/** Callers that ask again and again until closed; remembers who was kept long, and how much of it the machine took. */
final class Load implements AutoCloseable {

    /** Between two calls of a caller, so that a busy machine is not mistaken for a slow limiter. */
    private static final long PAUSE = 1_000_000;
    /** Shorter waits are of no interest. */
    private static final long LONG = 40_000_000;

    private final List<Thread> threads = new ArrayList<>();
    private final Map<Source, LongAdder> decisions = new EnumMap<>(Source.class);
    private final LongAdder admitted = new LongAdder();
    private final LongAdder failures = new LongAdder();
    private final Queue<Wait> waits = new ConcurrentLinkedQueue<>();
    private final Stalls stalls = new Stalls();
    private volatile boolean stopped;

    /** A call that took long. */
    private record Wait(long begin, long end) {

        /** Without what the machine took. */
        long ofLimiter(Stalls stalls) {
            return end - begin - stalls.between(begin, end);
        }
    }

    Load(RateLimiter limiter, int callers, IntFunction<Object> key) {
        for (Source source : Source.values()) {
            decisions.put(source, new LongAdder());
        }
        for (int i = 0; i < callers; i++) {
            int caller = i;
            Thread thread = new Thread(() -> run(limiter, key.apply(caller)), "load-" + i);
            thread.setDaemon(true);
            thread.start();
            threads.add(thread);
        }
    }

    private void run(RateLimiter limiter, Object key) {
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
            long end = System.nanoTime();
            if (end - begin > LONG) {
                waits.add(new Wait(begin, end));
            }
            LockSupport.parkNanos(PAUSE);
        }
    }

    long decisions(Source source) {
        return decisions.get(source).sum();
    }

    long admitted() {
        return admitted.sum();
    }

    long failures() {
        return failures.sum();
    }

    /** Forgets who has waited so far: from now on the code is loaded. */
    void begin() {
        waits.clear();
    }

    /** What the machine took since an instant. */
    long stolenSince(long begin) {
        return stalls.between(begin, System.nanoTime());
    }

    /** Nobody has waited for longer than promised, but for what the machine took. */
    void assertNobodyWaitedLongerThan(long millis, String what) {
        long longest = 0;
        long ofLimiter = 0;
        for (Wait wait : waits) {
            longest = Math.max(longest, wait.end - wait.begin);
            ofLimiter = Math.max(ofLimiter, wait.ofLimiter(stalls));
        }
        System.out.printf(
                "WAIT %s: longest %d ms, without what the machine took %d ms, of %,d calls%n",
                what,
                longest / 1_000_000,
                ofLimiter / 1_000_000,
                decisions.values().stream().mapToLong(LongAdder::sum).sum());
        assertThat(ofLimiter / 1_000_000).as(what).isLessThanOrEqualTo(millis);
    }

    @Override
    public void close() {
        stopped = true;
        stalls.close();
        for (Thread thread : threads) {
            try {
                thread.join();
            } catch (InterruptedException ex) {
                throw new IllegalStateException(ex);
            }
        }
    }
}
