package io.ratelimited.spring.limit;

import io.ratelimited.core.Ticker;
import io.ratelimited.spring.backend.SharedChanges;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Writes of shared changes that were not answered. Such a change may be in force all the same: it is reported in the name of
 * its author when this instance hears of it within a minute. Thread-safe.
 */
final class UnansweredWrites {

    private static final long REMEMBERED_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final Ticker ticker;
    /** The last of each limit or caller. Guarded by this. */
    private final Map<Target, Unanswered> writes = new HashMap<>();

    /**
     * A write.
     *
     * @param caller null for that of the limit itself
     * @param basedOn the version that it replaces
     * @param author null if nobody is known
     */
    record Write(
            String limit,
            @Nullable String caller,
            long basedOn,
            String text,
            @Nullable String author) {}

    private record Target(String limit, @Nullable String caller) {}

    private record Unanswered(Write write, long at) {}

    UnansweredWrites(Ticker ticker) {
        this.ticker = ticker;
    }

    /** Makes a write, and remembers it when it throws. */
    SharedChanges.Written write(Write write, Supplier<SharedChanges.Written> attempt) {
        try {
            return attempt.get();
        } catch (RuntimeException ex) {
            add(write);
            throw ex;
        }
    }

    private synchronized void add(Write write) {
        long now = ticker.nanos();
        writes.values().removeIf(each -> now - each.at >= REMEMBERED_NANOS);
        writes.put(new Target(write.limit, write.caller), new Unanswered(write, now));
    }

    /** Returns the author of a change that is seen for the first time; null if nobody here has made it. */
    synchronized @Nullable String author(String limit, @Nullable String caller, SharedChanges.Change change) {
        Target target = new Target(limit, caller);
        Unanswered known = writes.get(target);
        if (known == null || change.version() <= known.write.basedOn) {
            return null;
        }
        writes.remove(target);
        boolean own = known.write.text.equals(change.text()) && ticker.nanos() - known.at < REMEMBERED_NANOS;
        return own ? known.write.author : null;
    }
}
