package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.micrometer.context.ContextRegistry;
import io.micrometer.observation.Observation;
import io.micrometer.observation.ObservationRegistry;
import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.Future;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.slf4j.MDC;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.task.SimpleAsyncTaskExecutor;
import org.springframework.security.authentication.TestingAuthenticationToken;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.security.core.context.SecurityContextHolderThreadLocalAccessor;

/** What is particular to methods that return a future. */
final class AsyncCallsTest {

    private static final ThreadLocal<String> USER = new ThreadLocal<>();

    private final ManualTicker ticker = new ManualTicker();
    private @Nullable AnnotationConfigApplicationContext context;

    private Service start(Class<?>... more) {
        Class<?>[] beans = java.util.Arrays.copyOf(more, more.length + 1);
        beans[more.length] = Service.class;
        context = ContextRunner.start(
                ticker,
                beans,
                "rate-limit.limits.once.rate=1/s",
                "rate-limit.limits.waiting.rate=1/s",
                "rate-limit.limits.waiting.policy=wait");
        return context.getBean(Service.class);
    }

    @AfterEach
    void stop() {
        MDC.clear();
        USER.remove();
        if (context != null) {
            context.close();
        }
    }

    @Test
    void refusalIsAFailedFutureWithTheExceptionItself() {
        Service service = start();
        service.returning(CompletableFuture.completedFuture("a"));
        CompletableFuture<String> refused = service.returning(CompletableFuture.completedFuture("b"));
        assertThat(refused.handle((value, failure) -> failure))
                .isCompletedWithValueMatching(RateLimitExceededException.class::isInstance);
    }

    @Test
    void admittedCallReturnsTheVeryFutureOfTheMethod() {
        Service service = start();
        CompletableFuture<String> own = new CompletableFuture<>();
        assertThat(service.returning(own)).isSameAs(own);
    }

    @Test
    void admittedCallThrowsWhatItThrowsAndReturnsNullIfItDoes() {
        Service service = start();
        assertThatThrownBy(() -> service.stage("bad")).isInstanceOf(IllegalStateException.class);
        ticker.advance(Duration.ofSeconds(1));
        assertThat(service.returning(null)).isNull();
    }

    @Test
    void plainFutureBlocks() throws Exception {
        Service service = start();
        assertThat(service.plain().get()).isEqualTo("plain");
        assertThatThrownBy(service::plain).isInstanceOf(RateLimitExceededException.class);
    }

    @Test
    void callThatWaitedGoesOnOnTheTaskExecutorWithTheContextOfItsCaller() {
        ContextRegistry registry = ContextRegistry.getInstance();
        registry.registerThreadLocalAccessor("user", USER);
        try {
            Service service = start(ManualExecutor.class);
            service.context().join();
            MDC.put("trace", "42");
            USER.set("ann");
            CompletableFuture<String> waited = service.context();
            MDC.put("trace", "43");
            USER.set("bob");
            ticker.advance(Duration.ofSeconds(1));
            assertThat(waited).isNotDone();
            context.getBean(ManualExecutor.class).next().run();
            assertThat(waited).isCompletedWithValue("trace 42, user ann");
            assertThat(MDC.get("trace")).isEqualTo("43");
            assertThat(USER.get()).isEqualTo("bob");
        } finally {
            registry.removeThreadLocalAccessor("user");
        }
    }

    @Test
    void callThatWaitedKnowsTheUserAndTheObservationOfItsCaller() {
        Service service = start(ManualExecutor.class);
        service.caller().join();
        ObservationRegistry observations = ObservationRegistry.create();
        observations.observationConfig().observationHandler(context -> true);
        SecurityContextHolder.getContext().setAuthentication(new TestingAuthenticationToken("ann", ""));
        CompletableFuture<String> waited =
                Observation.createNotStarted("import", observations).observe(service::caller);
        SecurityContextHolder.clearContext();
        ticker.advance(Duration.ofSeconds(1));
        context.getBean(ManualExecutor.class).next().run();
        assertThat(waited).isCompletedWithValue("ann in import");
        assertThat(SecurityContextHolder.getContext().getAuthentication()).isNull();
    }

    @Test
    void callThatWaitedKnowsTheUserOfItsCallerWithoutMicrometersAccessor() {
        ContextRegistry registry = ContextRegistry.getInstance();
        SecurityContextHolderThreadLocalAccessor accessor = new SecurityContextHolderThreadLocalAccessor();
        assertThat(registry.removeThreadLocalAccessor((String) accessor.key())).isTrue();
        try {
            Service service = start(ManualExecutor.class);
            service.caller().join();
            SecurityContextHolder.getContext().setAuthentication(new TestingAuthenticationToken("ann", ""));
            CompletableFuture<String> ofAnn = service.caller();
            ManualExecutor executor = context.getBean(ManualExecutor.class);
            SecurityContextHolder.clearContext();
            ticker.advance(Duration.ofSeconds(1));
            executor.next().run();
            assertThat(ofAnn).isCompletedWithValue("ann in nothing");
            assertThat(SecurityContextHolder.getContext().getAuthentication()).isNull();

            CompletableFuture<String> ofNobody = service.caller();
            TestingAuthenticationToken bob = new TestingAuthenticationToken("bob", "");
            SecurityContextHolder.getContext().setAuthentication(bob);
            ticker.advance(Duration.ofSeconds(1));
            executor.next().run();
            assertThat(ofNobody).isCompletedWithValue("nobody in nothing");
            assertThat(SecurityContextHolder.getContext().getAuthentication()).isSameAs(bob);
        } finally {
            SecurityContextHolder.clearContext();
            registry.registerThreadLocalAccessor(accessor);
        }
    }

