package io.ratelimited.redis.simulation;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.PriorityQueue;
import org.jspecify.annotations.Nullable;

/** Virtual time: whatever happens is an event, and one thread runs all of them in order. Nothing takes time by itself. */
final class World {

    private static final long MOST_EVENTS = 1_000_000;

    private final PriorityQueue<Event> events = new PriorityQueue<>();
    /** Those of the present, in the order in which they came: all others of the present came before. */
    private final ArrayDeque<Event> soon = new ArrayDeque<>();

    private final List<Throwable> failures = new ArrayList<>();
    private Runnable observer = () -> {};
    private long now;
    private long sequence;
    private long begun;

    /** Whoever runs events: a process that may be paused or killed. */
    static class Member {

        /** Nothing runs before this time. */
        private long pausedUntil;

        private boolean dead;

        final void pauseUntil(long time) {
            pausedUntil = Math.max(pausedUntil, time);
        }

        final long pausedUntil() {
            return pausedUntil;
        }

        final void kill() {
            dead = true;
        }

        final boolean isDead() {
            return dead;
        }
    }

    /** Those who are never paused: the network and whoever injects faults. */
    private static final Member NOBODY = new Member();

    private static final class Event implements Comparable<Event> {

        private final Member process;
        private final long sequence;
        private long time;
        private final Runnable task;
        private boolean cancelled;

        private Event(Member process, long time, long sequence, Runnable task) {
            this.process = process;
            this.time = time;
            this.sequence = sequence;
            this.task = task;
        }

        @Override
        public int compareTo(Event other) {
            int order = Long.compare(time, other.time);
            return order != 0 ? order : Long.compare(sequence, other.sequence);
        }
    }

    /** Runs a task after each event; it has no effect on what happens. */
    void observe(Runnable task) {
        observer = task;
    }

    /** Nanoseconds since the beginning. */
    long now() {
        return now;
    }

    Runnable at(long time, Runnable task) {
        return at(NOBODY, time, task);
    }

    /**
     * Runs a task of a process at a time.
     *
     * @return cancels the task if it has not begun
     */
    Runnable at(Member process, long time, Runnable task) {
        Event event = new Event(process, Math.max(now, time), sequence++, task);
        if (event.time == now) {
            soon.add(event);
        } else {
            events.add(event);
        }
        return () -> {
            if (!event.cancelled) {
                event.cancelled = true;
                // Most timers of the connection never run; those far ahead would fill the queue.
                events.remove(event);
            }
        };
    }

    /** Runs what happens until a time, and stops there. An event may do so too: whoever sleeps there lets all others go on. */
    void runUntil(long end) {
        for (Event next = next(end); next != null; next = next(end)) {
            if (next.cancelled || next.process.dead) {
                continue;
            }
            if (next.process.pausedUntil > next.time) {
                next.time = next.process.pausedUntil;
                events.add(next);
                continue;
            }
            now = next.time;
            if (++begun > MOST_EVENTS) {
                throw new IllegalStateException("something goes on for ever at " + now / 1e6 + " ms");
            }
            next.cancelled = true;
            try {
                next.task.run();
            } catch (RuntimeException | Error ex) {
                failures.add(ex);
            }
            observer.run();
        }
        now = Math.max(now, end);
    }

    private @Nullable Event next(long end) {
        Event next = events.peek();
        if (!soon.isEmpty() && (next == null || next.time > now)) {
            return soon.poll();
        }
        return next == null || next.time > end ? null : events.poll();
    }

    /** What events have thrown: on a thread of their own each would have ended it. */
    List<Throwable> failures() {
        return failures;
    }
}
