package io.ratelimited.spring.internals.web.reactive;

import java.nio.file.Path;
import org.reactivestreams.Publisher;
import org.springframework.core.io.FileSystemResource;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.core.io.buffer.DataBufferUtils;
import org.springframework.http.ZeroCopyHttpOutputMessage;
import org.springframework.http.server.reactive.ServerHttpResponseDecorator;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.ServerWebExchangeDecorator;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * An exchange that reports when its response is complete, before the client can know it: a response of one value when it is
 * committed, one of known length before its last part is written. Others have their last chunk behind their end, and those
 * without a body are sent then.
 */
final class CompletedExchange extends ServerWebExchangeDecorator {

    private final Response response;

    /** @param completed may be called more than once */
    CompletedExchange(ServerWebExchange exchange, Runnable completed) {
        super(exchange);
        this.response = new Response(exchange, completed);
    }

    @Override
    public Response getResponse() {
        return response;
    }

    private static final class Response extends ServerHttpResponseDecorator implements ZeroCopyHttpOutputMessage {

        private static final int PART_BYTES = 8192;

        private final Runnable completed;
        /** Bytes of a body of known length that have not been written; negative if the length is not known. */
        private long left;

        private Response(ServerWebExchange exchange, Runnable completed) {
            super(exchange.getResponse());
            this.completed = completed;
        }

        @Override
        public Mono<Void> writeWith(Publisher<? extends DataBuffer> body) {
            if (body instanceof Mono<? extends DataBuffer> value) {
                return super.writeWith(value.doOnNext(all -> complete()));
            }
            return Mono.defer(() -> {
                left = getHeaders().getContentLength();
                return super.writeWith(Flux.from(body).doOnNext(this::follow));
            });
        }

        private void follow(DataBuffer part) {
            left -= part.readableByteCount();
            if (left == 0) {
                complete();
            }
        }

        /** If nothing is sent yet: after all other actions before the commit, such as storing a session. */
        private void complete() {
            if (isCommitted()) {
                completed.run();
            } else {
                beforeCommit(() -> Mono.fromRunnable(completed));
            }
        }

        /** Part by part: of a copy by the kernel, only the end is known, which the client may know before. */
        @Override
        public Mono<Void> writeWith(Path file, long position, long count) {
            Flux<DataBuffer> parts =
                    DataBufferUtils.read(new FileSystemResource(file), position, bufferFactory(), PART_BYTES);
            return writeWith(DataBufferUtils.takeUntilByteCount(parts, count));
        }
    }
}
