package io.ratelimited.spring.internals.text;

import io.ratelimited.core.Ticker;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/**
 * Problems that callers can provoke any number of times, each of which is logged once a minute. Thread-safe.
 *
 * @param <T> a problem, of a small number
 */
public final class OncePerMinute<T> {

    private static final long MINUTE = TimeUnit.MINUTES.toNanos(1);

    private final Ticker ticker;
    /** Time at which each problem was logged last: {@link Ticker#nanos}. */
    private final Map<T, Long> logged = new ConcurrentHashMap<>();

    public OncePerMinute(Ticker ticker) {
        this.ticker = ticker;
    }

    /** Returns whether a problem is to be logged: the first time in its minute. */
    public boolean isDue(T problem) {
        long now = ticker.nanos();
        Long last = logged.putIfAbsent(problem, now);
        return last == null || (now - last >= MINUTE && logged.replace(problem, last, now));
    }
}
