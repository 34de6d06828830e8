package io.ratelimited.spring.internals.web.reactive;

import io.micrometer.context.ThreadLocalAccessor;
import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.spring.internals.request.CurrentRequest;
import io.ratelimited.spring.internals.request.ThreadUse;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.web.ClientAddress;
import io.ratelimited.spring.internals.web.LimitHeaders;
import io.ratelimited.spring.internals.web.RouteLimits;
import io.ratelimited.spring.internals.web.TrustedProxies;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.publisher.Mono;

/**
 * Finds the WebFlux request of a call: of a reactive call in the Reactor context, of one that returns a plain value on
 * the thread, where {@link ReactiveCurrentRequest#run} puts it.
 *
 * <p>Does nothing before the first limit.
 */
public final class ReactiveRequests implements CurrentRequest.Source {

    /** Key of the request in the Reactor context. */
    static final String KEY = CurrentRequest.class.getName();

    private static final LogText.Lines LOG = LogText.lines(ReactiveRequests.class);

    private final LimitHeaders.Style style;
    private final ReactiveClients clients;
    private final AtomicBoolean warned = new AtomicBoolean();
    private final Map<Method, Supplier<ThreadUse>> blocking = new ConcurrentHashMap<>();
    private volatile boolean needed;
    private volatile boolean readsPrincipal;
    private volatile boolean readsSession;
    private volatile boolean readsClientIp;

    /** @param proxies null if none is trusted */
    public ReactiveRequests(ClientAddress address, @Nullable TrustedProxies proxies, LimitHeaders.Style style) {
        this.clients = new ReactiveClients(address, proxies, new TrustedProxies.Untrusted());
        this.style = style;
    }

    @Override
    public @Nullable CurrentRequest current() {
        return ReactiveCurrentRequest.ON_THREAD.get();
    }

    @Override
    public @Nullable CurrentRequest current(Function<Object, @Nullable Object> reactorContext) {
        return reactorContext.apply(KEY) instanceof CurrentRequest request ? request : current();
    }

    /** Those on which handler methods sleep: all others of a server are event loops, or of no number that is known here. */
    @Override
    public boolean isRequestThread() {
        return LimitedHandlers.isThread();
    }

    @Override
    public void prepare(Predicate<String> reads) {
        // Never set back, so that limits may be prepared by several threads at once.
        if (reads.test("principal")) {
            readsPrincipal = true;
        }
        if (reads.test("session")) {
            readsSession = true;
        }
        if (reads.test("clientIp")) {
            readsClientIp = true;
        }
        needed = true;
    }

    @Override
    public void prepareBlocking(Method method, Supplier<ThreadUse> limits) {
        blocking.put(method, limits);
    }

    /** Returns whether there is any limit. */
    boolean areNeeded() {
        return needed;
    }

    /** Returns whether any limit reads the address of clients. */
    public boolean readClientIp() {
        return readsClientIp;
    }

    /** Null when none is trusted. */
    @Nullable
    public TrustedProxies proxies() {
        return clients.proxies();
    }

    /** Reports requests that have passed a proxy, though none is trusted. */
    public void watchForProxies() {
        clients.untrusted().watch();
    }

    /** Returns whether any limited method blocks its thread. */
    boolean areBlocking() {
        return !blocking.isEmpty();
    }

    /** How limits use the thread of a call of a method. */
    ThreadUse threadUse(Method method) {
        Supplier<ThreadUse> limits = blocking.get(method);
        return limits == null ? ThreadUse.NONE : limits.get();
    }

    /** Goes on with the request of an exchange, as a filter or handler sees it now. */
    <T> Mono<T> with(ServerWebExchange exchange, Function<ReactiveCurrentRequest, Mono<T>> next) {
        ReactiveCurrentRequest known = ReactiveCurrentRequest.in(exchange);
        if (known != null) {
            return seen(known, exchange, next);
        }
        if (clients.proxies() == null) {
            return seen(new ReactiveCurrentRequest(exchange, null, clients, style), exchange, next);
        }
        return Mono.deferContextual(context -> seen(
                new ReactiveCurrentRequest(exchange, ReactiveClients.raw(context), clients, style), exchange, next));
    }

    private <T> Mono<T> seen(
            ReactiveCurrentRequest request,
            ServerWebExchange exchange,
            Function<ReactiveCurrentRequest, Mono<T>> next) {
        Mono<?> found = request.seenAs(exchange, readsPrincipal, readsSession);
        return found == null
                ? next.apply(request)
                : found.then(Mono.defer(() -> {
                    warnOfLatePrincipal(request);
                    return next.apply(request);
                }));
    }

    /** A route, for one, is decided before later filters see the request. */
    private void warnOfLatePrincipal(ReactiveCurrentRequest request) {
        if (request.wasAskedTooEarly() && warned.compareAndSet(false, true)) {
            LOG.warn("A limit with the key principal has decided on a request before a later filter set the principal:"
                    + " such requests share one limit. Give the filter that sets it an order below "
                    + RouteLimits.AFTER_SECURITY + ", or limit handler methods instead of routes.");
        }
    }

    /** Writes the fields of a refusal to a response whose exchange has no request from the filter. */
    void write(Limit limit, Decision refusal, ServerHttpResponse response) {
        LimitHeaders fields = new LimitHeaders();
        fields.decided(limit, refusal);
        fields.write(style, response.getHeaders()::set);
    }

    /** Puts the request on the thread wherever Reactor restores thread locals. */
    public static final class Accessor implements ThreadLocalAccessor<CurrentRequest> {

        @Override
        public Object key() {
            return KEY;
        }

        @Override
        public @Nullable CurrentRequest getValue() {
            return ReactiveCurrentRequest.ON_THREAD.get();
        }

        @Override
        public void setValue(CurrentRequest request) {
            ReactiveCurrentRequest.ON_THREAD.set(request);
        }

        @Override
        public void setValue() {
            ReactiveCurrentRequest.ON_THREAD.remove();
        }
    }
}
