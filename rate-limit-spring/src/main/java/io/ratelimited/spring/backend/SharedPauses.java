package io.ratelimited.spring.backend;

import java.time.Duration;
import java.util.concurrent.CompletionStage;
import java.util.function.BiConsumer;

/**
 * Pauses that all instances share: the name and the duration of each. Of two pauses with the same name, the one that ends
 * later applies. Implementations are thread-safe.
 */
public interface SharedPauses {

    /**
     * Starts a pause on all instances. Does not block.
     *
     * @param lasting its duration from now
     * @return completes when the backend has stored it; fails if it is not stored, as when the backend is unavailable
     */
    CompletionStage<?> publish(String name, Duration lasting);

    /**
     * Passes the name and the remaining time of the pauses of all instances to a listener, within a second. Each pause is
     * passed once, and again if its end is later. The listener must not block.
     */
    void follow(BiConsumer<String, Duration> listener);
}
