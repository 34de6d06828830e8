package io.ratelimited.spring.guide;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.ReservedPermits;
import java.nio.file.Path;
import java.util.Objects;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.springframework.test.util.ReflectionTestUtils;
import reactor.core.Disposable;
import reactor.core.publisher.Mono;

/** Reservations of the snippet with a reactive chain: none is lost when its caller cancels as it is granted. */
@Tag("once")
class CancelledReservationsTest {

    private static final int ROUNDS = 3_000;

    private final ExecutorService releasing = Executors.newSingleThreadExecutor();

    @TempDir
    private Path directory;

    @AfterEach
    void stop() {
        releasing.shutdownNow();
    }

    /** The permits of a call in flight are released by its end alone: those that are lost are missing in the next round. */
    @Test
    void aCallThatIsCancelledAsItsPermitsAreGrantedReturnsThem() throws Exception {
        Class<?> imports =
                DocPage.section("charging.md", "By hand").classes(directory).get("ReactiveImports");
        Contexts.with(Contexts.runner(), imports)
                .withPropertyValues(
                        "rate-limit.limits.import-rows.algorithm=concurrency",
                        "rate-limit.limits.import-rows.max-concurrent=100",
                        "rate-limit.limits.import-rows.policy=wait",
                        "rate-limit.limits.import-rows.max-wait=30s")
                .run(context -> {
                    RateLimits limits = context.getBean(RateLimits.class);
                    Mono<?> calls = Objects.requireNonNull(
                            ReflectionTestUtils.invokeMethod(context.getBean(imports), "load", "acme", Mono.never()));
                    CyclicBarrier together = new CyclicBarrier(2);
                    Queue<Throwable> failures = new ConcurrentLinkedQueue<>();
                    for (int round = 0; round < ROUNDS; round++) {
                        ReservedPermits held = limits.reserve("import-rows", "acme", 100);
                        Disposable waiting = calls.subscribe(rows -> {}, failures::add);
                        CompletableFuture<Void> released = CompletableFuture.runAsync(
                                () -> {
                                    await(together);
                                    held.close();
                                },
                                releasing);
                        await(together);
                        waiting.dispose();
                        released.join();
                    }
                    limits.reserve("import-rows", "acme", 100).close();
                    assertThat(limits.peek("import-rows", "acme").remaining()).isEqualTo(100);
                    assertThat(failures).isEmpty();
                });
    }

    private static void await(CyclicBarrier barrier) {
        try {
            barrier.await();
        } catch (Exception ex) {
            throw new IllegalStateException(ex);
        }
    }
}
