package io.ratelimited.spring.backend;

import java.time.Duration;
import java.util.Collection;
import java.util.function.BiConsumer;
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
     * @param maximumCallers the most callers of a limit that may have a change
     * @throws RuntimeException when the backend does not answer
     */
    Written write(
            String limit,
            @Nullable String caller,
            long basedOn,
            String text,
            @Nullable Duration lasting,
            int maximumCallers);

    /**
     * Informs a listener of each limit and caller whose change may be another; the caller is null for the limit itself.
     */
    void onChange(BiConsumer<String, @Nullable String> listener);

    /**
     * A change.
     *
     * @param version larger than that of every change that it replaces
     * @param text empty if the change was taken back
     * @param endsAt its end, in nanoseconds of the ticker; null for never
     */
    record Change(long version, String text, @Nullable Long endsAt) {}

    /** The outcome of a write. */
    enum Written {
        DONE,
        /** Another instance was faster: nothing has changed, and its change is known here. */
        OUTDATED,
        /** The limit has as many callers with a change as it may have: nothing has changed. */
        FULL
    }
}