    @Test
    void cancellingACallThatWaitedCancelsTheFutureOfTheMethod() {
        Service service = start(ManualExecutor.class);
        service.waiting(CompletableFuture.completedFuture("a"));
        CompletableFuture<String> own = new CompletableFuture<>();
        CompletableFuture<String> waited = service.waiting(own);
        ticker.advance(Duration.ofSeconds(1));
        context.getBean(ManualExecutor.class).next().run();
        waited.cancel(true);
        assertThat(own).isCancelled();
    }

    @Test
    void callCancelledOnItsWayToTheExecutorIsNotMade() {
        Service service = start(ManualExecutor.class);
        service.context().join();
        CompletableFuture<String> waited = service.context();
        ticker.advance(Duration.ofSeconds(1));
        Runnable task = context.getBean(ManualExecutor.class).next();
        waited.cancel(false);
        task.run();
        assertThat(service.calls()).isEqualTo(1);
    }

    @Test
    void callCancelledOnItsWayToTheExecutorHoldsNoPlaceUntilAThreadIsFree() {
        Service service = start(ManualExecutor.class);
        CompletableFuture<String> first = new CompletableFuture<>();
        service.turns(first);
        CompletableFuture<String> second = service.turns(CompletableFuture.completedFuture("b"));
        first.complete("a");
        context.getBean(ManualExecutor.class).next();
        second.completeExceptionally(new TimeoutException());
        assertThat(service.turns(CompletableFuture.completedFuture("c"))).isCompletedWithValue("c");
    }

    /** An executor with a limit blocks whoever gives it a task: a call that ends must not wait for its own thread. */
    @Test
    void callsThatWaitedGoOnInAnExecutorThatBlocksWhoGivesItTasks() {
        Service service = start(BoundedExecutor.class);
        SimpleAsyncTaskExecutor executor = context.getBean(SimpleAsyncTaskExecutor.class);
        CompletableFuture<String> first = new CompletableFuture<>();
        List<CompletableFuture<String>> calls = new ArrayList<>(List.of(service.turns(first)));
        for (int call = 0; call < 12; call++) {
            calls.add(service.turns(CompletableFuture.completedFuture("next")));
        }
        executor.execute(() -> first.complete("first"));
        assertThat(CompletableFuture.allOf(calls.toArray(CompletableFuture<?>[]::new)))
                .succeedsWithin(Duration.ofSeconds(20));
    }

    @Test
    void callWhoseFutureTimedOutDoesNotWaitForItsTurn() {
        Service service = start(ManualExecutor.class);
        service.context().join();
        service.context().completeExceptionally(new TimeoutException());
        assertThat(ticker.sleeping()).isZero();
        CompletableFuture<String> next = service.context();
        ticker.advance(Duration.ofSeconds(1));
        context.getBean(ManualExecutor.class).next().run();
        assertThat(next).isCompleted();
    }

    /** Which passes none of the methods by which callers end a future otherwise. */
    @Test
    void callWhoseFutureIsCompletedAsynchronouslyDoesNotWaitForItsTurn() {
        Service service = start(ManualExecutor.class);
        service.context().join();
        service.context().completeAsync(() -> "instead", Runnable::run);
        assertThat(ticker.sleeping()).isZero();
    }

    @Test
    void callThatNoExecutorTakesFailsAndGivesItsPermitBack() {
        Service service = start(FullExecutor.class);
        service.context().join();
        CompletableFuture<String> waited = service.context();
        ticker.advance(Duration.ofSeconds(1));
        assertThatThrownBy(() -> waited.get(20, TimeUnit.SECONDS)).hasCauseInstanceOf(RejectedExecutionException.class);
        assertThat(service.calls()).isEqualTo(1);
    }

    @Test
    void callWhoseFutureTimedOutIsNoLongerInFlight() {
        Service service = start();
        CompletableFuture<String> own = new CompletableFuture<>();
        TimeoutException timeout = new TimeoutException();
        service.inFlight(own).completeExceptionally(timeout);
        assertThat(own).isCompletedExceptionally();
        CompletableFuture<String> second = new CompletableFuture<>();
        service.inFlight(second).complete("instead");
        assertThat(second).isCompletedWithValue("instead");
        assertThat(service.inFlight(CompletableFuture.completedFuture("c"))).isCompletedWithValue("c");
    }

