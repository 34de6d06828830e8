package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.text.LogText;
import io.ratelimited.spring.internals.web.LimitHeaders;
import io.ratelimited.spring.internals.web.Rejection;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.ServletRequest;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The state of a servlet request, kept with it through all its dispatches: the fields of its response, what it has been
 * charged for, and its end. Thread-safe.
 */
final class ServletRequestState {

    private static final LogText.Lines LOG = LogText.lines(ServletRequestState.class);
    private static final String ATTRIBUTE = ServletRequestState.class.getName();
    /** How much later than at its timeout a response ends of which its server says nothing: Tomcat looks for timeouts once a second. */
    private static final long LOST_AFTER_MILLIS = 5_000;

    private static final long LONGEST_TIMEOUT_MILLIS = TimeUnit.DAYS.toMillis(30);

    final ServletClients clients;
    final LimitHeaders.Style style;
    final LimitHeaders fields = new LimitHeaders();
    private Set<String> charged = Set.of();
    private List<Call> calls = List.of();
    private List<Ending> endings = List.of();
    /** Looks at the response at each end of the request; null if nobody does. */
    private @Nullable Runnable look;

    /** The refusal that is being answered, whose fields stand beside those of limits; null if there is none. */
    private @Nullable Rejection refusal;

    /** The failure of the response; null if none is known. */
    private @Nullable Throwable failure;

    /** The outcome of a result that Spring MVC awaits; null if nobody asks for it. */
    private @Nullable AsyncOutcome outcome;

    /** The number of rejected calls of the request that no fallback answers, outgoing ones among them. */
    private int rejected;

    /** Whether a filter of routes has not let the request pass. */
    private boolean stopped;

    private boolean passedBeforeSecurity;
    private boolean passedAfterSecurity;
    private boolean followed;
    private boolean ended;
    /** Whether the first dispatch has returned, and the response goes on. */
    private boolean goesOn;
    /** Whether a write of the response has failed. */
    private boolean broken;
    /** Whether a read of the request has failed. */
    private boolean lost;

    private volatile boolean over;

    /** Stops the alarm for a timeout that the server loses; null if there is none. */
    private @Nullable Runnable stopAlarm;

    /** The first call of a dispatch that has asked for a use of a limit. */
    private record Call(String use, HttpServletRequest dispatched, DispatcherType type) {}

    private ServletRequestState(ServletClients clients, LimitHeaders.Style style) {
        this.clients = clients;
        this.style = style;
    }

    /** Of several contexts, the one whose filter has seen the request first says how it is read and answered. */
    static ServletRequestState of(HttpServletRequest request, ServletClients clients, LimitHeaders.Style style) {
        if (request.getAttribute(ATTRIBUTE) instanceof ServletRequestState state) {
            return state;
        }
        ServletRequestState state = new ServletRequestState(clients, style);
        request.setAttribute(ATTRIBUTE, state);
        return state;
    }

    /** That of a request on which a limit may decide; null if there is none so far. */
    static @Nullable ServletRequestState known(ServletRequest request) {
        return request.getAttribute(ATTRIBUTE) instanceof ServletRequestState state ? state : null;
    }

    synchronized void charge(String use) {
        if (charged.isEmpty()) {
            charged = new HashSet<>();
        }
        charged.add(use);
    }

    /** Returns whether no call of a dispatch has asked for this use so far. A forward has a request of its own. */
    synchronized boolean isFirstCall(String use, HttpServletRequest dispatched) {
        DispatcherType type = dispatched.getDispatcherType();
        for (Call call : calls) {
            if (call.dispatched == dispatched && call.type == type && call.use.equals(use)) {
                return false;
            }
        }
        if (calls.isEmpty()) {
            calls = new ArrayList<>();
        }
        calls.add(new Call(use, dispatched, type));
        return true;
    }

    synchronized boolean isCharged(String use) {
        return charged.contains(use);
    }

    /** Sets the fields of limits on the response, unless it has ended or been committed. */
    synchronized void write(HttpServletResponse response) {
        if (!ended && !response.isCommitted()) {
            fields.write(style, response::setHeader);
        }
    }

    /** Notes the failure of the response; the first is the cause of others. */
    synchronized void failed(Throwable cause) {
        if (failure == null) {
            failure = cause;
        }
    }

