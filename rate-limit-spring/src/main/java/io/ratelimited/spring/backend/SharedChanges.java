package io.ratelimited.spring.backend;

import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Changes that all instances share: a text for a limit, and one for each of its callers that has its own limit. Each instance
 * has a copy, so reading does not access the backend. Implementations are thread-safe.
 */
public interface SharedChanges {

    /**
     * Returns the change of a limit, or of one of its callers, that this instance knows.
     *
     * @param caller the digest of the caller's key; null for the limit itself
     * @return null if there is none
     */
    @Nullable
    Change find(String limit, @Nullable String caller);

    /** Returns the digests of the callers of a limit that may have a change. */
    Collection<String> callers(String limit);

    /**
     * Makes a change for all instances, atomically. Blocks until the backend responds.
     *
     * @param basedOn the version of the change that it replaces; 0 if there is none
     * @param text empty to revert the change
     * @param lasting its duration; null for no end
     * @param author the name of its author; null if it is not known
     * @param maximumCallers maximum number of callers of a limit with a change
     * @throws RuntimeException if the backend is unavailable
     */
    Written write(
            String limit,
            @Nullable String caller,
            long basedOn,
            String text,
            @Nullable Duration lasting,
            @Nullable String author,
            int maximumCallers);

    /**
     * Follows the changes of all instances, including this one, from now on. A change of {@link #write} is among them when
     * that method returns.
     *
     * @param task runs when there are new changes, on a thread that can block
     * @return supplies the next change, in the order in which they were made; null if there is none
     */
    Supplier<@Nullable Change> follow(Runnable task);

    /**
     * A change.
     *
     * @param caller the digest of the caller's key; null for the limit itself
     * @param version unique among the changes of this limit or caller; 0 if the backend has lost it
     * @param text empty if the change was reverted
     * @param endsAt its end, in nanoseconds of the ticker; null for no end
     * @param author the name of its author; null if it is not known
     * @param madeAt the time when it was made; null if the backend has lost it
     */
    record Change(
            String limit,
            @Nullable String caller,
            long version,
            String text,
            @Nullable Long endsAt,
            @Nullable String author,
            @Nullable Instant madeAt) {}

    /** The outcome of a write. */
    enum Written {
        DONE,
        /** Another instance was faster: nothing was changed, and its change is among those to follow. */
        OUTDATED,
        /**
         * The limit has the maximum number of callers with a change, or twice as many that had one within the last hour: nothing was
         * changed.
         */
        FULL
    }
}
