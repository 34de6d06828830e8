package io.ratelimited.spring.web.servlet;

import io.ratelimited.core.Decision;
import io.ratelimited.core.End;
import io.ratelimited.core.Limit;
import io.ratelimited.spring.CurrentRequest;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.overload.CallEnd;
import io.ratelimited.spring.text.LogText;
import io.ratelimited.spring.web.LimitFields;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpSession;
import java.security.Principal;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.CancellationException;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.core.ReactiveAdapterRegistry;
import org.springframework.http.HttpEntity;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.context.request.async.WebAsyncTask;
import org.springframework.web.servlet.function.EntityResponse;
import org.springframework.web.servlet.function.RenderingResponse;
import org.springframework.web.servlet.function.ServerResponse;
import org.springframework.web.servlet.mvc.method.annotation.ResponseBodyEmitter;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;
import org.springframework.web.util.DisconnectedClientHelper;

/**
 * A servlet request as the calling code sees it. Fields are set when a limit decides, long before anything is written:
 * nothing has to be wrapped, and streams have them too.
 */
final class ServletCurrentRequest implements CurrentRequest {

    private static final LogText.Lines LOG = LogText.lines(ServletCurrentRequest.class);
    private static final String ATTRIBUTE = ServletCurrentRequest.class.getName();

    private final HttpServletRequest request;
    private final @Nullable HttpServletResponse response;
    private final ServletClients clients;
    private final LimitFields.Style style;
    private final RequestState state;

    /** @param response null if nobody knows it, so that no fields can be set */
    ServletCurrentRequest(
            HttpServletRequest request,
            @Nullable HttpServletResponse response,
            ServletClients clients,
            LimitFields.Style style) {
        this.request = request;
        this.response = response;
        this.state = RequestState.of(request, clients, style);
        this.clients = state.clients;
        this.style = state.style;
    }

    @Override
    public @Nullable String clientIp() {
        return requireCurrent(clients.of(request), "address of the caller");
    }

    @Override
    public @Nullable Principal principal() {
        return requireCurrent(request.getUserPrincipal(), "principal");
    }

    @Override
    public @Nullable String header(String name) {
        return requireCurrent(request.getHeader(name), "header '" + name + "'");
    }

    @Override
    public @Nullable String session() {
        HttpSession session = request.getSession(false);
        return requireCurrent(session == null ? null : session.getId(), "session");
    }

    /**
     * Returns a value that was read from the request. The check comes after the read: so the request was still this one
     * then.
     */
    private <T> @Nullable T requireCurrent(@Nullable T read, String what) {
        if (state.over) {
            throw new IllegalStateException("the request has ended, and its " + what + " is not known any more");
        }
        return read;
    }

    @Override
    public void decided(NamedLimit limit, Limit applied, Outcome outcome, Supplier<Decision> decision) {
        if (!style.isNone() && limit.showsHeaders()) {
            state.fields.decided(applied, decision.get());
            write();
        }
    }

    /** The refusal of this request is being answered with these fields beside those of its limits. */
    void answered(Map<String, String> refusal) {
        synchronized (state) {
            state.refusal = refusal;
        }
        if (response != null) {
            refusal.forEach(response::setHeader);
        }
    }

    /**
     * Sets fields again on a response that has lost them; fields that the refusal has and the response keeps are left alone.
     */
    static void restoreFields(ServletRequest request, HttpServletResponse response) {
        if (request.getAttribute(ATTRIBUTE) instanceof RequestState state && !response.isCommitted()) {
            synchronized (state) {
                try {
                    state.fields.write(state.style, response::setHeader);
                } catch (RuntimeException ex) {
                    // A writer of the application may fail: the response goes on all the same.
                    LOG.warn("the rate limit fields of a response could not be written", ex);
                }
                state.refusal.forEach((name, value) -> {
                    if (!response.containsHeader(name)) {
                        response.setHeader(name, value);
                    }
                });
            }
        }
    }

    /** The refusal of this request is being answered, perhaps behind its filters. */
    void refused(Limit limit, Decision refusal) {
        state.fields.decided(limit, refusal);
        if (response != null) {
            state.fields.write(style, response::setHeader);
        }
    }

    @Override
    public void applies(NamedLimit limit, Limit applied) {
        if (limit.showsHeaders()) {
            state.fields.applies(applied);
            write();
        }
    }

    boolean knows(String limit) {
        return state.fields.knows(limit);
    }

    @Override
    public void charged(String use) {
        state.charge(use);
    }

    @Override
    public boolean isCharged(String use) {
        return state.isCharged(use);
    }

    @Override
    public boolean endsWith(Object result, BiConsumer<@Nullable Object, @Nullable Throwable> action) {
        if (!isAwaited(body(result)) || !state.isFollowed()) {
            return false;
        }
        AsyncOutcome outcome = AsyncOutcome.of(result, request);
        return state.atEnd(() -> outcome.report(action));
    }

