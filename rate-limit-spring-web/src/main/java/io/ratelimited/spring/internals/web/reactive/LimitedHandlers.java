package io.ratelimited.spring.internals.web.reactive;

import io.ratelimited.core.Ticker;
import io.ratelimited.spring.internals.aop.Declarations;
import io.ratelimited.spring.internals.call.EventLoops;
import io.ratelimited.spring.internals.request.ThreadUse;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.context.ApplicationContext;
import org.springframework.core.Ordered;
import org.springframework.core.ReactiveAdapter;
import org.springframework.core.ReactiveAdapterRegistry;
import org.springframework.core.annotation.AnnotationAwareOrderComparator;
import org.springframework.util.ClassUtils;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.method.HandlerMethod;
import org.springframework.web.reactive.DispatchExceptionHandler;
import org.springframework.web.reactive.HandlerAdapter;
import org.springframework.web.reactive.HandlerResult;
import org.springframework.web.reactive.function.server.RouterFunctions;
import org.springframework.web.reactive.function.server.ServerRequest;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.Disposable;
import reactor.core.Disposables;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * Calls handlers by the application's other adapters, with the request on the thread. Looks at the exchange as the
 * handler sees it, whose principal a filter behind ours may have set. Also called in the context of a management port,
 * which has adapters of its own. Owns the threads on which handler methods sleep.
 */
public final class LimitedHandlers implements HandlerAdapter, Ordered, DisposableBean {

    /** The most threads of handler methods that may sleep. */
    public static final int MOST_THREADS = Schedulers.DEFAULT_BOUNDED_ELASTIC_SIZE;

    private static final int SECONDS_IDLE = 60;
    private static final String NAME = "rate-limit-handlers";

    private final ReactiveRequests requests;
    private final ApplicationContext application;
    private final Ticker ticker;
    private final Map<ApplicationContext, List<HandlerAdapter>> adapters = new ConcurrentHashMap<>();
    /** Made for the first of them. */
    private final SingletonSupplier<Scheduler> threads = SingletonSupplier.of(() -> Schedulers.newBoundedElastic(
            MOST_THREADS, Schedulers.DEFAULT_BOUNDED_ELASTIC_QUEUESIZE, NAME, SECONDS_IDLE, true));

    public LimitedHandlers(ReactiveRequests requests, ApplicationContext application, Ticker ticker) {
        this.requests = requests;
        this.application = application;
        this.ticker = ticker;
    }

    /**
     * The threads of handler methods that may sleep for a limit. Not those of {@link Schedulers#boundedElastic}: Spring Security
     * checks passwords there, and requests that wait for a limit would hold up every login.
     */
    public Scheduler threads() {
        return threads.obtain();
    }

    /** Returns whether the calling thread is one of {@link #threads}. */
    static boolean isThread() {
        return Thread.currentThread().getName().startsWith(NAME);
    }

    @Override
    public void destroy() {
        threads().dispose();
    }

