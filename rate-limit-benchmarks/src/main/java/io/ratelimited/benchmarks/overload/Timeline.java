package io.ratelimited.benchmarks.overload;

import io.ratelimited.core.testing.ManualTicker;
import java.util.Comparator;
import java.util.PriorityQueue;

/** Events in virtual time, one after the other. Times are nanoseconds since the begin. */
final class Timeline {

    private record Event(long at, long number, Runnable task) {}

    private final ManualTicker ticker = new ManualTicker();
    private final PriorityQueue<Event> events =
            new PriorityQueue<>(Comparator.comparingLong(Event::at).thenComparingLong(Event::number));
    private long number;
    private long now;

    ManualTicker ticker() {
        return ticker;
    }

    long now() {
        return now;
    }

    void at(long time, Runnable task) {
        events.add(new Event(Math.max(time, now), number++, task));
    }

    void after(long nanos, Runnable task) {
        at(now + nanos, task);
    }

    void runUntil(long end) {
        while (!events.isEmpty() && events.peek().at <= end) {
            Event next = events.remove();
            ticker.advanceNanos(next.at - now);
            now = next.at;
            next.task.run();
        }
    }
}
