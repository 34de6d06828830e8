package io.ratelimited.spring.internals.web.reactive;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.internals.call.EventLoops;
import io.ratelimited.spring.internals.request.CurrentRequest;
import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.web.ClientDisconnects;
import io.ratelimited.spring.internals.web.LimitHeaders;
import io.ratelimited.spring.internals.web.Rejection;
import java.security.Principal;
import java.util.concurrent.Executor;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.core.ReactiveAdapter;
import org.springframework.core.ReactiveAdapterRegistry;
import org.springframework.http.HttpEntity;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.web.reactive.function.server.EntityResponse;
import org.springframework.web.reactive.function.server.RenderingResponse;
import org.springframework.web.reactive.function.server.ServerResponse;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.CoreSubscriber;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Operators;
import reactor.core.scheduler.Schedulers;

/**
 * A WebFlux request. The principal and the session, which WebFlux finds asynchronously, have been found before where a
 * limit may read them. Fields are set when the response is committed, on the thread that does so.
 */
final class ReactiveCurrentRequest implements CurrentRequest {

    /** The request whose code the thread runs. */
    static final ThreadLocal<@Nullable CurrentRequest> ON_THREAD = new ThreadLocal<>();

    private static final LogText.Lines LOG = LogText.lines(ReactiveCurrentRequest.class);
    private static final String ATTRIBUTE = ReactiveCurrentRequest.class.getName();

    private final ReactiveClients clients;
    /** Null when no proxy is trusted, or when the request did not come by the handler of the application. */
    private final @Nullable ServerHttpRequest raw;

    /** As the first of our filters has seen it: later ones may hide the connection. */
    private final ServerHttpRequest first;

    private final LimitHeaders.Style style;
    private final LimitHeaders fields = new LimitHeaders();
    /** As the last filter or handler has seen it: filters may replace its principal, for one. */
    private volatile ServerWebExchange exchange;

    /** Null while no call is rejected. */
    private volatile @Nullable RejectedCalls rejected;

    /** Whether an outgoing call is rejected, so that the response does not get headers of {@link #rejected}. */
    private volatile boolean outgoingRejected;

    /** Whether a handler or filter has thrown a rejection, so that the response is one to it. */
    private volatile boolean rejectionThrown;

    private volatile @Nullable Found<Principal> principal;
    private volatile @Nullable Found<String> session;
    /** Whether a limit has asked for a principal that was not there then. */
    private volatile boolean askedInVain;

    private final ResponseEnd responseEnd = new ResponseEnd();
    /** Nanoseconds that the handler has waited for threads and that no limit has counted. Guarded by this. */
    private long waitedForThreads;
    /** Time at which the last task got its thread. Guarded by this; means nothing before {@link #ran}. */
    private long lastRunAt;
    /** Whether a task of the handler has got a thread. Guarded by this. */
    private boolean ran;

    /** The fields of the response are set in the end. */
    ReactiveCurrentRequest(
            ServerWebExchange exchange,
            @Nullable ServerHttpRequest raw,
            ReactiveClients clients,
            LimitHeaders.Style style) {
        this.exchange = exchange;
        this.first = exchange.getRequest();
        this.raw = raw;
        this.clients = clients;
        this.style = style;
        exchange.getAttributes().put(ATTRIBUTE, this);
        exchange.getResponse().beforeCommit(this::write);
    }

    /** Reads principal and session of the exchange, and completes when they are known; null when it need not read any. */
    @Nullable
    Mono<?> seenAs(ServerWebExchange now, boolean readsPrincipal, boolean readsSession) {
        exchange = now;
        if (!readsPrincipal && !readsSession) {
            return null;
        }
        Mono<?> found = Mono.empty();
        if (readsPrincipal) {
            found = Found.principal(now).doOnNext(caller -> principal = caller);
        }
        if (readsSession && session == null) {
            found = found.then(Found.session(now)).doOnNext(id -> session = id);
        }
        Executor loop = eventLoop();
        if (loop == null) {
            return found;
        }
        // A session may come on a thread of Redis. Where the application has left the event loop, its code may block.
        return found.publishOn(
                EventLoops.isCurrentThread() ? Schedulers.fromExecutor(loop) : Schedulers.boundedElastic());
    }

