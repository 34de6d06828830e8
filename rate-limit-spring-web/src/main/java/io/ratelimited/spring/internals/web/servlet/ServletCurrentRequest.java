package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.core.Decision;
import io.ratelimited.core.End;
import io.ratelimited.core.Limit;
import io.ratelimited.spring.NamedLimit;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.internals.aop.Declarations;
import io.ratelimited.spring.internals.expression.CallerNames;
import io.ratelimited.spring.internals.overload.CallEnd;
import io.ratelimited.spring.internals.request.CurrentRequest;
import io.ratelimited.spring.internals.web.ClientDisconnects;
import io.ratelimited.spring.internals.web.LimitHeaders;
import io.ratelimited.spring.internals.web.Rejection;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpSession;
import java.lang.reflect.Method;
import java.security.Principal;
import java.util.concurrent.Callable;
import java.util.concurrent.Executor;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.core.ReactiveAdapterRegistry;
import org.springframework.http.HttpEntity;
import org.springframework.util.ClassUtils;
import org.springframework.web.context.request.RequestAttributes;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.context.request.async.WebAsyncTask;
import org.springframework.web.method.HandlerMethod;
import org.springframework.web.servlet.HandlerMapping;
import org.springframework.web.servlet.function.EntityResponse;
import org.springframework.web.servlet.function.RenderingResponse;
import org.springframework.web.servlet.function.ServerResponse;
import org.springframework.web.servlet.mvc.method.annotation.ResponseBodyEmitter;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;

/**
 * A servlet request as the calling code sees it. Fields are set when a limit decides, long before anything is written:
 * nothing has to be wrapped, and streams have them too.
 */
final class ServletCurrentRequest implements CurrentRequest {

    private final HttpServletRequest request;
    private final @Nullable HttpServletResponse response;
    private static final boolean MVC = ClassUtils.isPresent(
            "org.springframework.web.servlet.DispatcherServlet", ServletCurrentRequest.class.getClassLoader());

    private final ServletRequestState state;

    /** @param response null if nobody knows it, so that no fields can be set */
    ServletCurrentRequest(
            HttpServletRequest request,
            @Nullable HttpServletResponse response,
            ServletClients clients,
            LimitHeaders.Style style) {
        this.request = request;
        this.response = HeadersFilter.responseWithHeaders(request, response);
        this.state = ServletRequestState.of(request, clients, style);
    }

    @Override
    public @Nullable String clientIp() {
        return requireCurrent(state.clients.of(request), "address of the caller");
    }

    @Override
    public @Nullable Principal principal() {
        Principal caller = state.isOver() ? null : request.getUserPrincipal();
        // A message of a WebSocket comes with the security context of its thread, behind a request that knows nobody.
        Principal ofThread = caller == null ? CallerNames.ofThread() : null;
        return ofThread == null ? requireCurrent(caller, "principal") : ofThread;
    }

    /** Loaded only where Spring MVC is. */
    private static final class Mvc {

        private static @Nullable Object handler(HttpServletRequest request) {
            return request.getAttribute(HandlerMapping.BEST_MATCHING_HANDLER_ATTRIBUTE);
        }

        private static @Nullable Object body(Object result) {
            return result instanceof EntityResponse<?> response ? response.entity() : result;
        }

        private static boolean isAwaited(@Nullable Object result) {
            return result instanceof StreamingResponseBody
                    || result instanceof ResponseBodyEmitter
                    || (result instanceof ServerResponse && !(result instanceof RenderingResponse));
        }
    }

    @Override
    public @Nullable String header(String name) {
        String value = request.getHeader(name);
        return state.isOver() ? requireCurrent(value, "header '" + name + "'") : value;
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
        if (state.isOver()) {
            throw new IllegalStateException("the request has ended, so its " + what + " is no longer known");
        }
        return read;
    }

    @Override
    public void decided(NamedLimit limit, Limit applied, Outcome outcome, Supplier<Decision> decision) {
        if (!state.style.isNone() && limit.showsHeaders()) {
            state.fields.decided(applied, decision.get());
            write();
        }
    }

    @Override
    public void rejected(Decision decision, boolean overloaded) {
        state.rejected();
    }

    @Override
    public void fallbackCalled(Decision decision) {
        state.fallbackCalled();
    }

    @Override
    public void fallbackFailed(Decision decision) {
        state.rejected();
    }

    @Override
    public void outgoingCallRejected() {
        state.rejected();
    }

    /** The refusal of this request is being answered, with its fields beside those of limits. */
    void answered(Rejection refusal) {
        state.answered(refusal);
        if (response != null) {
            refusal.fields().forEach(response::setHeader);
        }
    }

