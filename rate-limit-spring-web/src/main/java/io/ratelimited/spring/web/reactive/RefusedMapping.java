package io.ratelimited.spring.web.reactive;

import org.springframework.core.Ordered;
import org.springframework.web.reactive.HandlerMapping;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.publisher.Mono;

/** Finds no handler for any request, and fails for those that are refused. */
public record RefusedMapping(ReactiveCors cors) implements HandlerMapping, Ordered {

    /** The attribute of an exchange that holds the refusal. */
    static final String REFUSED = RefusedMapping.class.getName();

    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }

    @Override
    public Mono<Object> getHandler(ServerWebExchange exchange) {
        RuntimeException refusal = exchange.getAttribute(REFUSED);
        return refusal == null ? Mono.empty() : cors.write(exchange).then(Mono.error(refusal));
    }
}
