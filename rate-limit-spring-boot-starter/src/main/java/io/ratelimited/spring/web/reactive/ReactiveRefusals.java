package io.ratelimited.spring.web.reactive;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.limit.LimitRegistry;
import io.ratelimited.spring.web.Refusal;
import java.util.function.Supplier;
import org.springframework.core.Ordered;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.web.reactive.HandlerMapping;
import org.springframework.web.server.ResponseStatusException;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebExceptionHandler;
import org.springframework.web.server.WebHandler;
import reactor.core.publisher.Mono;

/**
 * Answers refusals that nobody else has answered: behind the application's {@code @ExceptionHandler} methods and advice,
 * before Boot's handler of errors. A refusal in the filter is let fail inside the dispatcher, where advice can see it.
 */
final class ReactiveRefusals implements WebExceptionHandler, Ordered {

    /** Before Boot's handler of errors, which takes everything, at -1; a handler of the application may come earlier. */
    static final int ORDER = -2;

    private static final String REFUSED = ReactiveRefusals.class.getName();

    private final HttpStatusCode status;
    private final ReactiveRequests requests;
    private final LimitRegistry limits;
    private final Supplier<? extends WebHandler> dispatcher;

    /** @param dispatcher hands requests to their handlers */
    ReactiveRefusals(
            int status, ReactiveRequests requests, LimitRegistry limits, Supplier<? extends WebHandler> dispatcher) {
        this.status = HttpStatusCode.valueOf(status);
        this.requests = requests;
        this.limits = limits;
        this.dispatcher = dispatcher;
    }

    @Override
    public int getOrder() {
        return ORDER;
    }

    @Override
    public Mono<Void> handle(ServerWebExchange exchange, Throwable failure) {
        Refusal refusal = Refusal.in(failure);
        if (refusal == null || exchange.getResponse().isCommitted()) {
            return Mono.error(failure);
        }
        return isSeenByAdvice(exchange)
                ? write(exchange, refusal)
                : answer(exchange, refusal.exception())
                        .onErrorResume(ex -> Refusal.in(ex) == null ? Mono.error(ex) : write(exchange, refusal));
    }

    /** Advice of the application sees what handlers throw, and has not seen what a filter before them has thrown. */
    private static boolean isSeenByAdvice(ServerWebExchange exchange) {
        return exchange.getAttribute(REFUSED) != null
                || exchange.getAttribute(HandlerMapping.BEST_MATCHING_HANDLER_ATTRIBUTE) != null;
    }

    private Mono<Void> write(ServerWebExchange exchange, Refusal refusal) {
        ServerHttpResponse response = exchange.getResponse();
        if (response.isCommitted()) {
            return Mono.error(refusal.exception());
        }
        tellOf(refusal.exception(), exchange);
        HttpHeaders headers = response.getHeaders();
        String retryAfter = refusal.retryAfter();
        if (retryAfter != null) {
            headers.set(HttpHeaders.RETRY_AFTER, retryAfter);
        }
        if (Refusal.isPageWanted(exchange.getRequest().getHeaders().getFirst(HttpHeaders.ACCEPT))) {
            // Boot's handler of errors comes next, and shows the page of this status.
            return Mono.error(new ResponseStatusException(status, null, refusal.exception()));
        }
        byte[] body = refusal.body(status.value());
        response.setStatusCode(status);
        headers.set(HttpHeaders.CONTENT_TYPE, Refusal.CONTENT_TYPE);
        headers.setContentLength(body.length);
        return response.writeWith(
                Mono.fromSupplier(() -> response.bufferFactory().wrap(body)));
    }

    /** A refusal that was decided without the request has not been reported to it. */
    private void tellOf(RateLimitExceededException refusal, ServerWebExchange exchange) {
        ReactiveCurrentRequest call = ReactiveCurrentRequest.in(exchange);
        if (call != null && call.knows(refusal.limit())) {
            return;
        }
        limits.all().stream()
                .filter(limit -> limit.name().equals(refusal.limit()))
                .forEach(limit -> {
                    if (call != null) {
                        call.decided(limit.limit(), refusal.decision());
                    } else {
                        requests.write(limit.limit(), refusal.decision(), exchange.getResponse());
                    }
                });
    }

    /** Answers in a filter as the dispatcher would. */
    Mono<Void> answer(ServerWebExchange exchange, RateLimitExceededException refusal) {
        exchange.getAttributes().put(REFUSED, refusal);
        return dispatcher.get().handle(exchange);
    }

    /** Finds no handler for any request, and fails for those that are refused. */
    static final class RefusedMapping implements HandlerMapping, Ordered {

        @Override
        public int getOrder() {
            return HIGHEST_PRECEDENCE;
        }

        @Override
        public Mono<Object> getHandler(ServerWebExchange exchange) {
            RateLimitExceededException refusal = exchange.getAttribute(REFUSED);
            return refusal == null ? Mono.empty() : Mono.error(refusal);
        }
    }
}
