package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.internals.request.CurrentRequest;
import io.reactivex.rxjava3.core.Completable;
import io.reactivex.rxjava3.core.Flowable;
import io.reactivex.rxjava3.core.Maybe;
import io.reactivex.rxjava3.core.Observable;
import io.reactivex.rxjava3.core.Single;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Flow;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.stream.IntStream;
import org.aspectj.lang.annotation.Aspect;
import org.aspectj.lang.annotation.Before;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.reactivestreams.Publisher;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import reactor.adapter.JdkFlowAdapter;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;
import reactor.util.context.Context;

/** What is particular to reactive methods. */
final class ReactiveCallsTest {

    private final ManualTicker ticker = new ManualTicker();
    private @Nullable AnnotationConfigApplicationContext context;

    private Service start(String... properties) {
        context = ContextRunner.start(
                ticker, new Class<?>[] {Service.class, Requests.class, InnerAspect.class}, properties);
        return context.getBean(Service.class);
    }

    @AfterEach
    void stop() {
        if (context != null) {
            context.close();
        }
    }

    private static final String[] ONCE = {"rate-limit.limits.once.rate=1/s"};

    @Test
    void everySubscriptionIsDecidedAnewAndCallsTheMethodAnew() {
        Service service = start(ONCE);
        Mono<Integer> mono = service.count();
        assertThat(service.calls()).hasValue(0);
        assertThat(mono.block()).isEqualTo(1);
        assertThatThrownBy(mono::block).isInstanceOf(RateLimitExceededException.class);
        ticker.advance(Duration.ofSeconds(1));
        assertThat(mono.block()).isEqualTo(2);
    }

    @Test
    void contextOfTheSubscriberReachesTheMethod() {
        Service service = start("rate-limit.limits.once.rate=1/s", "rate-limit.limits.once.policy=wait");
        assertThat(service.fromContext().contextWrite(Context.of("user", "ann")).block())
                .isEqualTo("ann");
        CompletableFuture<String> waited =
                service.fromContext().contextWrite(Context.of("user", "bob")).toFuture();
        ticker.advance(Duration.ofSeconds(1));
        assertThat(waited.orTimeout(20, TimeUnit.SECONDS).join()).isEqualTo("bob");
    }

    @Test
    void requestIsFoundInTheContextOfTheSubscriber() {
        Service service = start("rate-limit.limits.once.rate=1/s", "rate-limit.limits.once.key=header('user')");
        Mono<Integer> mono = service.count();
        assertThat(mono.contextWrite(Context.of("user", "ann")).block()).isEqualTo(1);
        assertThat(mono.contextWrite(Context.of("user", "bob")).block()).isEqualTo(2);
        assertThatThrownBy(() -> mono.contextWrite(Context.of("user", "ann")).block())
                .isInstanceOf(RateLimitExceededException.class);
    }

    @Test
    void typeArgumentOfTheClassMaySayThatAMethodIsReactive() {
        context = ContextRunner.start(ticker, new Class<?>[] {MonoLookup.class});
        Mono<String> mono = context.getBean(MonoLookup.class).find();
        Disposable inFlight = mono.subscribe();
        assertThat(mono.toFuture()).isCompletedExceptionally();
        inFlight.dispose();
        assertThat(mono.toFuture()).isNotDone();
    }

    @Test
    void failingExpressionFailsTheSubscription() {
        Service service = start("rate-limit.limits.once.rate=1/s", "rate-limit.limits.once.permits=args[5]");
        Mono<Integer> mono = service.count();
        assertThatThrownBy(mono::block).isInstanceOf(IllegalStateException.class);
        assertThat(service.calls()).hasValue(0);
    }

    @Test
    void fallbackMayBeReactive() {
        Service service = start("rate-limit.limits.once.rate=1/s", "rate-limit.limits.once.fallback=zero");
        assertThat(service.count().block()).isEqualTo(1);
        assertThat(service.count().block()).isZero();
    }