    /** The body of a request could not be read: its client has gone, but its handler may go on. */
    static void lost(ServletRequest request) {
        if (request.getAttribute(ATTRIBUTE) instanceof ServletRequestState state) {
            state.lost();
        }
    }

    private synchronized void lost() {
        lost = true;
    }

    synchronized boolean hasActions() {
        return !endings.isEmpty() || look != null;
    }

    /**
     * Nothing more of the response reaches the client. That ends it: after a write that fails, Spring MVC waits for the server
     * to end the request, and Jetty does not always.
     */
    void broken(IOException cause) {
        failed(cause);
        synchronized (this) {
            broken = true;
            if (!goesOn) {
                return;
            }
        }
        end();
    }

    /** Returns whether a write of the response has failed, or a read of the request. */
    synchronized boolean isAborted() {
        return broken || lost;
    }

    /** The first dispatch has returned; false if the response is broken, so that nothing may end it. */
    synchronized boolean goesOn() {
        goesOn = true;
        return !broken;
    }

    /** A dispatch begins: from now on the server says how the response goes on. */
    static void dispatched(ServletRequest request) {
        if (request.getAttribute(ATTRIBUTE) instanceof ServletRequestState state) {
            state.heard();
        }
    }

    /**
     * A dispatch has returned, and the response goes on. Jetty loses the timeout of an asynchronous response that passes before
     * Jetty has noted its timer, and tells no listener: so what waits for the end of the response then ends by itself.
     */
    static void returned(ServletRequest request) {
        if (request.getAttribute(ATTRIBUTE) instanceof ServletRequestState state) {
            try {
                state.endAfter(request.getAsyncContext().getTimeout());
            } catch (IllegalStateException ex) {
                // It has ended meanwhile, or another thread has dispatched it.
            }
        }
    }

    private synchronized void endAfter(long timeoutMillis) {
        if (timeoutMillis > 0 && isFollowed() && hasActions()) {
            long millis = Math.min(timeoutMillis, LONGEST_TIMEOUT_MILLIS) + LOST_AFTER_MILLIS;
            stopAlarm = style.ticker().schedule(style.ticker().nanos() + TimeUnit.MILLISECONDS.toNanos(millis), () -> {
                failed(new TimeoutException("the server has not ended the response at its timeout"));
                end();
            });
        }
    }

    /** The server does not lose the timeout of the response. */
    synchronized void heard() {
        if (stopAlarm != null) {
            stopAlarm.run();
            stopAlarm = null;
        }
    }

    synchronized void rejected() {
        rejected++;
    }

    synchronized void fallbackCalled() {
        rejected--;
    }

    /**
     * Returns whether a limit has rejected the request, or a call within it that no fallback answers. A call on a thread that
     * does not know the request is only known by the response to its rejection.
     */
    synchronized boolean isRejected() {
        return rejected > 0 || refusal != null;
    }

    /** Takes the outcome of a result that Spring MVC awaits. */
    synchronized void follow(AsyncOutcome awaited) {
        outcome = awaited;
    }

    synchronized @Nullable AsyncOutcome outcome() {
        return outcome;
    }

    synchronized @Nullable Throwable failure() {
        return failure;
    }

    /** A refusal of the request is being answered, with its fields beside those of limits. */
    synchronized void answered(Rejection answer) {
        refusal = answer;
    }

    /** The refusal of a request that is being answered; null if there is none. */
    static @Nullable Rejection refusal(ServletRequest request) {
        return request.getAttribute(ATTRIBUTE) instanceof ServletRequestState state ? state.refusal() : null;
    }

    private synchronized @Nullable Rejection refusal() {
        return refusal;
    }

    /**
     * Sets fields again on a response that has lost them; fields that the refusal has and the response keeps are left alone.
     */
    static void restoreFields(ServletRequest request, HttpServletResponse response) {
        if (request.getAttribute(ATTRIBUTE) instanceof ServletRequestState state && !response.isCommitted()) {
            state.restore(response);
        }
    }

    private synchronized void restore(HttpServletResponse response) {
        try {
            fields.write(style, response::setHeader);
        } catch (RuntimeException ex) {
            // A writer of the application may fail: the response goes on all the same.
            LOG.warn("the rate limit headers of a response could not be written", ex);
        }
        if (refusal != null) {
            refusal.fields().forEach((name, value) -> {
                if (!response.containsHeader(name)) {
                    response.setHeader(name, value);
                }
            });
        }
    }

