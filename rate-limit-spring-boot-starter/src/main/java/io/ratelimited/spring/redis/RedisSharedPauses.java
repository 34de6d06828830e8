package io.ratelimited.spring.redis;

import io.ratelimited.redis.RedisBackend;
import io.ratelimited.spring.backend.SharedPauses;
import java.time.Duration;
import java.util.concurrent.CompletionStage;
import java.util.function.BiConsumer;
import java.util.function.Supplier;

/** The pauses that instances share stand in Redis. */
record RedisSharedPauses(Supplier<RedisBackend> backend) implements SharedPauses {

    @Override
    public CompletionStage<?> publish(String name, Duration lasting) {
        return backend.get().pauses().publish(name, lasting);
    }

    @Override
    public void follow(BiConsumer<String, Duration> listener) {
        backend.get().pauses().follow(listener);
    }
}
