package io.ratelimited.spring.internals.web.reactive;

import java.security.Principal;
import java.util.concurrent.Executor;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.core.io.buffer.DataBufferUtils;
import org.springframework.http.codec.multipart.Part;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.http.server.reactive.ServerHttpRequestDecorator;
import org.springframework.util.MultiValueMap;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.ServerWebExchangeDecorator;
import org.springframework.web.server.WebSession;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Scheduler;
import reactor.core.scheduler.Schedulers;

/**
 * An exchange for a handler: the values that a handler method waits for before it is called arrive on a thread that has the
 * request, since the method is called there.
 */
final class ScopedExchange extends ServerWebExchangeDecorator {

    private final Executor threads;
    private final ServerHttpRequest request;

    /** @param threads runs tasks with the request on the thread */
    ScopedExchange(ServerWebExchange exchange, Executor threads) {
        super(exchange);
        this.threads = threads;
        this.request = new ServerHttpRequestDecorator(exchange.getRequest()) {

            /** Asks for one buffer at a time, so that a body is never read ahead of the handler. */
            @Override
            public Flux<DataBuffer> getBody() {
                return super.getBody()
                        .publishOn(scheduler(), 1)
                        .doOnDiscard(DataBuffer.class, DataBufferUtils::release);
            }
        };
    }

    private Scheduler scheduler() {
        return Schedulers.fromExecutor(threads);
    }

    @Override
    public ServerHttpRequest getRequest() {
        return request;
    }

    @Override
    public Mono<WebSession> getSession() {
        return super.getSession().publishOn(scheduler());
    }

    @Override
    public <T extends Principal> Mono<T> getPrincipal() {
        return super.<T>getPrincipal().publishOn(scheduler());
    }

    @Override
    public Mono<MultiValueMap<String, String>> getFormData() {
        return super.getFormData().publishOn(scheduler());
    }

    @Override
    public Mono<MultiValueMap<String, Part>> getMultipartData() {
        return super.getMultipartData().publishOn(scheduler());
    }
}
