package io.ratelimited.spring.web.reactive;

import io.ratelimited.spring.limit.LimitRegistry;
import io.ratelimited.spring.web.InvalidPermitsLog;
import io.ratelimited.spring.web.Refusal;
import io.ratelimited.spring.web.RefusalHandlers;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.core.Ordered;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.web.method.HandlerMethod;
import org.springframework.web.reactive.DispatchExceptionHandler;
import org.springframework.web.reactive.DispatcherHandler;
import org.springframework.web.reactive.HandlerMapping;
import org.springframework.web.reactive.HandlerResult;
import org.springframework.web.server.ResponseStatusException;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebExceptionHandler;
import reactor.core.publisher.Mono;

/**
 * Answers refusals that the application does not answer itself, before Boot's handler of errors. A refusal in a filter is let
 * fail inside the dispatcher, where advice that is made for refusals can see it.
 */
public final class ReactiveRefusals implements WebExceptionHandler, Ordered {

    /** Before Boot's handler of errors, which takes everything, at -1; a handler of the application may come earlier. */
    static final int ORDER = -2;

    private final int status;
    private final ReactiveRequests requests;
    private final LimitRegistry limits;
    private final RefusalHandlers handlers;
    private final ReactiveProblems problems;
    private final InvalidPermitsLog log;
    private final Supplier<DispatcherHandler> dispatcher;

    /**
     * @param status of requests over a limit
     * @param dispatcher hands requests to their handlers
     */
    public ReactiveRefusals(
            int status,
            ReactiveRequests requests,
            LimitRegistry limits,
            RefusalHandlers handlers,
            ReactiveProblems problems,
            InvalidPermitsLog log,
            Supplier<DispatcherHandler> dispatcher) {
        this.status = status;
        this.requests = requests;
        this.limits = limits;
        this.handlers = handlers;
        this.problems = problems;
        this.log = log;
        this.dispatcher = dispatcher;
    }

    @Override
    public int getOrder() {
        return ORDER;
    }

    @Override
    public Mono<Void> handle(ServerWebExchange exchange, Throwable failure) {
        Refusal refusal = in(failure);
        if (refusal == null || exchange.getResponse().isCommitted()) {
            return Mono.error(failure);
        }
        return isSeenByAdvice(exchange)
                ? write(exchange, refusal)
                : answer(exchange, refusal.exception())
                        .onErrorResume(ex -> in(ex) == null ? Mono.error(ex) : write(exchange, refusal));
    }

    private @Nullable Refusal in(Throwable failure) {
        return Refusal.in(failure, status, limits::findsItsLimit);
    }

    /** Advice of the application sees what handlers throw, and has not seen what a filter before them has thrown. */
    private static boolean isSeenByAdvice(ServerWebExchange exchange) {
        return exchange.getAttribute(RefusedMapping.REFUSED) != null
                || exchange.getAttribute(HandlerMapping.BEST_MATCHING_HANDLER_ATTRIBUTE) != null;
    }

    private Mono<Void> write(ServerWebExchange exchange, Refusal refusal) {
        ServerHttpResponse response = exchange.getResponse();
        if (response.isCommitted()) {
            return Mono.error(refusal.exception());
        }
        report(refusal, exchange);
        log.log(refusal);
        HttpHeaders headers = response.getHeaders();
        refusal.fields().forEach(headers::set);
        if (Refusal.isPageWanted(exchange.getRequest().getHeaders().getFirst(HttpHeaders.ACCEPT))) {
            // Boot's handler of errors comes next, and shows the page of this status.
            return Mono.error(new ResponseStatusException(
                    HttpStatusCode.valueOf(refusal.status()), refusal.detail(), refusal.exception()));
        }
        return problems.write(exchange, refusal);
    }

    private void report(Refusal refusal, ServerWebExchange exchange) {
        ReactiveCurrentRequest call = ReactiveCurrentRequest.in(exchange);
        refusal.report(limits, limit -> call != null && call.knows(limit), (limit, decision) -> {
            if (call != null) {
                call.decided(limit, decision);
            } else {
                requests.write(limit, decision, exchange.getResponse());
            }
        });
    }

    /** Answers in a filter as the dispatcher would. */
    Mono<Void> answer(ServerWebExchange exchange, RuntimeException refusal) {
        exchange.getAttributes().put(RefusedMapping.REFUSED, refusal);
        return dispatcher.get().handle(exchange);
    }

    /** Keeps the refusal of a controller's method from handlers of exceptions that are not made for refusals. */
    HandlerResult withhold(HandlerResult result, HandlerMethod method) {
        DispatchExceptionHandler application = result.getExceptionHandler();
        return application == null
                ? result
                : result.setExceptionHandler((exchange, failure) -> isForApplication(exchange, failure, method)
                        ? application.handleError(exchange, failure)
                        : Mono.error(failure));
    }

    private boolean isForApplication(ServerWebExchange exchange, Throwable failure, HandlerMethod method) {
        Refusal refusal = in(failure);
        String accept = exchange.getRequest().getHeaders().getFirst(HttpHeaders.ACCEPT);
        return refusal == null || handlers.areFor(refusal, failure, method.getBeanType(), accept);
    }
}
