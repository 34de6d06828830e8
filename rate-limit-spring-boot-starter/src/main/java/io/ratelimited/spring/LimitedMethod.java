package io.ratelimited.spring;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.springframework.core.KotlinDetector;

/**
 * A method and the limits on it, resolved once: asks the gate for every call, and makes the call, or its fallback.
 * Immutable.
 */
final class LimitedMethod {

    private final Method method;
    private final List<MethodLimit> limits;
    private final @Nullable MethodLimit only;
    private final @Nullable Method fallback;
    private final Gate gate;
    private final CallStyle style;
    private final CurrentRequest.@Nullable Source requests;
    private final boolean suspending;
    private final @Nullable UnattendedCalls unattended;

    LimitedMethod(
            Method method,
            List<MethodLimit> limits,
            @Nullable Method fallback,
            RateLimits rateLimits,
            CallStyle style,
            CurrentRequest.@Nullable Source requests) {
        this.method = method;
        this.limits = List.copyOf(limits);
        this.only = limits.size() == 1 ? limits.get(0) : null;
        this.fallback = fallback;
        this.gate = rateLimits.gate();
        this.style = style;
        this.requests = requests;
        this.suspending = KotlinDetector.isSuspendingFunction(method);
        this.unattended = UnattendedCalls.of(method, gate.ticker());
    }

    Method method() {
        return method;
    }

    List<MethodLimit> limits() {
        return limits;
    }

    /** What is called instead of a refused call; null when the refusal is thrown. */
    @Nullable
    Method fallback() {
        return fallback;
    }

    /** Makes the call under its limits. */
    @Nullable
    Object invoke(Call call) throws Throwable {
        return style.invoke(this, call);
    }

    /**
     * The shortest way: whether a call of which nothing need be known has been admitted, so that only proceeding is left.
     * Allocates nothing. False decides nothing.
     */
    boolean isAdmittedAtOnce() {
        MethodLimit limit = only;
        if (limit == null
                || style != CallStyle.BLOCKING
                || !limit.isPlain()
                || currentRequest() != null
                || !mayTry(limit.limit())
                || !limit.limit().limiter().tryAcquire(null, limit.fixedPermits())) {
            return false;
        }
        gate.tell(limit.limit(), Outcome.ADMITTED, null, 0, limit.plainDecision());
        return true;
    }

    /**
     * Whether no reservation is needed: the call does not wait, nothing ends with it, and nobody has to ask the limiter
     * again over a network to know who decided, or when a refused call may come again.
     */
    private static boolean mayTry(NamedLimit limit) {
        return limit.policy() == Policy.REJECT
                && !limit.countsInFlight()
                && limit.limiter().source() != null;
    }

    /** A call that blocks its thread until it ends. */
    private @Nullable Object invokeBlocking(Call call) throws Throwable {
        CurrentRequest request = currentRequest();
        List<Ask> asks = asks(call, request);
        if (asks.isEmpty()) {
            return call.proceed();
        }
        Gate.@Nullable Pass pass;
        try {
            boolean admitted = request == null && asks.size() == 1 && isAdmittedAtOnce(asks.get(0));
            pass = admitted ? null : gate.enter(asks, request);
        } catch (RateLimitExceededException refusal) {
            return refused(call, isUnattended(), refusal);
        }
        if (pass == null) {
            return call.proceed();
        }
        Object result = null;
        try {
            result = call.proceed();
            return result;
        } finally {
            pass.endWith(result);
        }
    }

    /**
     * Whether a call without a request has been admitted; false decides nothing. A plain limit was tried before, by {@link
     * #isAdmittedAtOnce()}, and is not tried again: each call is decided once.
     *
     * @throws RateLimitExceededException when it is refused
     */
    private boolean isAdmittedAtOnce(Ask ask) {
        if (ask.denied() || !mayTry(ask.limit())) {
            return false;
        }
        boolean tried = only != null && only.isPlain();
        if (!tried && ask.limiter().tryAcquire(ask.key(), ask.permits())) {
            if (!gate.isUnobserved()) {
                gate.tell(ask.limit(), Outcome.ADMITTED, ask.key(), 0, ask::peek);
            }
            return true;
        }
        Decision refusal = ask.peek();
        if (!refusal.admitted()) {
            throw gate.refused(ask, refusal);
        }
        return false;
    }

    /** Asks the limits without blocking, as {@link Gate#enterAsync}; throws what evaluating their expressions throws. */
    CompletableFuture<Gate.Pass> enterAsync(Call call, @Nullable CurrentRequest request) {
        return gate.enterAsync(asks(call, request), request);
    }

    private List<Ask> asks(Call call, @Nullable CurrentRequest request) {
        Object target = call.target();
        @Nullable Object[] args = call.args();
        if (suspending) {
            args = Arrays.copyOf(args, args.length - 1);
        }
        if (only != null) {
            Ask ask = only.ask(target, args, request);
            return ask == null ? List.of() : List.of(ask);
        }
        List<Ask> asks = new ArrayList<>(limits.size());
        for (MethodLimit limit : limits) {
            Ask ask = limit.ask(target, args, request);
            if (ask != null) {
                asks.add(ask);
            }
        }
        return asks;
    }

    /** Whether Spring makes the present call, and nobody handles its refusal. Known only while the method is called. */
    boolean isUnattended() {
        return fallback == null && unattended != null && unattended.isCurrent();
    }

    /** Calls the fallback, or throws the refusal if there is none; skips an unattended call. */
    @Nullable
    Object refused(Call call, boolean isUnattended, RateLimitExceededException refusal) throws Throwable {
        if (isUnattended && unattended != null) {
            unattended.log(refusal);
            return null;
        }
        if (fallback == null) {
            throw refusal;
        }
        @Nullable Object[] arguments = Fallbacks.arguments(fallback, call.args(), suspending, refusal);
        if (KotlinDetector.isSuspendingFunction(fallback)) {
            return ReactiveCalls.invokeSuspending(fallback, call.target(), arguments);
        }
        try {
            return fallback.invoke(call.target(), arguments);
        } catch (InvocationTargetException ex) {
            throw ex.getTargetException();
        }
    }

    Gate gate() {
        return gate;
    }

    /** The request of this thread. */
    @Nullable
    CurrentRequest currentRequest() {
        return requests == null ? null : requests.current();
    }

    /** The request of a subscription. */
    @Nullable
    CurrentRequest currentRequest(Function<Object, @Nullable Object> reactorContext) {
        return requests == null ? null : requests.current(reactorContext);
    }

    @Override
    public String toString() {
        return method.toGenericString();
    }

    /** How calls of a kind of method are made: blocking, asynchronous, reactive. */
    interface CallStyle {

        /** The calling thread waits, and the call ends when it returns. */
        CallStyle BLOCKING = LimitedMethod::invokeBlocking;

        @Nullable
        Object invoke(LimitedMethod method, Call call) throws Throwable;

        /** Whether the call may be made after its caller went on, or more than once. */
        default boolean mayProceedLater() {
            return this != BLOCKING;
        }
    }

    boolean mayProceedLater() {
        return style.mayProceedLater();
    }
}
