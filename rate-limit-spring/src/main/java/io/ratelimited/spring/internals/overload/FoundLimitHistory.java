package io.ratelimited.spring.internals.overload;

import io.ratelimited.core.Ticker;
import io.ratelimited.core.overload.FoundLimitChange;
import java.time.Instant;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.List;
import org.springframework.util.ClassUtils;

/** The last changes of the limit that {@code ADAPTIVE} has found; each is an event of the flight recorder, too. Thread-safe. */
public final class FoundLimitHistory {

    /** As many as a person reads. */
    private static final int MOST = 20;

    /** A runtime image may leave the module jdk.jfr out. */
    private static final boolean FLIGHT_RECORDER = ClassUtils.isPresent("jdk.jfr.Event", null);

    private final String limit;
    private final Ticker ticker;
    /** Guarded by itself. */
    private final Deque<Entry> entries = new ArrayDeque<>();

    /** A change, and its time. */
    public record Entry(Instant at, FoundLimitChange change) {}

    /** @param limit the name of the limit, or of its tier */
    public FoundLimitHistory(String limit, Ticker ticker) {
        this.limit = limit;
        this.ticker = ticker;
    }

    /** Adds a change. Runs in the thread of the call that has caused it. */
    public void add(FoundLimitChange change) {
        Entry entry = new Entry(Instant.EPOCH.plusNanos(ticker.epochNanos()), change);
        synchronized (entries) {
            entries.addFirst(entry);
            if (entries.size() > MOST) {
                entries.removeLast();
            }
        }
        if (FLIGHT_RECORDER) {
            FoundLimitEvent.record(limit, change);
        }
    }

    /** The last changes, the newest first. */
    public List<Entry> last() {
        synchronized (entries) {
            return List.copyOf(entries);
        }
    }
}