    /** As {@link CompletionStage} permits. */
    private static final class Opaque extends CompletableFuture<String> {

        @Override
        public CompletableFuture<String> toCompletableFuture() {
            throw new UnsupportedOperationException();
        }
    }

    @Test
    void callWhoseStageCannotBeEndedTimesOutAllTheSame() {
        Service service = start();
        Opaque own = new Opaque();
        CompletableFuture<String> call = service.inFlight(own);
        assertThat(call.completeExceptionally(new TimeoutException())).isTrue();
        assertThat(call).isCompletedExceptionally();
        own.complete("late");
        assertThat(service.inFlight(CompletableFuture.completedFuture("b"))).isCompletedWithValue("b");
    }

    @Test
    void nextCallFindsThePlaceFreeOfOneThatItsCallerHasEnded() {
        Service service = start();
        List<Consumer<CompletableFuture<String>>> ends = List.of(
                call -> call.completeExceptionally(new TimeoutException()),
                call -> call.cancel(true),
                call -> call.complete("instead"));
        for (Consumer<CompletableFuture<String>> end : ends) {
            CompletableFuture<String> call = service.inFlight(new CompletableFuture<>());
            CompletableFuture<String> next = call.handle(
                            (value, failure) -> service.inFlight(CompletableFuture.completedFuture("b")))
                    .thenCompose(second -> second);
            end.accept(call);
            assertThat(next).isCompletedWithValue("b");
        }
    }

    @Test
    void nextCallFindsThePlaceOfTheLastOneFree() {
        Service service = start();
        CompletableFuture<String> first = new CompletableFuture<>();
        CompletableFuture<String> both =
                service.inFlight(first).thenCompose(done -> service.inFlight(CompletableFuture.completedFuture("b")));
        first.complete("a");
        assertThat(both).isCompletedWithValue("b");
    }

    @Test
    void failingExpressionIsAFailedFuture() {
        Service service = start();
        assertThat(service.failingKey(null)).isCompletedExceptionally();
    }

    /** Methods that return futures of several types. */
    static class Service {

        private int calls;

        int calls() {
            return calls;
        }

        @RateLimited("once")
        public CompletableFuture<String> returning(@Nullable CompletableFuture<String> future) {
            return future;
        }

        @RateLimited("once")
        public CompletionStage<String> stage(String id) {
            throw new IllegalStateException(id);
        }

        @RateLimited("once")
        public Future<String> plain() {
            return CompletableFuture.completedFuture("plain");
        }

        @RateLimited("waiting")
        public CompletableFuture<String> waiting(CompletableFuture<String> future) {
            return future;
        }

        @RateLimited("waiting")
        public CompletableFuture<String> context() {
            calls++;
            return CompletableFuture.completedFuture("trace " + MDC.get("trace") + ", user " + USER.get());
        }

        @RateLimited("waiting")
        public CompletableFuture<String> caller() {
            var user = SecurityContextHolder.getContext().getAuthentication();
            ObservationRegistry anyone = ObservationRegistry.create();
            Observation observation = anyone.getCurrentObservation();
            return CompletableFuture.completedFuture((user == null ? "nobody" : user.getName()) + " in "
                    + (observation == null
                            ? "nothing"
                            : observation.getContext().getName()));
        }

        @RateLimited(algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public CompletableFuture<String> inFlight(CompletableFuture<String> future) {
            return future;
        }

        @RateLimited(algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1, policy = Policy.WAIT, maxWait = "50s")
        public CompletableFuture<String> turns(CompletableFuture<String> future) {
            return future;
        }

        @RateLimited(rate = "1/s", key = "#id.bytes")
        public CompletableFuture<String> failingKey(@Nullable String id) {
            return CompletableFuture.completedFuture(id);
        }
    }

    /** Keeps what it is given. */
    @Configuration(proxyBeanMethods = false)
    static class ManualExecutor {

        private final BlockingQueue<Runnable> tasks = new LinkedBlockingQueue<>();

        @Bean
        Executor applicationTaskExecutor() {
            return tasks::add;
        }

        private Runnable next() {
            try {
                return Objects.requireNonNull(tasks.poll(20, TimeUnit.SECONDS), "the executor was given no task");
            } catch (InterruptedException ex) {
                throw new IllegalStateException(ex);
            }
        }
    }

    /** Blocks whoever gives it a task while another one runs. */
    @Configuration(proxyBeanMethods = false)
    static class BoundedExecutor {

        @Bean
        SimpleAsyncTaskExecutor applicationTaskExecutor() {
            SimpleAsyncTaskExecutor executor = new SimpleAsyncTaskExecutor();
            executor.setConcurrencyLimit(1);
            return executor;
        }
    }

    /** Takes nothing. */
    @Configuration(proxyBeanMethods = false)
    static class FullExecutor {

        @Bean
        Executor applicationTaskExecutor() {
            return task -> {
                throw new RejectedExecutionException("full");
            };
        }
    }
}
