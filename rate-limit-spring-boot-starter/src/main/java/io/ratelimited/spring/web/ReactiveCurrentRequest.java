package io.ratelimited.spring.web;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.Policy;
import io.ratelimited.spring.CurrentRequest;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.RateLimitProperties.Headers;
import java.security.Principal;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatusCode;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebSession;
import reactor.core.publisher.Mono;

/**
 * A WebFlux request. The principal and the session, which WebFlux finds asynchronously, have been found before. Fields
 * are set when the response is committed, on the thread that does so.
 */
final class ReactiveCurrentRequest implements CurrentRequest {

    private static final String ATTRIBUTE = ReactiveCurrentRequest.class.getName();

    private final ServerWebExchange exchange;
    private final ClientAddress clients;
    private final Headers style;
    private final Found<Principal> principal;
    private final Found<String> session;
    private final LimitFields fields = new LimitFields();
    private volatile @Nullable Decision refused;

    private ReactiveCurrentRequest(
            ServerWebExchange exchange,
            ClientAddress clients,
            Headers style,
            Found<Principal> principal,
            Found<String> session) {
        this.exchange = exchange;
        this.clients = clients;
        this.style = style;
        this.principal = principal;
        this.session = session;
    }

    /** Finds out what an exchange only tells asynchronously, and sets the fields of its response in the end. */
    static Mono<ReactiveCurrentRequest> of(ServerWebExchange exchange, ClientAddress clients, Headers style) {
        Mono<Principal> principal = exchange.getPrincipal();
        return Mono.zip(Found.of(principal), Found.of(session(exchange)), (caller, session) -> {
            ReactiveCurrentRequest call = new ReactiveCurrentRequest(exchange, clients, style, caller, session);
            exchange.getAttributes().put(ATTRIBUTE, call);
            exchange.getResponse().beforeCommit(call::write);
            return call;
        });
    }

    /** A request without any cookie has no session; asking for it would make one, if only in memory. */
    private static Mono<String> session(ServerWebExchange exchange) {
        if (exchange.getRequest().getCookies().isEmpty()) {
            return Mono.empty();
        }
        return exchange.getSession().filter(WebSession::isStarted).map(WebSession::getId);
    }

    /** The call of an exchange; null before the filter has seen it. */
    static @Nullable ReactiveCurrentRequest in(ServerWebExchange exchange) {
        return exchange.getAttribute(ATTRIBUTE);
    }

    @Override
    public @Nullable String clientIp() {
        return clients.of(exchange.getRequest().getRemoteAddress());
    }

    @Override
    public @Nullable Principal principal() {
        return principal.get();
    }

    @Override
    public @Nullable String header(String name) {
        return exchange.getRequest().getHeaders().getFirst(name);
    }

    @Override
    public @Nullable String session() {
        return session.get();
    }

    @Override
    public void decided(NamedLimit limit, Limit applied, Outcome outcome, Supplier<Decision> decision) {
        if (outcome == Outcome.REJECTED) {
            refused = decision.get();
        }
        if (style != Headers.NONE && limit.policy() != Policy.SHADOW) {
            decided(applied, decision.get());
        }
    }

    void decided(Limit limit, Decision decision) {
        fields.decided(limit, decision);
    }

    @Override
    public void applies(NamedLimit limit, Limit applied) {
        fields.applies(applied);
    }

    boolean knows(String limit) {
        return fields.knows(limit);
    }

    private Mono<Void> write() {
        return Mono.fromRunnable(() -> {
            HttpHeaders headers = exchange.getResponse().getHeaders();
            fields.write(style, headers::set);
            writeRetryAfter(headers);
        });
    }

    /**
     * Advice of the application may have answered the refusal, and said nothing of when to retry. Advice cannot be told
     * from a method that handles the refusal itself, except that the latter succeeds.
     */
    private void writeRetryAfter(HttpHeaders headers) {
        Decision refusal = refused;
        HttpStatusCode status = exchange.getResponse().getStatusCode();
        if (refusal != null && status != null && status.isError() && !headers.containsHeader(HttpHeaders.RETRY_AFTER)) {
            Long seconds = LimitFields.retryAfter(refusal);
            if (seconds != null) {
                headers.set(HttpHeaders.RETRY_AFTER, seconds.toString());
            }
        }
    }

    /** The outcome of looking for something: a failure concerns only who asks for it. */
    private record Found<T>(@Nullable T value, @Nullable Throwable failure) {

        private static <T> Mono<Found<T>> of(Mono<T> lookup) {
            return lookup.map(value -> new Found<T>(value, null))
                    .onErrorResume(failure -> Mono.just(new Found<T>(null, failure)))
                    .switchIfEmpty(Mono.fromSupplier(() -> new Found<T>(null, null)));
        }

        private @Nullable T get() {
            if (failure != null) {
                throw new IllegalStateException("could not be found out: " + failure.getMessage(), failure);
            }
            return value;
        }
    }
}
