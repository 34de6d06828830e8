package io.ratelimited.spring;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import java.time.Duration;
import java.util.Collection;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A backend: makes the limiters of the limits that name it. Each bean of this type is a backend, and {@code
 * rate-limit.backend} and the {@code backend} of a limit choose one by its name; the first of a name wins, in the order
 * of the beans. Thread-safe.
 */
public interface LimiterFactory {

    /** The name that properties choose this backend by, in lower case. */
    String backend();

    /** The properties that this backend reads and others do not: {@code onFailure}, {@code maxOvershoot}, or none. */
    default Set<String> properties() {
        return Set.of();
    }

    /**
     * Makes a limiter.
     *
     * @param limit the limit that it applies
     * @param tier the tier whose callers it limits; empty for the limit itself. Tiers of one limit share no budget
     * @param properties the properties of the limit, for those that concern the backend only
     * @throws IllegalArgumentException when the backend cannot have such a limit; the message names the setting
     */
    RateLimiter create(Limit limit, String tier, LimitProperties properties);

    /**
     * Returns whether its limiters block keys as {@link Limit#block} says. A limit with blocks fails startup on a backend whose
     * limiters do not.
     */
    default boolean blocks() {
        return false;
    }

    /** The changes of limits that all instances share on this backend; null if a change is the instance's own. */
    default @Nullable SharedChanges sharedChanges() {
        return null;
    }

    /** The pauses of outgoing calls that all instances share on this backend; null if each instance pauses alone. */
    default @Nullable SharedPauses sharedPauses() {
        return null;
    }

    /**
     * Changes that all instances share: a text for a limit, and one for each of its callers that has its own limit. Each
     * instance has a copy, so that reading asks nobody. Thread-safe.
     */
    interface SharedChanges {

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
        Outcome write(
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
        enum Outcome {
            WRITTEN,
            /** Another instance was faster: nothing has changed, and its change is known here. */
            OUTDATED,
            /** The limit has as many callers with a change as it may have: nothing has changed. */
            FULL
        }
    }

    /** Pauses that all instances share: the name and the length of each. The one that ends later holds. Thread-safe. */
    interface SharedPauses {

        /**
         * Begins a pause for all instances. Returns at once.
         *
         * @param lasting its length from now
         * @return completes when it is known to the backend; fails when the backend does not answer
         */
        CompletionStage<?> publish(String name, Duration lasting);

        /**
         * Passes the pauses of all instances to a listener, within a second: the name and the time left. Each pause is
         * passed once, and again when its end is later. The listener must not block.
         */
        void follow(BiConsumer<String, Duration> listener);
    }
}
