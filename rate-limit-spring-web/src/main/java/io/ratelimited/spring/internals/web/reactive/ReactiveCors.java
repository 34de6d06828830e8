package io.ratelimited.spring.internals.web.reactive;

import java.util.List;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.web.cors.CorsConfiguration;
import org.springframework.web.cors.reactive.CorsConfigurationSource;
import org.springframework.web.cors.reactive.CorsUtils;
import org.springframework.web.cors.reactive.DefaultCorsProcessor;
import org.springframework.web.reactive.DispatcherHandler;
import org.springframework.web.reactive.HandlerMapping;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Lets scripts of the origins that the application allows read a refusal, whichever filter refuses: the headers are those
 * that WebFlux or Spring Security would have written behind it.
 */
public final class ReactiveCors {

    private static final DefaultCorsProcessor PROCESSOR = new Lenient();

    private final Supplier<Stream<CorsConfigurationSource>> sources;
    private final Supplier<DispatcherHandler> dispatcher;

    /**
     * @param sources of Spring Security
     * @param dispatcher knows the handler mappings, which write CORS headers when they look for a handler
     */
    public ReactiveCors(Supplier<Stream<CorsConfigurationSource>> sources, Supplier<DispatcherHandler> dispatcher) {
        this.sources = sources;
        this.dispatcher = dispatcher;
    }

    /** Answers a preflight that the application allows; false, and nothing of an answer, for others. */
    Mono<Boolean> answersPreflight(ServerWebExchange exchange) {
        if (isAllowed(exchange)) {
            return Mono.just(false);
        }
        return write(exchange).then(Mono.defer(() -> {
            if (isAllowed(exchange)) {
                return exchange.getResponse().setComplete().thenReturn(true);
            }
            exchange.getResponse().setStatusCode(null);
            return Mono.just(false);
        }));
    }

    Mono<Void> write(ServerWebExchange exchange) {
        if (!isCorsRequest(exchange.getRequest())) {
            return Mono.empty();
        }
        CorsConfiguration configuration = configuration(exchange);
        if (configuration != null) {
            PROCESSOR.process(configuration, exchange);
        }
        List<HandlerMapping> mappings = dispatcher.get().getHandlerMappings();
        if (isAllowed(exchange) || mappings == null) {
            return Mono.empty();
        }
        // Without a handler that takes the request nothing is allowed.
        return Flux.fromIterable(mappings)
                .concatMap(mapping -> mapping.getHandler(exchange))
                .next()
                .onErrorComplete()
                .doOnTerminate(() -> exchange.getAttributes().remove(HandlerMapping.BEST_MATCHING_HANDLER_ATTRIBUTE))
                .then();
    }

    static boolean isAllowed(ServerWebExchange exchange) {
        return exchange.getResponse().getHeaders().containsHeader(HttpHeaders.ACCESS_CONTROL_ALLOW_ORIGIN);
    }

    private @Nullable CorsConfiguration configuration(ServerWebExchange exchange) {
        return sources.get()
                .flatMap(source -> Stream.ofNullable(source.getCorsConfiguration(exchange)))
                .findFirst()
                .orElse(null);
    }

    /** An origin that cannot be read is none that anybody allows. */
    private static boolean isCorsRequest(ServerHttpRequest request) {
        try {
            return CorsUtils.isCorsRequest(request);
        } catch (IllegalArgumentException ex) {
            return false;
        }
    }

    /** No bean, for Spring Security would take it. A script of another origin cannot read the refusal, which stays one. */
    private static final class Lenient extends DefaultCorsProcessor {

        @Override
        protected void rejectRequest(ServerHttpResponse response) {}
    }
}