    @Test
    void everyTypeThatSpringAdaptsIsLimited() {
        Service service = start(ONCE);
        List<Supplier<?>> calls = List.of(
                () -> service.single().blockingGet(),
                () -> service.maybe().blockingGet(),
                () -> service.completable().blockingAwait(20, TimeUnit.SECONDS),
                () -> service.flowable().blockingLast(),
                () -> service.observable().blockingLast(),
                () -> Flux.from(service.publisher()).blockLast(),
                () -> JdkFlowAdapter.flowPublisherToFlux(service.flowPublisher())
                        .blockLast());
        for (Supplier<?> call : calls) {
            int before = service.calls().get();
            assertThat(call.get()).isNotNull();
            assertThatThrownBy(call::get).isInstanceOf(RateLimitExceededException.class);
            assertThat(service.calls()).hasValue(before + 1);
            ticker.advance(Duration.ofSeconds(1));
        }
    }

    @Test
    void nextCallFindsThePlaceOfTheLastOneFree() {
        Service service =
                start("rate-limit.limits.once.algorithm=concurrency", "rate-limit.limits.once.max-concurrent=1");
        Mono<Integer> mono = service.count();
        assertThat(mono.flatMap(first -> mono).flatMap(second -> mono).block()).isEqualTo(3);
        assertThat(service.stream().concatWith(service.stream()).collectList().block())
                .containsExactly(1, 2, 1, 2);
        assertThat(service.stream()
                        .take(1)
                        .concatWith(service.stream())
                        .collectList()
                        .block())
                .containsExactly(1, 1, 2);
    }

    @Test
    void innerAspectsOfAMethodWorkOnTheThreadOfTheSubscriber() {
        Service service = start(ONCE);
        Mono<Integer> mono = service.count();
        assertThat(mono.subscribeOn(Schedulers.boundedElastic()).block()).isEqualTo(1);
        assertThat(InnerAspect.CALLS)
                .contains(service.getClass().getSuperclass().getSimpleName() + ".count");
    }

    @Test
    void hundredsOfCallsWaitOnOneThreadWithoutHoldingItAndGoInTheOrderOfTheirGrants() {
        Service service = start(
                "rate-limit.limits.once.rate=1/s",
                "rate-limit.limits.once.policy=wait",
                "rate-limit.limits.once.max-wait=1h");
        ExecutorService only = Executors.newSingleThreadExecutor();
        Scheduler oneThread = Schedulers.fromExecutor(only);
        List<Integer> order = new CopyOnWriteArrayList<>();
        List<CompletableFuture<Integer>> calls = new ArrayList<>();
        try {
            service.count().block();
            for (int i = 0; i < 200; i++) {
                int number = i;
                calls.add(service.count()
                        .map(count -> number)
                        .publishOn(oneThread)
                        .doOnNext(order::add)
                        .subscribeOn(oneThread)
                        .toFuture());
            }
            // Whatever the one thread runs next, it runs after the subscriptions: none has parked it.
            CompletableFuture.runAsync(() -> {}, only)
                    .orTimeout(20, TimeUnit.SECONDS)
                    .join();
            assertThat(ticker.sleeping()).isEqualTo(200);
            assertThat(service.calls()).hasValue(1);
            for (CompletableFuture<Integer> call : calls) {
                ticker.advance(Duration.ofSeconds(1));
                call.orTimeout(20, TimeUnit.SECONDS).join();
            }
        } finally {
            only.shutdown();
        }
        assertThat(order).isEqualTo(IntStream.range(0, 200).boxed().toList());
        assertThat(service.calls()).hasValue(201);
    }

    @Test
    void bodyAfterAWaitDoesNotRunOnTheThreadThatKeepsTime() {
        Service service = start("rate-limit.limits.once.rate=1/s", "rate-limit.limits.once.policy=wait");
        service.thread().block();
        CompletableFuture<Thread> waited = service.thread().toFuture();
        ticker.advance(Duration.ofSeconds(1));
        assertThat(waited.orTimeout(20, TimeUnit.SECONDS).join()).isNotSameAs(Thread.currentThread());
    }

