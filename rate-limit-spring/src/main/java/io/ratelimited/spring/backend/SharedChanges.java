package io.ratelimited.spring.backend;

import java.time.Duration;
import java.time.Instant;
import java.util.Collection;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Changes that all instances share: a text for a limit, and one for each of its callers that has its own limit. Each
 * instance has a copy, so that reading asks nobody. Thread-safe.
 */
public interface SharedChanges {

    /**
     * The change of a limit, or of one of its callers, as far as this instance knows.
     *
     * @param caller the digest of the caller's key; null for the limit itself
     * @return null if there is none
     */
    @Nullable
    Change find(String limit, @Nullable String caller);

    /** The digests of the callers of a limit that may have a change. */
    Collection<String> callers(String limit);

    /**
     * Makes a change for all instances, whole or not at all. Blocks until the backend answers.
     *
     * @param basedOn the version of the change that it replaces; 0 if there is none
     * @param text empty to take the change back
     * @param lasting its length; null for ever
     * @param author the name of its author; null if it is not known
     * @param maximumCallers the most callers of a limit that may have a change
     * @throws RuntimeException when the backend does not answer
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
     * Follows the changes of all instances, this one among them, from now on. A change that {@link #write} has made is
     * among them when it returns.
     *
     * @param task is run when there are changes to take, on a thread that may block
     * @return takes the next change, in the order in which they were made; null when all are taken
     */
    Supplier<@Nullable Change> follow(Runnable task);

    /**
     * A change.
     *
     * @param caller the digest of the caller's key; null for the limit itself
     * @param version another than that of every other change of this limit or caller; 0 if the backend has lost it
     * @param text empty if the change was taken back
     * @param endsAt its end, in nanoseconds of the ticker; null for never
     * @param author the name of its author; null if it is not known
     * @param madeAt the time when it was made
     */
    record Change(
            String limit,
            @Nullable String caller,
            long version,
            String text,
            @Nullable Long endsAt,
            @Nullable String author,
            Instant madeAt) {}

    /** The outcome of a write. */
    enum Written {
        DONE,
        /** Another instance was faster: nothing has changed, and its change is among those to take. */
        OUTDATED,
        /** The limit has as many callers with a change as it may have: nothing has changed. */
        FULL
    }
}