    /** Returns whether the server may use the request object for another request: the actions at its end have run. */
    boolean isOver() {
        return over;
    }

    /**
     * Returns whether the filter of those routes, or one behind it, has let the request pass: a forward or an asynchronous
     * dispatch from there is the same request on its way to another resource.
     */
    static boolean hasPassed(ServletRequest request, boolean beforeSecurity) {
        return request.getAttribute(ATTRIBUTE) instanceof ServletRequestState state && state.hasPassed(beforeSecurity);
    }

    private synchronized boolean hasPassed(boolean beforeSecurity) {
        return passedAfterSecurity || (beforeSecurity && passedBeforeSecurity);
    }

    /** A filter of routes does not let the request pass. */
    synchronized void stop() {
        stopped = true;
    }

    /** Returns whether a filter of routes has not let the request pass: its error page is shown all the same. */
    static boolean isStopped(ServletRequest request) {
        return request.getAttribute(ATTRIBUTE) instanceof ServletRequestState state && state.isStopped();
    }

    private synchronized boolean isStopped() {
        return stopped;
    }

    /**
     * The request goes on.
     *
     * @param before whether it has passed the filter of the routes before Spring Security
     * @param after whether it has passed that of the routes after it
     * @return whether the caller is the first, who has to {@link #end} the request
     */
    synchronized boolean begin(boolean before, boolean after) {
        passedBeforeSecurity |= before;
        passedAfterSecurity |= after;
        if (followed && !ended) {
            return false;
        }
        followed = true;
        goesOn = false;
        broken = false;
        lost = false;
        ended = false;
        over = false;
        return true;
    }

    synchronized boolean hasEnded() {
        return followed && ended;
    }

    synchronized boolean isFollowed() {
        return followed && !ended;
    }

    /**
     * An action at the end of a request.
     *
     * @param isDue whether it may run as soon as the response is complete
     */
    private record Ending(Runnable action, BooleanSupplier isDue) {}

    /**
     * Runs an action at the end of the request.
     *
     * @param isDue whether it may run before, when the response is complete
     * @return false when nobody would run the action: a request without the filter, or one that has ended
     */
    synchronized boolean atEnd(Runnable action, BooleanSupplier isDue) {
        if (!isFollowed()) {
            return false;
        }
        if (endings.isEmpty()) {
            endings = new ArrayList<>(1);
        }
        endings.add(new Ending(action, isDue));
        return true;
    }

    /**
     * Looks at the response whenever it may be the last one: when it is complete, and at each end of the request, which goes on
     * if the server has an error page for it.
     */
    synchronized void atEachEnd(Runnable action) {
        Runnable others = look;
        look = others == null
                ? action
                : () -> {
                    others.run();
                    action.run();
                };
    }

    /** The last byte of the response is about to be sent: the client may call again before the request has ended. */
    void complete() {
        List<Ending> due;
        Runnable known;
        synchronized (this) {
            if (endings.isEmpty() && look == null) {
                return;
            }
            known = followed && !ended ? look : null;
            due = endings.stream().filter(ending -> ending.isDue.getAsBoolean()).toList();
            if (!due.isEmpty()) {
                endings.removeAll(due);
            }
        }
        if (known != null) {
            known.run();
        }
        due.forEach(ending -> ending.action.run());
    }

    /** The response now belongs to another request: late decisions must not touch it. */
    void end() {
        List<Ending> all;
        Runnable known;
        synchronized (this) {
            if (stopAlarm != null) {
                heard();
            }
            known = ended ? null : look;
            ended = true;
            all = endings;
            endings = List.of();
        }
        try {
            if (known != null) {
                known.run();
            }
            all.forEach(ending -> ending.action.run());
        } finally {
            over = true;
        }
    }

    /**
     * The request goes on, to an error page, after its first dispatch has ended. The caller will {@link #end} it again.
     *
     * @return false if it had not ended, or no limit knows it
     */
    static boolean resume(ServletRequest request) {
        return request.getAttribute(ATTRIBUTE) instanceof ServletRequestState state && state.begin(false, false);
    }

    /** Ends a request on which a limit has decided. */
    static void end(ServletRequest request) {
        if (request.getAttribute(ATTRIBUTE) instanceof ServletRequestState state) {
            state.end();
        }
    }
}
