package io.ratelimited.spring.web.reactive;

import io.ratelimited.core.Ticker;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.BeanFactoryUtils;
import org.springframework.context.ApplicationContext;
import org.springframework.core.Ordered;
import org.springframework.core.annotation.AnnotationAwareOrderComparator;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.method.HandlerMethod;
import org.springframework.web.reactive.HandlerAdapter;
import org.springframework.web.reactive.HandlerResult;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * Calls handlers by the application's other adapters, with the request on the thread. Looks at the exchange as the
 * handler sees it, whose principal a filter behind ours may have set. Also called in the context of a management port,
 * which has adapters of its own.
 */
final class LimitedHandlers implements HandlerAdapter, Ordered {

    private final ReactiveRequests requests;
    private final ReactiveRefusals refusals;
    private final ApplicationContext application;
    private final Ticker ticker;
    private final Supplier<List<HandlerAdapter>> adapters;
    private final Map<ApplicationContext, List<HandlerAdapter>> adaptersOfOthers = new ConcurrentHashMap<>();

    LimitedHandlers(
            ReactiveRequests requests, ReactiveRefusals refusals, ApplicationContext application, Ticker ticker) {
        this.requests = requests;
        this.refusals = refusals;
        this.application = application;
        this.ticker = ticker;
        this.adapters = SingletonSupplier.of(() -> adaptersOf(application));
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
        return requests.areNeeded() && adapter(adapters.get(), handler) != null;
    }

    @Override
    public Mono<HandlerResult> handle(ServerWebExchange exchange, Object handler) {
        ApplicationContext context = exchange.getApplicationContext();
        HandlerAdapter adapter = adapter(
                context == null || context == application
                        ? adapters.get()
                        : adaptersOfOthers.computeIfAbsent(context, this::adaptersOf),
                handler);
        if (adapter == null) {
            return Mono.error(new IllegalStateException("no adapter for " + handler));
        }
        return requests.of(exchange).flatMap(request -> {
            if (!(handler instanceof HandlerMethod method)) {
                return ReactiveRequests.scoped(Mono.defer(() -> adapter.handle(exchange, handler)), request);
            }
            Scheduler elsewhere =
                    maySleep(method) ? new HandlerScheduler(Schedulers.boundedElastic(), request, ticker) : null;
            ServerWebExchange scoped = new ScopedExchange(exchange, request, elsewhere);
            Mono<HandlerResult> called = ReactiveRequests.scoped(
                            Mono.defer(() -> adapter.handle(scoped, handler)), request)
                    .map(result -> refusals.withhold(result, method));
            return elsewhere == null ? called : called.subscribeOn(elsewhere);
        });
    }

    private static @Nullable HandlerAdapter adapter(List<HandlerAdapter> adapters, Object handler) {
        for (HandlerAdapter adapter : adapters) {
            if (adapter.supports(handler)) {
                return adapter;
            }
        }
        return null;
    }

    /** A handler method under WAIT that returns a plain value would hold up its event loop. */
    private boolean maySleep(HandlerMethod method) {
        return requests.maySleep(
                AopUtils.getMostSpecificMethod(method.getMethod(), AopUtils.getTargetClass(method.getBean())));
    }
}
