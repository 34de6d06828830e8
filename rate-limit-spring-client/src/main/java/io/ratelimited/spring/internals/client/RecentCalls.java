package io.ratelimited.spring.internals.client;

/**
 * The times at which the last calls of this side ended, at most {@value #MAX_CALLS}. Not thread-safe. All times are of a
 * monotonic clock, in nanoseconds.
 */
final class RecentCalls {

    static final int MAX_CALLS = 1_000;

    private static final int FIRST_SIZE = 16;

    /** A ring, oldest first from {@code first} on. */
    private long[] ends = new long[FIRST_SIZE];

    private int first;
    private int size;

    /** Adds the end of a call, which is not before those that were added before. */
    void add(long now) {
        if (size == ends.length && size < MAX_CALLS) {
            long[] larger = new long[Math.min(MAX_CALLS, 2 * size)];
            for (int i = 0; i < size; i++) {
                larger[i] = end(i);
            }
            ends = larger;
            first = 0;
        }
        ends[(first + size) % ends.length] = now;
        if (size < ends.length) {
            size++;
        } else {
            first = (first + 1) % ends.length;
        }
    }

    private long end(int i) {
        return ends[(first + i) % ends.length];
    }

    /** Returns how many of the calls that are known ended after a time. */
    int after(long time) {
        int low = 0;
        int high = size;
        while (low < high) {
            int middle = (low + high) >>> 1;
            if (end(middle) - time > 0) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        return size - low;
    }

    int size() {
        return size;
    }

    /** Returns the end of the newest call but so many. */
    long newestBut(int calls) {
        return end(size - 1 - calls);
    }
}