    /** Returns whether a limit has asked for the principal before a filter set it. */
    boolean wasAskedTooEarly() {
        Found<Principal> caller = principal;
        return askedInVain && caller != null && caller.value() != null;
    }

    /** The call of an exchange; null before the filter has seen it. */
    static @Nullable ReactiveCurrentRequest in(ServerWebExchange exchange) {
        return exchange.getAttribute(ATTRIBUTE);
    }

    /** Makes a publisher and subscribes to it with the request on the thread. */
    <T> Mono<T> onThread(Supplier<Mono<T>> source) {
        return new Mono<>() {

            @Override
            public void subscribe(CoreSubscriber<? super T> subscriber) {
                run(() -> {
                    Mono<T> made;
                    try {
                        made = source.get();
                    } catch (Throwable ex) {
                        made = Mono.error(Operators.onOperatorError(ex, subscriber.currentContext()));
                    }
                    made.subscribe(subscriber);
                });
            }
        };
    }

    @Override
    public @Nullable Executor eventLoop() {
        return ServedConnections.eventLoop(first);
    }

    @Override
    public Executor scopeOfThisThread() {
        return this::run;
    }

    /** Runs a task on this thread, where {@link ReactiveRequests#current()} then finds the request. */
    void run(Runnable task) {
        CurrentRequest before = ON_THREAD.get();
        if (before == this) {
            task.run();
            return;
        }
        ON_THREAD.set(this);
        try {
            task.run();
        } finally {
            // Not removed, because each new entry of a thread is an object.
            ON_THREAD.set(before);
        }
    }

    /** A task to be run on another thread, with the request of this one, if any. */
    static Runnable carrying(Runnable task) {
        CurrentRequest request = ON_THREAD.get();
        if (request == null) {
            return task;
        }
        Executor scope = request.scopeOfThisThread();
        return () -> scope.execute(task);
    }

    @Override
    public @Nullable String clientIp() {
        return clients.of(exchange.getRequest(), raw);
    }

    @Override
    public @Nullable Principal principal() {
        Principal caller = Found.now(principal, "the principal");
        askedInVain |= caller == null;
        return caller;
    }

    @Override
    public @Nullable String header(String name) {
        return exchange.getRequest().getHeaders().getFirst(name);
    }

    @Override
    public @Nullable String session() {
        return Found.now(session, "the session");
    }

    /** Notes that a task of the handler has got its thread. Tasks that waited at the same time count once. */
    synchronized void waitedForThread(long scheduledAt, long runAt) {
        long from = ran && lastRunAt - scheduledAt > 0 ? lastRunAt : scheduledAt;
        waitedForThreads += Math.max(0, runAt - from);
        lastRunAt = runAt;
        ran = true;
    }

    @Override
    public synchronized long takeWaitedNanos() {
        long waited = waitedForThreads;
        waitedForThreads = 0;
        return waited;
    }

    @Override
    public void decided(NamedLimit limit, Limit applied, Outcome outcome, Supplier<Decision> decision) {
        if (!style.isNone() && limit.showsHeaders()) {
            decided(applied, decision.get());
        }
    }

    @Override
    public void rejected(Decision decision, boolean overloaded) {
        RejectedCalls calls;
        synchronized (this) {
            calls = rejected == null ? new RejectedCalls() : rejected;
            rejected = calls;
        }
        calls.add(decision, overloaded);
    }

    @Override
    public void fallbackCalled(Decision decision) {
        RejectedCalls calls = rejected;
        if (calls != null) {
            calls.fallbackCalled(decision);
        }
    }

    @Override
    public void fallbackFailed(Decision decision) {
        RejectedCalls calls = rejected;
        if (calls != null) {
            calls.fallbackFailed(decision);
        }
    }

