package io.ratelimited.spring.web;

import io.micrometer.context.ThreadLocalAccessor;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.spring.CurrentRequest;
import io.ratelimited.spring.RateLimitProperties.Http;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.publisher.Mono;

/**
 * Finds the WebFlux request of a call in the Reactor context. Methods that return plain values have none: for them the
 * request is on the thread, if {@code spring.reactor.context-propagation} is {@code auto}.
 */
final class ReactiveRequests implements CurrentRequest.Source {

    /** Key of the request in the Reactor context. */
    static final String KEY = CurrentRequest.class.getName();

    private static final ThreadLocal<CurrentRequest> ON_THREAD = new ThreadLocal<>();

    private final Http http;
    private final ClientAddress clients;

    ReactiveRequests(Http http) {
        this.http = http;
        this.clients = new ClientAddress(http.ipv6PrefixLength());
    }

    @Override
    public @Nullable CurrentRequest current() {
        return ON_THREAD.get();
    }

    @Override
    public @Nullable CurrentRequest current(Function<Object, @Nullable Object> reactorContext) {
        return reactorContext.apply(KEY) instanceof CurrentRequest request ? request : current();
    }

    Mono<ReactiveCurrentRequest> of(ServerWebExchange exchange) {
        return ReactiveCurrentRequest.of(exchange, clients, http.headers());
    }

    /** Tells a response of a refusal, where no filter has made a request of its exchange. */
    void write(Limit limit, Decision refusal, ServerHttpResponse response) {
        LimitFields fields = new LimitFields();
        fields.decided(limit, refusal);
        fields.write(http.headers(), response.getHeaders()::set);
    }

    /** Puts the request on the thread wherever Reactor restores thread locals. */
    static final class Accessor implements ThreadLocalAccessor<CurrentRequest> {

        @Override
        public Object key() {
            return KEY;
        }

        @Override
        public @Nullable CurrentRequest getValue() {
            return ON_THREAD.get();
        }

        @Override
        public void setValue(CurrentRequest request) {
            ON_THREAD.set(request);
        }

        @Override
        public void setValue() {
            ON_THREAD.remove();
        }
    }
}
