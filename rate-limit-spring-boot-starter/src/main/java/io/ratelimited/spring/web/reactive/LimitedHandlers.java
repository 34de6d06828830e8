package io.ratelimited.spring.web.reactive;

import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.support.AopUtils;
import org.springframework.core.Ordered;
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
 * handler sees it, whose principal a filter behind ours may have set.
 */
final class LimitedHandlers implements HandlerAdapter, Ordered {

    private final ReactiveRequests requests;
    private final Supplier<List<HandlerAdapter>> adapters;

    /** @param adapters all of the application, in their order; asked for by the first request */
    LimitedHandlers(ReactiveRequests requests, Supplier<Stream<HandlerAdapter>> adapters) {
        this.requests = requests;
        this.adapters = SingletonSupplier.of(
                () -> adapters.get().filter(adapter -> adapter != this).toList());
    }

    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }

    @Override
    public boolean supports(Object handler) {
        return requests.areNeeded() && adapter(handler) != null;
    }

    @Override
    public Mono<HandlerResult> handle(ServerWebExchange exchange, Object handler) {
        HandlerAdapter adapter = adapter(handler);
        if (adapter == null) {
            return Mono.error(new IllegalStateException("no adapter for " + handler));
        }
        return requests.of(exchange).flatMap(request -> {
            if (!(handler instanceof HandlerMethod method)) {
                return ReactiveRequests.scoped(Mono.defer(() -> adapter.handle(exchange, handler)), request);
            }
            Scheduler elsewhere = maySleep(method) ? Schedulers.boundedElastic() : null;
            ServerWebExchange scoped = new ScopedExchange(exchange, request, elsewhere);
            Mono<HandlerResult> called =
                    ReactiveRequests.scoped(Mono.defer(() -> adapter.handle(scoped, handler)), request);
            return elsewhere == null ? called : called.subscribeOn(elsewhere);
        });
    }

    private @Nullable HandlerAdapter adapter(Object handler) {
        for (HandlerAdapter adapter : adapters.get()) {
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
