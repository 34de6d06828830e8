package io.ratelimited.spring.internals.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.ReservedPermits;
import io.ratelimited.spring.RunContext;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import org.junit.jupiter.api.Test;
import org.springframework.core.task.TaskDecorator;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** A call that an {@link Error} prevents ends for its limits, too, and its future fails. */
final class FatalErrorsTest {

    private final AtomicBoolean fails = new AtomicBoolean(true);

    private final ContextRunner runner = ContextRunner.limited(new ManualTicker())
            .with(Service.class)
            .withPropertyValues(
                    "rate-limit.limits.one.algorithm=CONCURRENCY",
                    "rate-limit.limits.one.max-concurrent=1",
                    "rate-limit.limits.one.policy=wait",
                    "rate-limit.limits.one.max-wait=1h");

    static class Service {

        @RateLimited("one")
        public CompletableFuture<String> future() {
            return CompletableFuture.completedFuture("went");
        }

        @RateLimited("one")
        public Mono<String> mono(Mono<String> work) {
            return work;
        }

        @RateLimited("one")
        public Flux<String> flux(Flux<String> work) {
            return work;
        }
    }

    private ContextRunner withExecutor() {
        return runner.withBean("applicationTaskExecutor", Executor.class, () -> task -> {
            if (fails.get()) {
                throw new OutOfMemoryError("unable to create native thread");
            }
            task.run();
        });
    }

    private ContextRunner withDecorator() {
        return runner.withBean("decorator", TaskDecorator.class, () -> task -> {
            if (fails.get()) {
                throw new AssertionError("decorator");
            }
            return task;
        });
    }

    /** Makes a call that waits until the one before it has ended. */
    private static <T> CompletableFuture<T> waited(RunContext context, Supplier<CompletableFuture<T>> call) {
        ReservedPermits first = context.getBean(RateLimits.class).reserve("one", null, 1);
        CompletableFuture<T> waiting = call.get();
        first.close();
        return waiting;
    }

    private static void assertFree(RunContext context) {
        assertThat(remaining(context)).isEqualTo(1);
    }

    private static long remaining(RunContext context) {
        return context.getBean(RateLimits.class).peek("one", null).remaining();
    }

    @Test
    void aCallThatHasWaitedFailsIfTheExecutorHasNoThread() {
        withExecutor().run(context -> {
            CompletableFuture<String> call = waited(context, context.getBean(Service.class)::future);
            assertThatThrownBy(() -> call.get(20, TimeUnit.SECONDS)).hasCauseInstanceOf(OutOfMemoryError.class);
            assertFree(context);
        });
    }

    @Test
    void thePermitIsBackBeforeTheCallerLearnsOfTheFailure() {
        withExecutor().run(context -> {
            CompletableFuture<Long> seenByCaller = waited(
                    context,
                    () -> context.getBean(Service.class).future().handle((value, failure) -> remaining(context)));
            assertThat(seenByCaller.get(20, TimeUnit.SECONDS)).isEqualTo(1);
        });
        withDecorator().run(context -> {
            RateLimits limits = context.getBean(RateLimits.class);
            CompletableFuture<Long> seenByCaller = waited(
                    context, () -> limits.reserveAsync("one", null, 1).handle((value, failure) -> remaining(context)));
            assertThat(seenByCaller.get(20, TimeUnit.SECONDS)).isEqualTo(1);
        });
    }

    @Test
    void aCallThatHasWaitedFailsIfADecoratorHas() {
        withDecorator().run(context -> {
            Service service = context.getBean(Service.class);
            CompletableFuture<String> future = waited(context, service::future);
            assertThatThrownBy(() -> future.get(20, TimeUnit.SECONDS))
                    .hasCauseInstanceOf(RejectedExecutionException.class)
                    .hasStackTraceContaining("AssertionError: decorator");
            assertFree(context);

            CompletableFuture<String> mono =
                    waited(context, () -> service.mono(Mono.just("went")).toFuture());
            assertThatThrownBy(() -> mono.get(20, TimeUnit.SECONDS))
                    .hasCauseInstanceOf(RejectedExecutionException.class)
                    .hasStackTraceContaining("AssertionError: decorator");
            assertFree(context);
        });
    }

    /** Reactor throws fatal errors, instead of passing them to the subscriber. */
    @Test
    void aSubscriptionThatThrowsEndsItsCall() {
        runner.run(context -> {
            Service service = context.getBean(Service.class);
            Mono<String> mono = service.mono(Mono.defer(() -> {
                throw new StackOverflowError();
            }));
            assertThat(catchThrowable(() -> mono.subscribe(value -> {}, failure -> {})))
                    .isInstanceOf(StackOverflowError.class);
            assertFree(context);

            Flux<String> flux = service.flux(Flux.defer(() -> {
                throw new NoClassDefFoundError();
            }));
            assertThat(catchThrowable(() -> flux.subscribe(value -> {}, failure -> {})))
                    .isInstanceOf(NoClassDefFoundError.class);
            assertFree(context);
        });
    }

    @Test
    void aSubscriptionThatThrowsAfterItHasWaitedEndsItsCall() {
        runner.run(context -> {
            Service service = context.getBean(Service.class);
            CompletableFuture<Thread> thread = new CompletableFuture<>();
            waited(
                    context,
                    () -> service.mono(Mono.defer(() -> {
                                thread.complete(Thread.currentThread());
                                Thread.currentThread().setUncaughtExceptionHandler((ended, failure) -> {});
                                throw new StackOverflowError();
                            }))
                            .toFuture());
            thread.get(20, TimeUnit.SECONDS).join();
            assertFree(context);
        });
    }
}
