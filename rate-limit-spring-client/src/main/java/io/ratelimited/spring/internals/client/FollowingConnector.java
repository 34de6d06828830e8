package io.ratelimited.spring.internals.client;

import java.net.URI;
import java.util.function.Function;
import java.util.function.Supplier;
import org.reactivestreams.Publisher;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.core.io.buffer.DataBufferUtils;
import org.springframework.http.HttpMethod;
import org.springframework.http.client.reactive.ClientHttpConnector;
import org.springframework.http.client.reactive.ClientHttpRequest;
import org.springframework.http.client.reactive.ClientHttpRequestDecorator;
import org.springframework.http.client.reactive.ClientHttpResponse;
import reactor.core.publisher.Mono;

/** As {@link FollowingRequestFactory}, for {@code WebClient}. */
public final class FollowingConnector implements ClientHttpConnector, DisposableBean {

    /** Attribute of a request that is part of a limited call, for libraries that pass attributes on. */
    static final String LIMITED = "io.ratelimited.limited";

    private final HttpLibrary<ClientHttpConnector> library;
    private final Supplier<LimitedClients> clients;

    /** @param still makes the same library, which follows no redirects */
    public FollowingConnector(
            ClientHttpConnector usual, Supplier<ClientHttpConnector> still, Supplier<LimitedClients> clients) {
        this.library = new HttpLibrary<>(usual, still);
        this.clients = clients;
    }

    @Override
    public Mono<ClientHttpResponse> connect(
            HttpMethod method, URI uri, Function<? super ClientHttpRequest, Mono<Void>> writer) {
        return Mono.deferContextual(context -> {
            ClientCall call = context.getOrDefault(ClientCall.class, null);
            return call == null
                    ? library.usual().connect(method, uri, writer)
                    : follow(call, Hop.first(method, uri), writer);
        });
    }

    private Mono<ClientHttpResponse> follow(
            ClientCall call, Hop hop, Function<? super ClientHttpRequest, Mono<Void>> writer) {
        call.answersFrom(hop.responder(call, clients.get()));
        return library.still()
                .connect(hop.method(), hop.uri(), request -> writer.apply(reduced(hop, request)))
                .flatMap(response -> {
                    Hop next = hop.next(response.getStatusCode(), response.getHeaders());
                    if (next == null) {
                        return Mono.just(response);
                    }
                    return response.getBody()
                            .doOnNext(DataBufferUtils::release)
                            .then(Mono.defer(() -> follow(call, next, writer)));
                });
    }

    @Override
    public void destroy() throws Exception {
        library.close();
    }

    private static ClientHttpRequest reduced(Hop hop, ClientHttpRequest request) {
        request.getAttributes().put(LIMITED, true);
        request.beforeCommit(() -> Mono.fromRunnable(() -> {
            hop.reduce(request.getHeaders());
            if (!hop.hasCredentials()) {
                request.getCookies().clear();
            }
        }));
        return hop.hasBody() ? request : new WithoutBody(request);
    }

    /** A request whose body is dropped. */
    private static final class WithoutBody extends ClientHttpRequestDecorator {

        private WithoutBody(ClientHttpRequest request) {
            super(request);
        }

        /** A stream has not been read, and perhaps can be read only once. The buffer of a value may have been made. */
        @Override
        public Mono<Void> writeWith(Publisher<? extends DataBuffer> body) {
            return Mono.defer(() -> {
                if (body instanceof Mono<? extends DataBuffer> value) {
                    value.subscribe(DataBufferUtils::release, failure -> {}).dispose();
                }
                return setComplete();
            });
        }

        @Override
        public Mono<Void> writeAndFlushWith(Publisher<? extends Publisher<? extends DataBuffer>> body) {
            return Mono.defer(this::setComplete);
        }
    }
}