    private static @Nullable Object body(Object result) {
        return result instanceof HttpEntity<?> entity
                ? entity.getBody()
                : result instanceof EntityResponse<?> response ? response.entity() : result;
    }

    /** Returns whether Spring MVC goes on with a result after the handler method, perhaps on another thread. */
    private static boolean isAwaited(@Nullable Object result) {
        return result instanceof Callable
                || result instanceof DeferredResult
                || result instanceof WebAsyncTask
                || result instanceof StreamingResponseBody
                || result instanceof ResponseBodyEmitter
                || (result instanceof ServerResponse && !(result instanceof RenderingResponse))
                || ReactiveAdapterRegistry.getSharedInstance().getAdapter(null, result) != null;
    }

    @Override
    public boolean isAborted(Throwable failure) {
        return DisconnectedClientHelper.isClientDisconnectedException(failure);
    }

    /** The caller will {@link #end} the request. */
    void begin() {
        state.begin();
    }

    /** Takes the outcome of a result of the request that Spring MVC awaits. */
    void followResult() {
        state.outcome = AsyncOutcome.of(request, request);
    }

    /** Notes the failure of the response; the first is the cause of others. */
    void failed(Throwable failure) {
        if (state.failure == null) {
            state.failure = failure;
        }
    }

    /** How the response has ended, to be asked {@link #atEnd}. */
    End endOfResponse() {
        AsyncOutcome outcome = state.outcome;
        Throwable failure = state.failure != null || outcome == null ? state.failure : outcome.failure();
        return failure != null
                ? CallEnd.of(failure, failure instanceof CancellationException || isAborted(failure))
                : CallEnd.ofStatus(response == null ? 0 : response.getStatus());
    }

    /** Runs an action when the request ends; only after {@link #begin}. */
    void atEnd(Runnable action) {
        state.atEnd(action);
    }

    /** The response now belongs to another request: late decisions must not touch it. */
    void end() {
        state.end();
    }

    /** The request goes on, to an error page, after its first dispatch has ended. The caller will {@link #end} it again. */
    static void resume(ServletRequest request) {
        if (request.getAttribute(ATTRIBUTE) instanceof RequestState state) {
            state.begin();
        }
    }

    /** Ends a request on which a limit has decided. */
    static void end(ServletRequest request) {
        if (request.getAttribute(ATTRIBUTE) instanceof RequestState state) {
            state.end();
        }
    }

    private void write() {
        synchronized (state) {
            if (response != null && !state.ended && !response.isCommitted()) {
                state.fields.write(style, response::setHeader);
            }
        }
    }

    /** The state of the request, kept with it through all its dispatches. */
    private static final class RequestState {

        private final ServletClients clients;
        private final LimitFields.Style style;
        private final LimitFields fields = new LimitFields();
        private Set<String> charged = Set.of();
        private List<Runnable> atEnd = List.of();
        /** The fields of the refusal that has been answered, beside those of limits. */
        private Map<String, String> refusal = Map.of();

        /** The failure of the response; null if none is known. */
        private volatile @Nullable Throwable failure;

        /** The outcome of a result that Spring MVC awaits; null if nobody asks for it. */
        private volatile @Nullable AsyncOutcome outcome;

        private boolean followed;
        private boolean ended;
        /** Whether the server may use the request object for another request: the actions at its end have run. */
        private volatile boolean over;

        private RequestState(ServletClients clients, LimitFields.Style style) {
            this.clients = clients;
            this.style = style;
        }

        /** Of several contexts, the one whose filter has seen the request first says how it is read and answered. */
        private static RequestState of(HttpServletRequest request, ServletClients clients, LimitFields.Style style) {
            if (request.getAttribute(ATTRIBUTE) instanceof RequestState state) {
                return state;
            }
            RequestState state = new RequestState(clients, style);
            request.setAttribute(ATTRIBUTE, state);
            return state;
        }

        private synchronized void charge(String use) {
            if (charged.isEmpty()) {
                charged = new HashSet<>();
            }
            charged.add(use);
        }

        private synchronized boolean isCharged(String use) {
            return charged.contains(use);
        }

        private synchronized void begin() {
            followed = true;
            ended = false;
            over = false;
        }

        private synchronized boolean isFollowed() {
            return followed && !ended;
        }

        /** Refused when nobody would run the action: a request without the filter, or one that has ended. */
        private synchronized boolean atEnd(Runnable action) {
            if (!isFollowed()) {
                return false;
            }
            if (atEnd.isEmpty()) {
                atEnd = new ArrayList<>(1);
            }
            atEnd.add(action);
            return true;
        }

        private void end() {
            List<Runnable> actions;
            synchronized (this) {
                ended = true;
                actions = atEnd;
                atEnd = List.of();
            }
            try {
                actions.forEach(Runnable::run);
            } finally {
                over = true;
            }
        }
    }
}
