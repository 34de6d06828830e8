package io.ratelimited.spring.internals.web.reactive;

import io.ratelimited.spring.internals.expression.InvalidCallException;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.web.InvalidCallLog;
import io.ratelimited.spring.internals.web.Problems;
import io.ratelimited.spring.internals.web.Rejection;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.context.ApplicationContext;
import org.springframework.core.Ordered;
import org.springframework.http.HttpHeaders;
import org.springframework.http.MediaType;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.reactive.DispatchExceptionHandler;
import org.springframework.web.reactive.HandlerAdapter;
import org.springframework.web.reactive.HandlerMapping;
import org.springframework.web.reactive.HandlerResult;
import org.springframework.web.reactive.HandlerResultHandler;
import org.springframework.web.reactive.result.method.annotation.ResponseEntityResultHandler;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebExceptionHandler;
import reactor.core.publisher.Mono;

/**
 * Answers rejections, and exceptions that they have caused, which the application maps in no way; before Spring Boot's handler of
 * errors, which answers every exception. WebFlux writes the problem as it writes errors of the application: with its messages,
 * its interceptors of errors and its codecs. Advice of the application is asked about what filters throw, too. Thread-safe.
 */
public final class ReactiveRejections implements WebExceptionHandler, Ordered {

    /** Before Boot's handler of errors, which takes everything, at -1; a handler of the application may come earlier. */
    static final int ORDER = -2;

    private final int status;
    private final ReactiveRequests requests;
    private final LimitRegistry limits;
    private final Problems problems;
    private final ReactiveCors cors;
    private final InvalidCallLog log;
    private final Supplier<List<DispatchExceptionHandler>> advice;
    private final Supplier<List<HandlerResultHandler>> results;
    private final Supplier<Optional<ResponseEntityResultHandler>> writer;

    /**
     * @param status of requests over a limit
     * @param context with the advice of the application, and with what writes its errors
     */
    public ReactiveRejections(
            int status,
            ReactiveRequests requests,
            LimitRegistry limits,
            Problems problems,
            ReactiveCors cors,
            InvalidCallLog log,
            ApplicationContext context) {
        this.status = status;
        this.requests = requests;
        this.limits = limits;
        this.problems = problems;
        this.cors = cors;
        this.log = log;
        this.advice = SingletonSupplier.of(() -> context.getBeanProvider(HandlerAdapter.class)
                .orderedStream()
                .filter(DispatchExceptionHandler.class::isInstance)
                .map(DispatchExceptionHandler.class::cast)
                .toList());
        this.results = SingletonSupplier.of(() -> context.getBeanProvider(HandlerResultHandler.class)
                .orderedStream()
                .toList());
        this.writer = SingletonSupplier.of(() -> context.getBeanProvider(ResponseEntityResultHandler.class)
                .orderedStream()
                .findFirst());
    }

    @Override
    public int getOrder() {
        return ORDER;
    }

    @Override
    public Mono<Void> handle(ServerWebExchange exchange, Throwable failure) {
        Rejection refusal = in(failure);
        if (refusal == null || exchange.getResponse().isCommitted()) {
            return Mono.error(failure);
        }
        return exchange.getAttribute(HandlerMapping.BEST_MATCHING_HANDLER_ATTRIBUTE) != null
                ? write(exchange, refusal)
                : cors.write(exchange)
                        .then(askAdvice(exchange, failure))
                        .onErrorResume(ex -> in(ex) == null ? Mono.error(ex) : write(exchange, refusal));
    }

    /** Null too if the application has said which status an exception has: Spring Boot's handler knows it. */
    private @Nullable Rejection in(Throwable failure) {
        Rejection refusal = Rejection.in(failure, status, limits::findsItsLimit);
        return refusal == null || (failure != refusal.exception() && Rejection.hasStatus(failure)) ? null : refusal;
    }

    /** Advice has been asked about what handlers throw, not about what filters before them throw. */
    private Mono<Void> askAdvice(ServerWebExchange exchange, Throwable failure) {
        Mono<HandlerResult> answer = Mono.error(failure);
        for (DispatchExceptionHandler handler : advice.get()) {
            answer = answer.onErrorResume(ex -> handler.handleError(exchange, ex));
        }
        return answer.flatMap(result -> {
            for (HandlerResultHandler handler : results.get()) {
                if (handler.supports(result)) {
                    return handler.handleResult(exchange, result);
                }
            }
            return Mono.error(failure);
        });
    }

    private Mono<Void> write(ServerWebExchange exchange, Rejection refusal) {
        ServerHttpResponse response = exchange.getResponse();
        if (response.isCommitted()) {
            return Mono.error(refusal.exception());
        }
        report(refusal, exchange);
        if (refusal.exception() instanceof InvalidCallException invalid) {
            log.log(invalid);
        }
        HttpHeaders headers = response.getHeaders();
        refusal.fields().forEach(headers::set);
        if (Rejection.isPageWanted(exchange.getRequest().getHeaders().getFirst(HttpHeaders.ACCEPT))) {
            // Boot's handler of errors comes next, and shows the page of this status.
            return Mono.error(refusal);
        }
        // Removes the media types of the handler, whose response this is not.
        exchange.getAttributes().remove(HandlerMapping.PRODUCIBLE_MEDIA_TYPES_ATTRIBUTE);
        headers.clearContentHeaders();
        Rejection worded = problems.worded(
                refusal, () -> locale(exchange), exchange.getRequest().getPath().value());
        return asApplication(exchange, worded)
                .then(Mono.defer(() -> isWritten(response) ? Mono.empty() : json(response, worded)));
    }

    private void report(Rejection refusal, ServerWebExchange exchange) {
        ReactiveCurrentRequest call = ReactiveCurrentRequest.in(exchange);
        refusal.report(limits, limit -> call != null && call.knows(limit), (limit, decision) -> {
            if (call != null) {
                call.decided(limit, decision);
            } else {
                requests.write(limit, decision, exchange.getResponse());
            }
        });
    }

    private static Locale locale(ServerWebExchange exchange) {
        return Objects.requireNonNullElseGet(exchange.getLocaleContext().getLocale(), Locale::getDefault);
    }

    /** Writes nothing if the application has nothing that writes problems, or fails. */
    private Mono<Void> asApplication(ServerWebExchange exchange, Rejection worded) {
        ResponseEntityResultHandler handler = writer.get().orElse(null);
        if (handler == null) {
            return Mono.empty();
        }
        return Mono.defer(() -> handler.handleResult(exchange, new HandlerResult(this, worded, Problems.RETURN_TYPE)))
                .onErrorResume(failure -> {
                    ServerHttpResponse response = exchange.getResponse();
                    if (response.isCommitted()) {
                        return Mono.error(failure);
                    }
                    problems.failed(failure);
                    response.getHeaders().clearContentHeaders();
                    return Mono.empty();
                });
    }

    /**
     * Returns whether there is a response: each writer of a body sets its type, and a response to HEAD is not committed by
     * that.
     */
    private static boolean isWritten(ServerHttpResponse response) {
        return response.isCommitted() || response.getHeaders().getContentType() != null;
    }

    private Mono<Void> json(ServerHttpResponse response, Rejection worded) {
        byte[] body = problems.json(worded.getBody());
        HttpHeaders headers = response.getHeaders();
        response.setStatusCode(worded.getStatusCode());
        headers.setContentType(MediaType.APPLICATION_PROBLEM_JSON);
        headers.setContentLength(body.length);
        return response.writeWith(
                Mono.fromSupplier(() -> response.bufferFactory().wrap(body)));
    }
}
