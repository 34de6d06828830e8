package io.ratelimited.benchmarks.overload;

import java.util.Comparator;
import java.util.PriorityQueue;
import java.util.function.IntToDoubleFunction;

/**
 * Processors that all tasks share equally, each task at most one of them. Progress is measured in the time that a task has
 * got, which is the same for all tasks, so that one comparison finds the next that ends.
 */
final class Processors {

    private record Task(double end, Runnable done) {}

    private final Timeline timeline;
    private final PriorityQueue<Task> tasks = new PriorityQueue<>(Comparator.comparingDouble(Task::end));
    private final IntToDoubleFunction efficiency;
    private double cores;
    private double speed = 1;
    private double progress;
    private long updated;
    private long version;

    /** @param efficiency the share of the time that serves the tasks, by their number */
    Processors(Timeline timeline, double cores, IntToDoubleFunction efficiency) {
        this.timeline = timeline;
        this.cores = cores;
        this.efficiency = efficiency;
    }

    void run(double nanos, Runnable done) {
        advance();
        tasks.add(new Task(progress + nanos, done));
        schedule();
    }

    void cores(double now) {
        advance();
        cores = now;
        schedule();
    }

    /** Stops all tasks for a time. */
    void pause(long nanos) {
        advance();
        speed = 0;
        schedule();
        timeline.after(nanos, () -> {
            advance();
            speed = 1;
            schedule();
        });
    }

    private double rate() {
        int running = tasks.size();
        return running == 0 ? 0 : speed * Math.min(1, cores / running) * efficiency.applyAsDouble(running);
    }

    private void advance() {
        progress += (timeline.now() - updated) * rate();
        updated = timeline.now();
    }

    private void schedule() {
        long mine = ++version;
        double rate = rate();
        if (rate > 0) {
            double left = Math.max(0, tasks.element().end - progress) / rate;
            timeline.after((long) Math.ceil(left), () -> {
                if (mine == version) {
                    advance();
                    Task ended = tasks.remove();
                    schedule();
                    ended.done.run();
                }
            });
        }
    }
}