    @Test
    void subscriptionThatIsDisposedOfWhileItWaitsNeverCallsTheMethod() {
        Service service = start("rate-limit.limits.once.rate=1/s", "rate-limit.limits.once.policy=wait");
        service.count().block();
        Disposable waiting = service.count().subscribe();
        waiting.dispose();
        assertThat(ticker.sleeping()).isZero();
        ticker.advance(Duration.ofSeconds(1));
        assertThat(service.count().block()).isEqualTo(2);
    }

    /** One limit, shared by a method of every reactive type. */
    static class Service {

        private final AtomicInteger calls = new AtomicInteger();

        AtomicInteger calls() {
            return calls;
        }

        @RateLimited("once")
        public Mono<Integer> count() {
            return Mono.just(calls.incrementAndGet());
        }

        @SuppressWarnings("unchecked") // only the method that returns a number calls it
        <T> Mono<T> zero() {
            return (Mono<T>) Mono.just(0);
        }

        @RateLimited("once")
        public Mono<String> fromContext() {
            return Mono.deferContextual(view -> Mono.just(view.get("user")));
        }

        @RateLimited("once")
        public Mono<Thread> thread() {
            return Mono.just(Thread.currentThread());
        }

        @RateLimited("once")
        public Flux<Integer> stream() {
            return Flux.just(1, 2);
        }

        @RateLimited("once")
        public Publisher<Integer> publisher() {
            return Flux.just(calls.incrementAndGet());
        }

        @RateLimited("once")
        public Flow.Publisher<Integer> flowPublisher() {
            return JdkFlowAdapter.publisherToFlowPublisher(Flux.just(calls.incrementAndGet()));
        }

        @RateLimited("once")
        public Single<Integer> single() {
            return Single.just(calls.incrementAndGet());
        }

        @RateLimited("once")
        public Maybe<Integer> maybe() {
            return Maybe.just(calls.incrementAndGet());
        }

        @RateLimited("once")
        public Completable completable() {
            calls.incrementAndGet();
            return Completable.complete();
        }

        @RateLimited("once")
        public Flowable<Integer> flowable() {
            return Flowable.just(calls.incrementAndGet());
        }

        @RateLimited("once")
        public Observable<Integer> observable() {
            return Observable.just(calls.incrementAndGet());
        }
    }

    abstract static class Lookup<T> {

        @RateLimited(algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public T find() {
            return start();
        }

        abstract T start();
    }

    static class MonoLookup extends Lookup<Mono<String>> {

        @Override
        Mono<String> start() {
            return Mono.never();
        }
    }

    /** Advice of an application, inside that of the limits. */
    @Aspect
    static class InnerAspect {

        static final List<String> CALLS = new CopyOnWriteArrayList<>();

        @Before("execution(reactor.core.publisher.Mono count())")
        public void before(org.aspectj.lang.JoinPoint call) {
            CALLS.add(call.getSignature().getDeclaringType().getSimpleName() + "."
                    + call.getSignature().getName());
        }
    }

    /** Requests whose headers are the entries of the Reactor context. */
    static class Requests implements CurrentRequest.Source {

        @Override
        public @Nullable CurrentRequest current() {
            return null;
        }

        @Override
        public CurrentRequest current(Function<Object, @Nullable Object> reactorContext) {
            return new ContextRequest(reactorContext);
        }
    }

    private record ContextRequest(Function<Object, @Nullable Object> reactorContext) implements CurrentRequest {

        @Override
        public @Nullable String clientIp() {
            return null;
        }

        @Override
        public java.security.@Nullable Principal principal() {
            return null;
        }

        @Override
        public @Nullable String header(String name) {
            return (String) reactorContext.apply(name);
        }

        @Override
        public @Nullable String session() {
            return null;
        }

        @Override
        public void decided(
                NamedLimit limit,
                io.ratelimited.core.Limit applied,
                Outcome outcome,
                Supplier<io.ratelimited.core.Decision> decision) {
            // Nobody reads the headers of a response.
        }
    }
}