    /** All others of a context, as its dispatcher finds them. */
    private List<HandlerAdapter> adaptersOf(ApplicationContext context) {
        return BeanFactoryUtils.beansOfTypeIncludingAncestors(context, HandlerAdapter.class, true, false)
                .values()
                .stream()
                .filter(adapter -> adapter != this)
                .sorted(AnnotationAwareOrderComparator.INSTANCE)
                .toList();
    }

    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }

    @Override
    public boolean supports(Object handler) {
        return requests.areNeeded();
    }

    @Override
    public Mono<HandlerResult> handle(ServerWebExchange exchange, Object handler) {
        ApplicationContext known = exchange.getApplicationContext();
        ApplicationContext context = known == null ? application : known;
        List<HandlerAdapter> found = adapters.get(context);
        for (HandlerAdapter adapter : found == null ? adapters.computeIfAbsent(context, this::adaptersOf) : found) {
            if (adapter.supports(handler)) {
                return requests.with(
                        exchange,
                        request -> onEventLoop(
                                request,
                                handler instanceof HandlerMethod method
                                        ? call(adapter, method, exchange, request)
                                        : request.onThread(() -> {
                                            scope(exchange, request);
                                            return adapter.handle(exchange, handler);
                                        })));
            }
        }
        return Mono.error(new IllegalStateException("no HandlerAdapter for " + handler));
    }

    /** A handler function, too, gets the values that it waits for with the request on the thread. */
    private static void scope(ServerWebExchange exchange, ReactiveCurrentRequest request) {
        if (exchange.getAttribute(RouterFunctions.REQUEST_ATTRIBUTE) instanceof ServerRequest found) {
            ServerRequest scoped = ServerRequest.create(
                    new ScopedExchange(exchange, request.scopeOfThisThread()),
                    found.messageReaders(),
                    found.apiVersionStrategy());
            exchange.getAttributes().put(RouterFunctions.REQUEST_ATTRIBUTE, scoped);
        }
    }

    /**
     * What a handler returns goes on where it would without a limit: on the event loop, if the handler is called there. Reactor
     * Netty may stop reading a connection on which a response of one value is written by another thread.
     */
    private static Mono<HandlerResult> onEventLoop(ReactiveCurrentRequest request, Mono<HandlerResult> handled) {
        Executor loop = EventLoops.isCurrentThread() ? request.eventLoop() : null;
        if (loop == null) {
            return handled.map(result -> reporting(request, result));
        }
        Scheduler scheduler = Schedulers.fromExecutor(loop);
        return handled.map(result -> onEventLoop(scheduler, reporting(request, result)))
                .publishOn(scheduler);
    }

    /** The request learns of rejected calls that do not know it, such as those on other threads, by what a result throws. */
    private static HandlerResult reporting(ReactiveCurrentRequest request, HandlerResult handled) {
        Object value = handled.getReturnValue();
        ReactiveAdapter adapter = ReactiveAdapterRegistry.getSharedInstance().getAdapter(null, value);
        HandlerResult result = adapter != null && adapter.isMultiValue()
                ? with(endingWithResponse(request, Flux.from(adapter.toPublisher(value))), handled)
                : handled;
        DispatchExceptionHandler exceptions = result.getExceptionHandler();
        return exceptions == null
                ? result
                : result.setExceptionHandler((exchange, failure) -> {
                    request.failed(failure);
                    return exceptions.handleError(exchange, failure);
                });
    }

    /** Over HTTP/2, a write that fails ends the response, but Reactor Netty does not cancel what it has written from. */
    private static Flux<?> endingWithResponse(ReactiveCurrentRequest request, Flux<?> stream) {
        return stream.doOnSubscribe(reader -> request.responseEnd().tryRunAtEnd(failure -> {
            if (failure != null) {
                reader.cancel();
            }
        }));
    }

    private static HandlerResult onEventLoop(Scheduler loop, HandlerResult result) {
        Object value = result.getReturnValue();
        Mono<?> later = value instanceof CompletionStage<?> stage
                ? Mono.fromCompletionStage(stage)
                : value instanceof Mono<?> mono ? mono : null;
        if (later == null) {
            return result;
        }
        return with(later.publishOn(loop), result);
    }

    private static HandlerResult with(Object value, HandlerResult result) {
        HandlerResult changed =
                new HandlerResult(result.getHandler(), value, result.getReturnTypeSource(), result.getBindingContext());
        DispatchExceptionHandler exceptions = result.getExceptionHandler();
        return exceptions == null ? changed : changed.setExceptionHandler(exceptions);
    }

    private Mono<HandlerResult> call(
            HandlerAdapter adapter, HandlerMethod method, ServerWebExchange exchange, ReactiveCurrentRequest request) {
        return switch (threadUse(method)) {
            case NONE ->
                request.onThread(
                        () -> adapter.handle(new ScopedExchange(exchange, request.scopeOfThisThread()), method));
            case REPLY -> callOn(task -> forReply(request, task), adapter, method, exchange);
            case WAIT -> {
                Disposable.Swap latest = Disposables.swap();
                yield callOn(task -> forWait(request, task, latest), adapter, method, exchange)
                        .doOnCancel(latest::dispose);
            }
        };
    }

    private static Mono<HandlerResult> callOn(
            Executor threads, HandlerAdapter adapter, HandlerMethod method, ServerWebExchange exchange) {
        return Mono.defer(() -> adapter.handle(new ScopedExchange(exchange, threads), method))
                .subscribeOn(Schedulers.fromExecutor(threads));
    }

    /** A handler method that returns a plain value would block its event loop under WAIT, and on Redis. */
    private ThreadUse threadUse(HandlerMethod handler) {
        if (!requests.areBlocking()) {
            return ThreadUse.NONE;
        }
        Class<?> type = ClassUtils.getUserClass(AopUtils.getTargetClass(handler.getBean()));
        return requests.threadUse(Declarations.specific(handler.getMethod(), type));
    }

    /** Runs a task where it may block for a moment: not behind others that sleep. */
    private static void forReply(ReactiveCurrentRequest request, Runnable task) {
        Disposable unused = Schedulers.boundedElastic().schedule(() -> request.run(task));
    }

    /**
     * Runs a task where it may sleep, and reports to the request how long it waits for a thread.
     *
     * @param latest gets the task: a client that leaves wakes up the thread that sleeps for it
     */
    private void forWait(ReactiveCurrentRequest request, Runnable task, Disposable.Swap latest) {
        long scheduledAt = ticker.nanos();
        latest.replace(threads().schedule(() -> {
            request.waitedForThread(scheduledAt, ticker.nanos());
            request.run(task);
        }));
    }
}
