package io.ratelimited.spring.internals.web.reactive;

import java.nio.file.Path;
import org.reactivestreams.Publisher;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.http.ZeroCopyHttpOutputMessage;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.http.server.reactive.ServerHttpResponseDecorator;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.ServerWebExchangeDecorator;
import reactor.core.publisher.Mono;

/**
 * An exchange that reports when a response of one value or without a body is committed: the client may have all of it before
 * the server reports its end. That of several values has its last chunk behind its end.
 */
final class CompletedExchange extends ServerWebExchangeDecorator {

    private final ServerHttpResponse response;

    /** @param completed may be called more than once */
    CompletedExchange(ServerWebExchange exchange, Runnable completed) {
        super(exchange);
        this.response = exchange.getResponse() instanceof ZeroCopyHttpOutputMessage
                ? new ZeroCopyResponse(exchange.getResponse(), completed)
                : new Response(exchange.getResponse(), completed);
    }

    @Override
    public ServerHttpResponse getResponse() {
        return response;
    }

    private static class Response extends ServerHttpResponseDecorator {

        private final Runnable completed;

        private Response(ServerHttpResponse response, Runnable completed) {
            super(response);
            this.completed = completed;
        }

        @Override
        public Mono<Void> writeWith(Publisher<? extends DataBuffer> body) {
            return body instanceof Mono
                    ? Mono.defer(() -> {
                        completeAtCommit();
                        return super.writeWith(body);
                    })
                    : super.writeWith(body);
        }

        @Override
        public Mono<Void> setComplete() {
            return Mono.defer(() -> {
                completeAtCommit();
                return super.setComplete();
            });
        }

        /** After all other actions before the commit, such as storing a session. */
        private void completeAtCommit() {
            beforeCommit(() -> Mono.fromRunnable(completed));
        }
    }

    private static final class ZeroCopyResponse extends Response implements ZeroCopyHttpOutputMessage {

        private ZeroCopyResponse(ServerHttpResponse response, Runnable completed) {
            super(response, completed);
        }

        @Override
        public Mono<Void> writeWith(Path file, long position, long count) {
            return ((ZeroCopyHttpOutputMessage) getDelegate()).writeWith(file, position, count);
        }
    }
}
