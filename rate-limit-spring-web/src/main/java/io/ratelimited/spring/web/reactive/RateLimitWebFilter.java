package io.ratelimited.spring.web.reactive;

import io.ratelimited.core.End;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.call.Admission;
import io.ratelimited.spring.call.EventLoops;
import io.ratelimited.spring.overload.CallEnd;
import io.ratelimited.spring.web.RequestPaths;
import io.ratelimited.spring.web.Route;
import io.ratelimited.spring.web.RouteLimits;
import io.ratelimited.spring.web.RoutePatterns;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import org.springframework.core.Ordered;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.web.ErrorResponse;
import org.springframework.web.cors.reactive.CorsUtils;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebFilter;
import org.springframework.web.server.WebFilterChain;
import reactor.core.publisher.Mono;
import reactor.core.publisher.SignalType;
import reactor.core.scheduler.Schedulers;

/**
 * Puts the request where reactive calls find it, and limits requests by route, without blocking. There are two: before
 * the filter of Spring Security, so that every request is counted; and after it, for routes that need to know the
 * principal.
 */
public final class RateLimitWebFilter implements WebFilter, Ordered {

    /** Where the filter of routes that need the principal stands; Spring Security's stands at -100. */
    public static final int ORDER = -90;

    /** Where the filter of the routes before Spring Security stands. */
    public static final int BEFORE_SECURITY = -101;

    private final int order;
    private final RoutePatterns routes;
    private final RouteLimits limits;
    private final ReactiveRequests requests;
    private final ReactiveRefusals refusals;
    private final ReactiveCors cors;

    /** @param order {@link #ORDER} or {@link #BEFORE_SECURITY} */
    public RateLimitWebFilter(
            int order,
            RoutePatterns routes,
            RouteLimits limits,
            ReactiveRequests requests,
            ReactiveRefusals refusals,
            ReactiveCors cors) {
        this.order = order;
        this.routes = routes;
        this.limits = limits;
        this.requests = requests;
        this.refusals = refusals;
        this.cors = cors;
    }

    @Override
    public int getOrder() {
        return order;
    }

    @Override
    public Mono<Void> filter(ServerWebExchange exchange, WebFilterChain chain) {
        return requests.areNeeded()
                ? requests.of(exchange)
                        .flatMap(call -> followed(call.responseEnd(), enter(exchange, chain, call))
                                .subscribeOn(call.here())
                                .contextWrite(context -> context.put(ReactiveRequests.KEY, call)))
                : chain.filter(exchange);
    }

    /** Reports the end of the response to the request, in the outer filter, before the client can know it. */
    private static Mono<Void> followed(ResponseEnd end, Mono<Void> response) {
        return end.tryFollow()
                ? response.doOnSuccess(complete -> end.ended(null))
                        .doOnError(end::ended)
                        .doOnCancel(end::aborted)
                : response;
    }

    private Mono<Void> enter(ServerWebExchange exchange, WebFilterChain chain, ReactiveCurrentRequest call) {
        if (routes.isEmpty()) {
            return chain.filter(exchange);
        }
        ServerHttpRequest request = exchange.getRequest();
        RequestPaths paths = RequestPaths.of(request.getPath().pathWithinApplication());
        HttpHeaders headers = request.getHeaders();
        List<Route> matching =
                routes.matching(request.getMethod().name(), paths, headers::getFirst, order == BEFORE_SECURITY);
        if (matching.isEmpty()) {
            return chain.filter(exchange);
        }
        // A preflight is left out only if it ends here: a request that goes on may reach a filter that answers it.
        return CorsUtils.isPreFlightRequest(request) && routes.mayLeaveOutPreflight(paths, headers::getFirst)
                ? cors.answersPreflight(exchange)
                        .flatMap(answered -> answered ? Mono.empty() : limited(exchange, chain, matching, call))
                : limited(exchange, chain, matching, call);
    }

    private Mono<Void> limited(
            ServerWebExchange exchange, WebFilterChain chain, List<Route> matching, ReactiveCurrentRequest call) {
        CompletableFuture<Admission> entered = limits.enterAsync(matching, call);
        Mono<Admission> turn = Mono.fromFuture(entered);
        if (!entered.isDone()) {
            turn = turn.publishOn(Schedulers.fromExecutor(EventLoops::goOn)).publishOn(call.here());
        }
        return turn.map(admission -> chain.filter(exchange))
                .onErrorResume(
                        RateLimitExceededException.class, refusal -> Mono.just(refusals.answer(exchange, refusal)))
                .flatMap(Function.identity())
                .doOnError(failure -> end(entered, ofFailure(failure, call)))
                .doFinally(signal -> end(entered, ofSignal(signal, exchange, call)));
    }

    private static End ofSignal(SignalType signal, ServerWebExchange exchange, ReactiveCurrentRequest call) {
        if (signal == SignalType.CANCEL) {
            return End.CANCELLED;
        }
        HttpStatusCode status = exchange.getResponse().getStatusCode();
        if (status == null) {
            return End.ANSWERED;
        }
        return call.isRejected() ? CallEnd.ofRejection(status.value()) : CallEnd.ofStatus(status.value());
    }

    /** Handlers of errors write the answer only behind this filter. */
    private static End ofFailure(Throwable failure, ReactiveCurrentRequest call) {
        return failure instanceof ErrorResponse answer && !call.isRejected()
                ? CallEnd.ofStatus(answer.getStatusCode().value())
                : CallEnd.of(failure, call.isAborted(failure));
    }

    /** Ends the request, or its wait. */
    private static void end(CompletableFuture<Admission> entered, End end) {
        if (!entered.cancel(false)) {
            entered.thenAccept(admission -> admission.end(end));
        }
    }
}
