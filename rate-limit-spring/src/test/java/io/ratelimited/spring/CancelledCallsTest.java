package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.internals.threads.CallbackThreads;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Publisher;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/** A reactive call that is cancelled is made and counts, or is not made and gives its permit back: never both, never neither. */
@Tag("slow")
final class CancelledCallsTest {

    private static final int RACES = 5_000;

    private final ManualTicker ticker = new ManualTicker();
    private AnnotationConfigApplicationContext context;
    private Service service;

    @BeforeEach
    void start() {
        context = ContextRunner.start(
                ticker,
                new Class<?>[] {Service.class},
                "rate-limit.limits.once.rate=1/s",
                "rate-limit.limits.once.policy=wait",
                "rate-limit.limits.place.algorithm=concurrency",
                "rate-limit.limits.place.max-concurrent=1");
        service = context.getBean(Service.class);
    }

    @AfterEach
    void stop() {
        context.close();
    }

    private long remaining() {
        return context.getBean(RateLimits.class).peek("once", null).remaining();
    }

    @Test
    void callThatIsCancelledByItsOwnBodyCounts() {
        service.call(null).block();
        Disposable.Swap waiting = Disposables.swap();
        CompletableFuture<Void> called = new CompletableFuture<>();
        waiting.replace(service.call(() -> {
                    waiting.dispose();
                    called.complete(null);
                })
                .subscribe());
        ticker.advance(Duration.ofSeconds(1));
        called.orTimeout(20, TimeUnit.SECONDS).join();
        assertThat(remaining()).isZero();
    }

    @Test
    void callThatIsCancelledBetweenItsTurnAndItsBodyIsNotMade() throws InterruptedException {
        service.call(null).block();
        Disposable waiting = service.call(null).subscribe();
        BlockingQueue<Runnable> held = new LinkedBlockingQueue<>();
        Thread own = Thread.currentThread();
        Schedulers.onScheduleHook("hold", task -> Thread.currentThread() == own ? () -> held.add(task) : task);
        try {
            ticker.advance(Duration.ofSeconds(1));
        } finally {
            Schedulers.resetOnScheduleHook("hold");
        }
        Runnable turn = held.poll(20, TimeUnit.SECONDS);
        assertThat(turn).isNotNull();
        waiting.dispose();
        turn.run();
        assertThat(service.calls()).hasValue(1);
        assertThat(remaining()).isEqualTo(1);
    }

    /** Another call would else run beside work that is cancelled a moment later. */
    @Test
    void callThatIsCancelledHoldsItsPlaceUntilItsWorkIsCancelled() {
        RateLimits limits = context.getBean(RateLimits.class);
        for (boolean many : new boolean[] {false, true}) {
            List<Long> free = new ArrayList<>();
            Runnable cancelled = () -> free.add(limits.peek("place", null).remaining());
            Disposable call = Flux.from(many ? service.works(cancelled) : service.work(cancelled))
                    .subscribe();
            call.dispose();
            cancelled.run();
            assertThat(free).as("many: %s", many).containsExactly(0L, 1L);
        }
    }

    @Test
    void callOfAMonoWhoseTurnComesWithItsCancellationIsMadeOrGivenBack() throws Exception {
        race(service.call(null));
    }

    @Test
    void callOfAFluxWhoseTurnComesWithItsCancellationIsMadeOrGivenBack() throws Exception {
        race(service.stream());
    }

    /**
     * Lets the turn of a waiting call come on one thread, and cancels the call on another. A call that is not made has no result:
     * it does not complete as one that has found nothing.
     */
    private void race(Publisher<Integer> call) throws Exception {
        AtomicBoolean empty = new AtomicBoolean();
        Flux<Integer> raced = Flux.from(call).switchIfEmpty(Flux.defer(() -> {
            empty.set(true);
            return Flux.never();
        }));
        Scheduler timer = Schedulers.newSingle("turns");
        CyclicBarrier gate = new CyclicBarrier(2);
        try {
            for (int i = 0; i < RACES; i++) {
                Flux.from(call).blockLast();
                int before = service.calls().get();
                Disposable waiting = raced.subscribe();
                CompletableFuture<Void> turn = new CompletableFuture<>();
                timer.schedule(() -> {
                    await(gate);
                    ticker.advance(Duration.ofSeconds(1));
                    turn.complete(null);
                });
                await(gate);
                for (int spin = 0; spin < i % 500; spin++) {
                    Thread.onSpinWait();
                }
                waiting.dispose();
                turn.get(20, TimeUnit.SECONDS);
                // The body is entered on another thread than that of its turn.
                while (!CallbackThreads.SHARED.isQuiescent()) {
                    Thread.onSpinWait();
                }
                int made = service.calls().get() - before;
                assertThat(made + remaining()).as("race %s", i).isEqualTo(1);
                assertThat(empty).as("race %s", i).isFalse();
                ticker.advance(Duration.ofSeconds(1));
            }
        } finally {
            timer.dispose();
        }
    }

    private static void await(CyclicBarrier gate) {
        try {
            gate.await(20, TimeUnit.SECONDS);
        } catch (Exception ex) {
            throw new IllegalStateException(ex);
        }
    }

    static class Service {

        private final AtomicInteger calls = new AtomicInteger();

        AtomicInteger calls() {
            return calls;
        }

        /** Counts the call, and disposes of the subscription that it is given. */
        @RateLimited("once")
        public Mono<Integer> call(@Nullable Disposable cancelled) {
            if (cancelled != null) {
                cancelled.dispose();
            }
            return Mono.just(calls.incrementAndGet());
        }

        @RateLimited("place")
        public Mono<Integer> work(Runnable cancelled) {
            return Mono.<Integer>never().doOnCancel(cancelled);
        }

        @RateLimited("place")
        public Flux<Integer> works(Runnable cancelled) {
            return Flux.<Integer>never().doOnCancel(cancelled);
        }

        @RateLimited("once")
        public Flux<Integer> stream() {
            return Flux.just(calls.incrementAndGet());
        }
    }
}
