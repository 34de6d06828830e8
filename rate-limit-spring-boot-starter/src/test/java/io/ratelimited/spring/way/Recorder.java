package io.ratelimited.spring.way;

import java.util.Map;
import java.util.TreeMap;

/** What one thread does in the product: the types that it enters, and the calls that they make. */
public final class Recorder {

    private static final Map<String, Integer> CALLS = new TreeMap<>();
    private static Thread thread;

    private Recorder() {}

    /** Called by each method of the product before each of its calls, and once as it begins. */
    public static void call(String type, int calls) {
        if (Thread.currentThread() == thread) {
            CALLS.merge(type, calls, Integer::sum);
        }
    }

    /** The types that this thread enters, each with the calls that it makes. */
    public static Map<String, Integer> record(Runnable way) {
        CALLS.clear();
        thread = Thread.currentThread();
        try {
            way.run();
        } finally {
            thread = null;
        }
        return new TreeMap<>(CALLS);
    }
}
