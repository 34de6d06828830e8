package io.ratelimited.core.several;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;

/** Two backends beside memory, whose decisions come from other threads or fail. */
@Tag("slow")
class SeveralStressTest extends SeveralStress {

    private final Map<String, Executor> backends = new HashMap<>();
    private final ExecutorService network = Executors.newFixedThreadPool(2);
    private volatile boolean done;

    @Override
    protected int calls() {
        return 20_000;
    }

    @Override
    protected List<String> backends() {
        return List.of("far", "farther");
    }

    @Override
    protected RateLimiter elsewhere(String backend, Limit limit) {
        Executor decides = backends.computeIfAbsent(backend, unseen -> this::decideSometime);
        return new FarLimiter(new InMemoryRateLimiter(limit, time, 100), decides) {
            @Override
            @Nullable
            RuntimeException failure() {
                return !done && ThreadLocalRandom.current().nextInt(50) == 0 ? new IllegalStateException("away") : null;
            }
        };
    }

    private void decideSometime(Runnable decision) {
        if (ThreadLocalRandom.current().nextInt(3) == 0) {
            decision.run();
        } else {
            network.execute(decision);
        }
    }

    @Override
    protected void awaitBackends() throws InterruptedException {
        done = true;
        network.shutdown();
        assertThat(network.awaitTermination(1, TimeUnit.MINUTES)).isTrue();
    }
}
