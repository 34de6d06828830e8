package io.ratelimited.spring.web.reactive;

import io.ratelimited.spring.web.Problems;
import io.ratelimited.spring.web.Refusal;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Supplier;
import org.springframework.context.ApplicationContext;
import org.springframework.http.HttpHeaders;
import org.springframework.http.MediaType;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.util.function.SingletonSupplier;
import org.springframework.web.ErrorResponse;
import org.springframework.web.reactive.HandlerMapping;
import org.springframework.web.reactive.HandlerResult;
import org.springframework.web.reactive.result.method.annotation.ResponseEntityResultHandler;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.publisher.Mono;

/**
 * Writes refusals as WebFlux writes errors of the application, in filters too: with its messages, its interceptors of errors and
 * its codecs. Thread-safe.
 */
public final class ReactiveProblems {

    private final Problems problems;
    private final Supplier<Optional<ResponseEntityResultHandler>> writer;

    public ReactiveProblems(ApplicationContext context, Problems problems) {
        this.problems = problems;
        this.writer = SingletonSupplier.of(() -> context.getBeanProvider(ResponseEntityResultHandler.class)
                .orderedStream()
                .findFirst());
    }

    Mono<Void> write(ServerWebExchange exchange, Refusal refusal) {
        ServerHttpResponse response = exchange.getResponse();
        // Removes the media types of the handler, whose answer this is not.
        exchange.getAttributes().remove(HandlerMapping.PRODUCIBLE_MEDIA_TYPES_ATTRIBUTE);
        response.getHeaders().clearContentHeaders();
        ErrorResponse problem = problems.of(
                refusal, () -> locale(exchange), exchange.getRequest().getPath().value());
        return asApplication(exchange, problem)
                .then(Mono.defer(() -> isWritten(response) ? Mono.empty() : json(response, problem)));
    }

    private static Locale locale(ServerWebExchange exchange) {
        return Objects.requireNonNullElseGet(exchange.getLocaleContext().getLocale(), Locale::getDefault);
    }

    /** Writes nothing if the application has nothing that writes problems, or fails. */
    private Mono<Void> asApplication(ServerWebExchange exchange, ErrorResponse problem) {
        return Mono.justOrEmpty(writer.get())
                .flatMap(handler ->
                        handler.handleResult(exchange, new HandlerResult(this, problem, Problems.RETURN_TYPE)))
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
     * Returns whether there is an answer: each writer of a body sets its type, and an answer to HEAD is not committed by
     * that.
     */
    private static boolean isWritten(ServerHttpResponse response) {
        return response.isCommitted() || response.getHeaders().getContentType() != null;
    }

    private Mono<Void> json(ServerHttpResponse response, ErrorResponse problem) {
        byte[] body = problems.json(problem.getBody());
        HttpHeaders headers = response.getHeaders();
        response.setStatusCode(problem.getStatusCode());
        headers.setContentType(MediaType.APPLICATION_PROBLEM_JSON);
        headers.setContentLength(body.length);
        return response.writeWith(
                Mono.fromSupplier(() -> response.bufferFactory().wrap(body)));
    }
}