    /** The refusal of this request is being answered, perhaps behind its filters. */
    void refused(Limit limit, Decision refusal) {
        state.fields.decided(limit, refusal);
        if (response != null) {
            state.fields.write(state.style, response::setHeader);
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

    /** Of a dispatch to a handler, only the first call of its method is that of Spring MVC. */
    @Override
    public boolean isOwnCall(String use, Method handler) {
        return MVC
                && Mvc.handler(request) instanceof HandlerMethod current
                && Declarations.specific(current.getMethod(), ClassUtils.getUserClass(current.getBeanType()))
                        .equals(handler)
                && state.isFirstCall(use, request);
    }

    @Override
    public boolean isCharged(String use) {
        return state.isCharged(use);
    }

    @Override
    public boolean endsWith(
            Object result, Runnable complete, BiConsumer<@Nullable Object, @Nullable Throwable> action) {
        if (!isAwaited(body(result)) || !state.isFollowed()) {
            return false;
        }
        AsyncOutcome outcome = AsyncOutcome.of(result, request);
        return state.atEnd(() -> outcome.report(action), () -> !outcome.isAwaited())
                && (outcome.hasValue() || state.atEnd(complete, () -> true));
    }

    private static @Nullable Object body(Object result) {
        return result instanceof HttpEntity<?> entity ? entity.getBody() : MVC ? Mvc.body(result) : result;
    }

    /** Returns whether Spring MVC goes on with a result after the handler method, perhaps on another thread. */
    private static boolean isAwaited(@Nullable Object result) {
        return result instanceof Callable
                || result instanceof DeferredResult
                || result instanceof WebAsyncTask
                || (MVC && Mvc.isAwaited(result))
                || ReactiveAdapterRegistry.getSharedInstance().getAdapter(null, result) != null;
    }

    @Override
    public boolean isAborted(Throwable failure) {
        return state.isAborted() || ClientDisconnects.isCauseOf(failure);
    }

    /**
     * Tasks have the request where Spring keeps it. Its principal is that of now, which Spring Security finds by the thread.
     * A request that has ended is kept from them: the server may use the object for another one.
     */
    @Override
    public Executor scopeOfThisThread() {
        Principal principal = request.getUserPrincipal();
        HttpServletRequest carried = principal == null ? request : new OfPrincipal(request, principal);
        return task -> {
            if (state.isOver()) {
                task.run();
                return;
            }
            RequestAttributes before = RequestContextHolder.getRequestAttributes();
            ServletRequestAttributes attributes = new ServletRequestAttributes(carried, response);
            RequestContextHolder.setRequestAttributes(attributes);
            try {
                task.run();
            } finally {
                RequestContextHolder.setRequestAttributes(before);
                attributes.requestCompleted();
            }
        };
    }

    /** A request whose principal is known. */
    private static final class OfPrincipal extends HttpServletRequestWrapper {

        private final Principal principal;

        private OfPrincipal(HttpServletRequest request, Principal principal) {
            super(request);
            this.principal = principal;
        }

        @Override
        public Principal getUserPrincipal() {
            return principal;
        }
    }

    /**
     * Notes that a filter of routes lets the request pass.
     *
     * @return whether the caller is the first, who has to {@link #end} the request
     */
    boolean begin(boolean beforeSecurity) {
        return state.begin(beforeSecurity, !beforeSecurity);
    }

    /** Takes the outcome of a result of the request that Spring MVC awaits. */
    void followResult() {
        state.follow(AsyncOutcome.of(request, request));
    }

    /** Notes the failure of the response; the first is the cause of others. */
    void failed(Throwable failure) {
        state.failed(failure);
    }

    /** How the response has ended, to be asked {@link #atEnd}. */
    End endOfResponse() {
        AsyncOutcome outcome = state.outcome();
        Throwable known = state.failure();
        Throwable failure = known != null || outcome == null ? known : outcome.failure();
        if (failure != null) {
            return isAborted(failure) ? End.CANCELLED : CallEnd.of(failure, false);
        }
        int status = response == null ? 0 : response.getStatus();
        return state.isRejected() ? CallEnd.ofRejection(status) : CallEnd.ofStatus(status);
    }

    /** Returns whether the response is one to a rejection, made by the application or by us. */
    boolean isRejectionAnswered() {
        return ServletRequestState.refusal(request) != null;
    }

    /** The first dispatch has returned; false if the response is broken, so that nothing may end it. */
    boolean goesOn() {
        return state.goesOn();
    }

    /** The server does not lose the timeout of the response. */
    void heard() {
        state.heard();
    }

    /** Runs an action when the response is complete, before the client can know it; only after {@link #begin}. */
    void whenComplete(Runnable action) {
        state.atEnd(action, () -> true);
    }

    /** Ignored before {@link #begin}: nobody sees the end of a request without the filter. */
    @Override
    public void atEnd(Runnable action) {
        if (!state.atEnd(action, () -> false) && state.hasEnded()) {
            action.run();
        }
    }

    /** Looks at the response whenever it may be the last one; only after {@link #begin}. */
    void atEachEnd(Runnable look) {
        state.atEachEnd(look);
    }

    /** A filter of routes does not let the request pass. */
    void stop() {
        state.stop();
    }

    /** The response now belongs to another request: late decisions must not touch it. */
    void end() {
        state.end();
    }

    private void write() {
        if (response != null) {
            state.write(response);
        }
    }
}