    @Override
    public void outgoingCallRejected() {
        outgoingRejected = true;
    }

    /** Takes what the result of the handler, or a filter, throws, before the application answers it. */
    void failed(Throwable failure) {
        if (Rejection.isCauseOf(failure)) {
            rejectionThrown = true;
        }
    }

    /** Returns whether the response is one to a rejection that a handler or filter has thrown. */
    boolean isRejectionAnswered() {
        return rejectionThrown;
    }

    /** Returns whether a limit has rejected the request, or a call within it that no fallback answers. */
    boolean isRejected() {
        RejectedCalls calls = rejected;
        return outgoingRejected || rejectionThrown || (calls != null && calls.isAny());
    }

    void decided(Limit limit, Decision decision) {
        fields.decided(limit, decision);
    }

    @Override
    public void applies(NamedLimit limit, Limit applied) {
        if (limit.showsHeaders()) {
            fields.applies(applied);
        }
    }

    /**
     * A body of one value, or of known length, is there when the response is committed: the client may call again before
     * the response has ended.
     */
    @Override
    public boolean endsWith(
            Object result, Runnable complete, BiConsumer<@Nullable Object, @Nullable Throwable> action) {
        Object body = body(result);
        ReactiveAdapter adapter = ReactiveAdapterRegistry.getSharedInstance().getAdapter(null, body);
        Consumer<@Nullable Throwable> ending = failure -> action.accept(result, failure);
        if (adapter != null) {
            return adapter.isMultiValue() ? responseEnd.tryRunAtEnd(ending) : responseEnd.tryRunAtCommit(ending);
        }
        return body instanceof ServerResponse
                && !(body instanceof RenderingResponse)
                && responseEnd.tryRunAtCommit(failure -> {
                    boolean written = exchange.getResponse().getHeaders().getContentLength() >= 0;
                    if (written || !responseEnd.tryRunAtEnd(ending)) {
                        ending.accept(failure);
                    }
                });
    }

    private static @Nullable Object body(Object result) {
        return result instanceof HttpEntity<?> entity
                ? entity.getBody()
                : result instanceof EntityResponse<?> response ? response.entity() : result;
    }

    @Override
    public boolean isAborted(Throwable failure) {
        return responseEnd.isAborted()
                || ServedConnections.isLost(first, failure)
                || ClientDisconnects.isCauseOf(failure);
    }

    ResponseEnd responseEnd() {
        return responseEnd;
    }

    boolean knows(String limit) {
        return fields.knows(limit);
    }

    private Mono<Void> write() {
        responseEnd.committed();
        HttpHeaders headers = exchange.getResponse().getHeaders();
        try {
            // Fields that a gateway hands on from the server behind it stay.
            fields.write(style, style.areLists() ? headers::add : headers::set);
        } catch (RuntimeException ex) {
            // A writer of the application may fail: the call has been made all the same.
            LOG.warn("the rate limit headers of a response could not be written", ex);
        }
        completeRefusal(headers);
        return Mono.empty();
    }

    /**
     * Advice of the application may have answered the refusal without its fields. A method that handles the refusal itself
     * looks the same, but its response is no error. Scripts that CORS allows to read the answer may read its fields.
     */
    private void completeRefusal(HttpHeaders headers) {
        RejectedCalls calls = rejected;
        if (calls == null || !calls.isAny()) {
            return;
        }
        HttpStatusCode status = exchange.getResponse().getStatusCode();
        if (status == null || !status.isError()) {
            return;
        }
        calls.fields().forEach((name, value) -> {
            if (!headers.containsHeader(name)) {
                headers.set(name, value);
            }
        });
        if (ReactiveCors.isAllowed(exchange)) {
            String name = HttpHeaders.ACCESS_CONTROL_EXPOSE_HEADERS;
            headers.set(name, Rejection.exposed(headers.getOrEmpty(name), style));
        }
    }
}
