package io.ratelimited.spring.internals.web.reactive;

import io.ratelimited.core.End;
import io.ratelimited.spring.internals.call.Admission;
import io.ratelimited.spring.internals.call.CallerTime;
import io.ratelimited.spring.internals.overload.CallEnd;
import io.ratelimited.spring.internals.web.RequestPaths;
import io.ratelimited.spring.internals.web.Route;
import io.ratelimited.spring.internals.web.RouteLimits;
import io.ratelimited.spring.internals.web.RouteLimits.Exemption;
import io.ratelimited.spring.internals.web.RoutePatterns;
import io.ratelimited.spring.internals.web.RoutePatterns.Matching;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.context.ApplicationContext;
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

    private final int order;
    private final RoutePatterns routes;
    private final RouteLimits limits;
    private final ReactiveRequests requests;
    private final ReactiveCors cors;
    private final ReactiveVersions versions;
    private final Predicate<@Nullable ApplicationContext> management;
    private final boolean noRoutes;

    /**
     * @param order {@link RouteLimits#AFTER_SECURITY} or {@link RouteLimits#BEFORE_SECURITY}
     * @param management whether the context of an exchange serves a management port, which has the filters of the application
     *     as well, and no routes
     */
    public RateLimitWebFilter(
            int order,
            RoutePatterns routes,
            RouteLimits limits,
            ReactiveRequests requests,
            ReactiveCors cors,
            ReactiveVersions versions,
            Predicate<@Nullable ApplicationContext> management) {
        this.order = order;
        this.routes = routes;
        this.limits = limits;
        this.requests = requests;
        this.cors = cors;
        this.versions = versions;
        this.management = management;
        this.noRoutes = routes.isEmpty(order == RouteLimits.BEFORE_SECURITY);
    }

    @Override
    public int getOrder() {
        return order;
    }

    @Override
    public Mono<Void> filter(ServerWebExchange exchange, WebFilterChain chain) {
        if (!requests.areNeeded()) {
            return chain.filter(exchange);
        }
        ReactiveCurrentRequest known = ReactiveCurrentRequest.in(exchange);
        return known != null && noRoutes
                // A filter behind Spring Security may call a limited method, too.
                ? requests.with(exchange, call -> call.onThread(() -> chain.filter(exchange)))
                : requests.with(exchange, call -> FollowedResponse.of(call, enter(exchange, chain, call)));
    }

    /** Reactor notes it for each request. */
    @Override
    public String toString() {
        return "RateLimitWebFilter";
    }

    private Mono<Void> enter(ServerWebExchange exchange, WebFilterChain chain, ReactiveCurrentRequest call) {
        if (noRoutes || management.test(exchange.getApplicationContext())) {
            return chain.filter(exchange);
        }
        return routes.nameVersions()
                ? versions.of(exchange).flatMap(version -> enter(exchange, chain, call, version.orElse(null)))
                : enter(exchange, chain, call, null);
    }

    private Mono<Void> enter(
            ServerWebExchange exchange,
            WebFilterChain chain,
            ReactiveCurrentRequest call,
            @Nullable Comparable<?> version) {
        ServerHttpRequest request = exchange.getRequest();
        RequestPaths paths = RequestPaths.of(request.getPath().pathWithinApplication());
        HttpHeaders headers = request.getHeaders();
        Matching matching = routes.matching(
                request.getMethod().name(), paths, version, headers::getFirst, order == RouteLimits.BEFORE_SECURITY);
        if (matching.isEmpty()) {
            return chain.filter(exchange);
        }
        // A preflight is left out only if it ends here: a request that goes on may reach a filter that answers it.
        return CorsUtils.isPreFlightRequest(request) && routes.mayLeaveOutPreflight(paths, version, headers::getFirst)
                ? cors.answersPreflight(exchange)
                        .flatMap(answered -> answered ? Mono.empty() : exempted(exchange, chain, matching, call))
                : exempted(exchange, chain, matching, call);
    }

    private Mono<Void> exempted(
            ServerWebExchange exchange, WebFilterChain chain, Matching matching, ReactiveCurrentRequest call) {
        if (matching.exempting().isEmpty()) {
            return limited(exchange, chain, matching.counting(), call);
        }
        CompletableFuture<Exemption> exemption =
                limits.exempt(matching.exempting(), call).toCompletableFuture();
        return later(exemption, call)
                .flatMap(known -> {
                    exchange.getResponse().beforeCommit(() -> {
                        HttpStatusCode status = exchange.getResponse().getStatusCode();
                        if (!call.isRejectionAnswered()) {
                            known.answered(status == null ? 200 : status.value());
                        }
                        return Mono.empty();
                    });
                    List<Route> counting = Stream.concat(matching.counting().stream(), known.counting().stream())
                            .toList();
                    return counting.isEmpty() ? chain.filter(exchange) : limited(exchange, chain, counting, call);
                })
                .doOnError(call::failed);
    }

    private Mono<Void> limited(
            ServerWebExchange exchange, WebFilterChain chain, List<Route> counting, ReactiveCurrentRequest call) {
        CompletableFuture<Admission> entered = limits.enterAsync(counting, call);
        AtomicBoolean claimed = new AtomicBoolean();
        return later(entered, call)
                .flatMap(admission ->
                        claimed.compareAndSet(false, true) ? goOn(admission, exchange, chain, call) : Mono.empty())
                .doOnError(failure -> end(entered, claimed, ofFailure(failure, call)))
                // Before the server completes a response that nobody has written to.
                .doOnSuccess(none -> end(entered, claimed, ofStatus(exchange, call)))
                .doFinally(signal -> {
                    if (signal == SignalType.CANCEL) {
                        end(entered, claimed, End.CANCELLED);
                    }
                });
    }

    private static Mono<Void> goOn(
            Admission admission, ServerWebExchange exchange, WebFilterChain chain, ReactiveCurrentRequest call) {
        if (!admission.followsResult()) {
            return chain.filter(exchange);
        }
        CallerTime time = admission.callerTime();
        // The client may call again before the response has ended.
        if (time == null) {
            return chain.filter(new CompletedExchange(exchange, () -> admission.end(ofStatus(exchange, call))));
        }
        ServerWebExchange timed = new TimedExchange(exchange, time);
        return chain.filter(new CompletedExchange(timed, () -> {
                    time.close();
                    admission.end(ofStatus(exchange, call));
                }))
                .doOnTerminate(time::close)
                .doOnCancel(time::close);
    }

    /** What comes later goes on where the request does. */
    private <T> Mono<T> later(CompletableFuture<T> decided, ReactiveCurrentRequest call) {
        Mono<T> turn = Mono.fromFuture(decided);
        return decided.isDone() ? turn : turn.publishOn(Schedulers.fromExecutor(limits.ofSubscriber(call)));
    }

    private static End ofStatus(ServerWebExchange exchange, ReactiveCurrentRequest call) {
        HttpStatusCode status = exchange.getResponse().getStatusCode();
        if (status == null) {
            return End.ANSWERED;
        }
        return call.isRejected() ? CallEnd.ofRejection(status.value()) : CallEnd.ofStatus(status.value());
    }

    /** Handlers of errors write the answer only behind this filter. */
    private static End ofFailure(Throwable failure, ReactiveCurrentRequest call) {
        if (failure instanceof ErrorResponse answer && !call.isRejected()) {
            return CallEnd.ofStatus(answer.getStatusCode().value());
        }
        return call.isAborted(failure) ? End.CANCELLED : CallEnd.of(failure, false);
    }

    /**
     * Ends the request, or its wait.
     *
     * @param claimed whether the request goes on, or can no longer do so: one that ends between its admission and its turn
     *     costs nothing
     */
    private static void end(CompletableFuture<Admission> entered, AtomicBoolean claimed, End end) {
        if (!entered.cancel(false)) {
            entered.thenAccept(admission -> {
                if (claimed.compareAndSet(false, true)) {
                    admission.cancel();
                } else {
                    admission.end(end);
                }
            });
        }
    }
}
