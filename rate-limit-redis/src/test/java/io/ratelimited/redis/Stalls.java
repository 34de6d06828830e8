package io.ratelimited.redis;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;

/**
 * What the machine, not the limiter, takes from callers: for how long a thread of any process was ready to run and had no
 * processor, where the system knows that (Linux with {@code /proc/pressure}). Canaries notice pauses of the whole process:
 * they sleep for a millisecond again and again, and tell what they sleep longer. They alone are not enough, because a busy
 * machine prefers threads that sleep.
 */
final class Stalls implements AutoCloseable {

    private static final int CANARIES = 2;
    private static final long NAP = 1_000_000;
    /** Lateness that is not worth remembering. */
    private static final long USUAL = 1_000_000;

    private static final Path PRESSURE = Path.of("/proc/pressure/cpu");
    private static final long BETWEEN_SAMPLES = 5_000_000;

    private record Stall(long begin, long end) {}

    /** @param lacking nanoseconds, since the machine was started, for which a thread lacked a processor */
    private record Sample(long at, long lacking) {}

    private final List<Queue<Stall>> canaries = new ArrayList<>();
    private final Queue<Sample> samples = new ConcurrentLinkedQueue<>();
    private volatile boolean stopped;

    Stalls() {
        sample();
        for (int i = 0; i < CANARIES; i++) {
            Queue<Stall> stalls = new ConcurrentLinkedQueue<>();
            canaries.add(stalls);
            start("canary-" + i, () -> sing(stalls));
        }
        start("pressure", () -> {
            while (!stopped) {
                LockSupport.parkNanos(BETWEEN_SAMPLES);
                sample();
            }
        });
    }

    private static void start(String name, Runnable task) {
        Thread thread = new Thread(task, name);
        thread.setDaemon(true);
        thread.start();
    }

    private void sing(Queue<Stall> stalls) {
        while (!stopped) {
            long due = System.nanoTime() + NAP;
            LockSupport.parkNanos(NAP);
            long now = System.nanoTime();
            if (now - due > USUAL) {
                stalls.add(new Stall(due, now));
            }
        }
    }

    private void sample() {
        long lacking = 0;
        try {
            String text = Files.readString(PRESSURE);
            int begin = text.indexOf("total=") + "total=".length();
            lacking = 1_000 * Long.parseLong(text.substring(begin, text.indexOf('\n', begin)));
        } catch (IOException ex) {
            // Another system: only the canaries tell.
        }
        samples.add(new Sample(System.nanoTime(), lacking));
    }

    /** Nanoseconds of an interval that the machine took: of what its witnesses say, the most. */
    long between(long begin, long end) {
        long longest = canaries.stream()
                .mapToLong(stalls -> stalls.stream()
                        .mapToLong(stall -> Math.max(
                                0, Math.min(end - begin, stall.end - begin) - Math.max(0, stall.begin - begin)))
                        .sum())
                .max()
                .orElse(0);
        return Math.max(longest, lacking(begin, end));
    }

    private long lacking(long begin, long end) {
        sample();
        long before = 0;
        for (Sample sample : samples) {
            if (sample.at - begin <= 0) {
                before = sample.lacking;
            } else if (sample.at - end >= 0) {
                return Math.min(end - begin, sample.lacking - before);
            }
        }
        return 0;
    }

    @Override
    public void close() {
        stopped = true;
    }
}
