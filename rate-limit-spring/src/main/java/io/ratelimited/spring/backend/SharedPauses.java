package io.ratelimited.spring.backend;

import java.time.Duration;
import java.util.concurrent.CompletionStage;
import java.util.function.BiConsumer;

/** Pauses that all instances share: the name and the length of each. The one that ends later holds. Thread-safe. */
public interface SharedPauses {

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
