package io.ratelimited.redis;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;

/**
 * What the machine, not the limiter, takes from callers. Canaries sleep for a millisecond again and again; what they
 * sleep longer is a pause of the process or a lack of processors. Beside them a thread can be told for how long it was
 * ready to run and had no processor, where the system knows that (Linux).
 */
final class Stalls implements AutoCloseable {

    private static final int CANARIES = 2;
    private static final long NAP = 1_000_000;
    /** Lateness that is not worth remembering. */
    private static final long USUAL = 1_000_000;

    private record Stall(long begin, long end) {}

    private final List<Queue<Stall>> canaries = new ArrayList<>();
    private volatile boolean stopped;

    Stalls() {
        for (int i = 0; i < CANARIES; i++) {
            Queue<Stall> stalls = new ConcurrentLinkedQueue<>();
            canaries.add(stalls);
            Thread thread = new Thread(() -> sing(stalls), "canary-" + i);
            thread.setDaemon(true);
            thread.start();
        }
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

    /** Nanoseconds of an interval for which a canary was kept from running; of the one that was kept longest. */
    long between(long begin, long end) {
        return canaries.stream()
                .mapToLong(stalls -> stalls.stream()
                        .mapToLong(stall -> Math.max(
                                0, Math.min(end - begin, stall.end - begin) - Math.max(0, stall.begin - begin)))
                        .sum())
                .max()
                .orElse(0);
    }

    @Override
    public void close() {
        stopped = true;
    }

    /** For how long the thread that has opened it was ready to run without running. */
    static final class Queued implements AutoCloseable {

        private final RandomAccessFile file;
        private final byte[] buffer = new byte[128];

        Queued() {
            RandomAccessFile opened = null;
            try {
                opened = new RandomAccessFile("/proc/thread-self/schedstat", "r");
            } catch (IOException ex) {
                // Another system: only the canaries tell.
            }
            file = opened;
        }

        /** Nanoseconds since the thread began; 0 where nobody knows. */
        long nanos() {
            if (file == null) {
                return 0;
            }
            try {
                file.seek(0);
                int length = file.read(buffer);
                String[] fields = new String(buffer, 0, Math.max(0, length), StandardCharsets.US_ASCII).split(" ", -1);
                return fields.length > 1 ? Long.parseLong(fields[1]) : 0;
            } catch (IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }

        @Override
        public void close() {
            try {
                if (file != null) {
                    file.close();
                }
            } catch (IOException ex) {
                throw new UncheckedIOException(ex);
            }
        }
    }
}
