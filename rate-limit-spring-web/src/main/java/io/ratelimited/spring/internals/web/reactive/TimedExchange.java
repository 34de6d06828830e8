package io.ratelimited.spring.internals.web.reactive;

import io.ratelimited.spring.internals.call.CallerTime;
import io.ratelimited.spring.internals.call.CallerWait;
import org.reactivestreams.Publisher;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.http.codec.multipart.Part;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.http.server.reactive.ServerHttpRequestDecorator;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.http.server.reactive.ServerHttpResponseDecorator;
import org.springframework.util.MultiValueMap;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.ServerWebExchangeDecorator;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** An exchange whose waits for bytes of its client, and until its client takes bytes, are measured. */
final class TimedExchange extends ServerWebExchangeDecorator {

    private final CallerTime time;
    private final ServerHttpRequest request;
    private final ServerHttpResponse response;

    TimedExchange(ServerWebExchange exchange, CallerTime time) {
        super(exchange);
        this.time = time;
        this.request = new Request(exchange.getRequest(), time);
        this.response = new Response(exchange.getResponse(), time);
    }

    @Override
    public ServerHttpRequest getRequest() {
        return request;
    }

    @Override
    public ServerHttpResponse getResponse() {
        return response;
    }

    /** Read by the exchange itself, from a request that is not ours. */
    @Override
    public Mono<MultiValueMap<String, String>> getFormData() {
        return untilItIsHere(super.getFormData());
    }

    @Override
    public Mono<MultiValueMap<String, Part>> getMultipartData() {
        return untilItIsHere(super.getMultipartData());
    }

    private <T> Mono<T> untilItIsHere(Mono<T> data) {
        return Mono.defer(() -> {
            CallerWait wait = new CallerWait(time);
            wait.begin();
            return data.doOnTerminate(wait::end).doOnCancel(wait::end);
        });
    }

    private static final class Request extends ServerHttpRequestDecorator {

        private final CallerTime time;

        private Request(ServerHttpRequest request, CallerTime time) {
            super(request);
            this.time = time;
        }

        @Override
        public Flux<DataBuffer> getBody() {
            return new TimedBody<>(super.getBody(), new CallerWait(time), true);
        }
    }

    private static final class Response extends ServerHttpResponseDecorator {

        private final CallerTime time;

        private Response(ServerHttpResponse response, CallerTime time) {
            super(response);
            this.time = time;
        }

        @Override
        public Mono<Void> writeWith(Publisher<? extends DataBuffer> body) {
            return Mono.defer(() -> {
                CallerWait wait = waitFromCommit(body instanceof Mono);
                return super.writeWith(body instanceof Mono ? body : new TimedBody<>(Flux.from(body), wait, false))
                        .doFinally(signal -> wait.end());
            });
        }

        @Override
        public Mono<Void> writeAndFlushWith(Publisher<? extends Publisher<? extends DataBuffer>> body) {
            return Mono.defer(() -> {
                CallerWait wait = waitFromCommit(false);
                return super.writeAndFlushWith(new TimedBody<>(Flux.from(body), wait, false))
                        .doFinally(signal -> wait.end());
            });
        }

        /**
         * A wait that is possible when all actions before the commit have run, such as storing a session.
         *
         * @param begins whether it begins then, since there is one value, which has come
         */
        private CallerWait waitFromCommit(boolean begins) {
            CallerWait wait = new CallerWait(time);
            if (!isCommitted()) {
                wait.hold();
                beforeCommit(() -> Mono.fromRunnable(wait::release));
            }
            if (begins) {
                wait.begin();
            }
            return wait;
        }
    }
}
