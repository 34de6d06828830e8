package io.ratelimited.spring.web.reactive;

import io.ratelimited.spring.CurrentRequest;
import java.security.Principal;
import org.jspecify.annotations.Nullable;
import org.reactivestreams.Subscription;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.http.codec.multipart.Part;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.http.server.reactive.ServerHttpRequestDecorator;
import org.springframework.util.MultiValueMap;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.ServerWebExchangeDecorator;
import org.springframework.web.server.WebSession;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.util.context.Context;

/**
 * An exchange for a handler: what a handler method waits for before it is called arrives with the request on the thread,
 * since the method is called there.
 */
final class ScopedExchange extends ServerWebExchangeDecorator {

    private final CurrentRequest call;
    private final @Nullable Scheduler scheduler;
    private final ServerHttpRequest request;

    /** @param scheduler where all of it arrives; null for wherever it does by itself */
    ScopedExchange(ServerWebExchange exchange, CurrentRequest call, @Nullable Scheduler scheduler) {
        super(exchange);
        this.call = call;
        this.scheduler = scheduler;
        this.request = new ServerHttpRequestDecorator(exchange.getRequest()) {
            @Override
            public Flux<DataBuffer> getBody() {
                return scoped(super.getBody());
            }
        };
    }

    @Override
    public ServerHttpRequest getRequest() {
        return request;
    }

    @Override
    public Mono<WebSession> getSession() {
        return scoped(super.getSession());
    }

    @Override
    @SuppressWarnings("unchecked")
    public <T extends Principal> Mono<T> getPrincipal() {
        return (Mono<T>) scoped(super.getPrincipal());
    }

    @Override
    public Mono<MultiValueMap<String, String>> getFormData() {
        return scoped(super.getFormData());
    }

    @Override
    public Mono<MultiValueMap<String, Part>> getMultipartData() {
        return scoped(super.getMultipartData());
    }

    private <T> Mono<T> scoped(Mono<T> source) {
        Mono<T> here = scheduler == null ? source : source.publishOn(scheduler);
        return new Mono<>() {
            @Override
            public void subscribe(CoreSubscriber<? super T> actual) {
                here.subscribe(new ScopedSubscriber<>(actual, call));
            }
        };
    }

    private <T> Flux<T> scoped(Flux<T> source) {
        Flux<T> here = scheduler == null ? source : source.publishOn(scheduler);
        return new Flux<>() {
            @Override
            public void subscribe(CoreSubscriber<? super T> actual) {
                here.subscribe(new ScopedSubscriber<>(actual, call));
            }
        };
    }

    /** Hands on all signals with a request on the thread. */
    private record ScopedSubscriber<T>(CoreSubscriber<? super T> actual, CurrentRequest request)
            implements CoreSubscriber<T> {

        @Override
        public Context currentContext() {
            return actual.currentContext();
        }

        @Override
        public void onSubscribe(Subscription subscription) {
            ReactiveRequests.run(request, () -> actual.onSubscribe(subscription));
        }

        @Override
        public void onNext(T value) {
            ReactiveRequests.run(request, () -> actual.onNext(value));
        }

        @Override
        public void onError(Throwable failure) {
            ReactiveRequests.run(request, () -> actual.onError(failure));
        }

        @Override
        public void onComplete() {
            ReactiveRequests.run(request, actual::onComplete);
        }
    }
}
