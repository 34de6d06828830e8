package io.ratelimited.spring;

import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A method and the limits on it, resolved once: asks the gate for every call, and makes the call, or its fallback.
 * Immutable.
 */
final class LimitedMethod {

    private final Method method;
    private final List<MethodLimit> limits;
    private final @Nullable Method fallback;
    private final RateLimits rateLimits;
    private final CallStyle style;
    private final CurrentRequest.@Nullable Source requests;

    LimitedMethod(
            Method method,
            List<MethodLimit> limits,
            @Nullable Method fallback,
            RateLimits rateLimits,
            CallStyle style,
            CurrentRequest.@Nullable Source requests) {
        this.method = method;
        this.limits = List.copyOf(limits);
        this.fallback = fallback;
        this.rateLimits = rateLimits;
        this.style = style;
        this.requests = requests;
    }

    List<MethodLimit> limits() {
        return limits;
    }

    /** Makes the call under its limits. */
    @Nullable
    Object invoke(@Nullable Object target, @Nullable Object[] args, Body body) throws Throwable {
        return style.invoke(this, target, args, body);
    }

    /** A call that blocks its thread until it ends. */
    @Nullable
    Object invokeBlocking(@Nullable Object target, @Nullable Object[] args, Body body) throws Throwable {
        CurrentRequest request = requests == null ? null : requests.current();
        if (request == null && limits.size() == 1 && tryPlain(limits.get(0))) {
            return body.proceed();
        }
        Gate.Pass pass;
        try {
            pass = rateLimits.gate().enter(asks(target, args, request), request);
        } catch (RateLimitExceededException refusal) {
            return fallback(target, args, refusal);
        }
        try {
            return body.proceed();
        } finally {
            pass.end();
        }
    }

    /**
     * The short way for a limit without expressions that refuses: nothing is allocated. Observers are told, unless a
     * limiter would have to be asked again for what they may want to know.
     */
    private boolean tryPlain(MethodLimit only) {
        NamedLimit limit = only.limit();
        Gate gate = rateLimits.gate();
        if (!only.isPlain()
                || limit.policy() != Policy.REJECT
                || limit.countsInFlight()
                || (!gate.isUnobserved() && limit.limiter().source() == null)
                || !limit.limiter().tryAcquire(null, only.fixedPermits())) {
            return false;
        }
        gate.tell(limit, Outcome.ADMITTED, null, 0, only.plainDecision(), null);
        return true;
    }

    /** What the limits are asked for a call. */
    List<Ask> asks(@Nullable Object target, @Nullable Object[] args, @Nullable CurrentRequest request) {
        List<Ask> asks = new ArrayList<>(limits.size());
        for (MethodLimit limit : limits) {
            Ask ask = limit.ask(target, args, request);
            if (ask != null) {
                asks.add(ask);
            }
        }
        return asks;
    }

    /** Calls the fallback, or throws the refusal if there is none. */
    @Nullable
    Object fallback(@Nullable Object target, @Nullable Object[] args, RateLimitExceededException refusal)
            throws Throwable {
        if (fallback == null) {
            throw refusal;
        }
        @Nullable Object[] arguments = args;
        if (fallback.getParameterCount() > args.length) {
            arguments = Arrays.copyOf(args, args.length + 1);
            arguments[args.length] = refusal;
        }
        try {
            return fallback.invoke(target, arguments);
        } catch (InvocationTargetException ex) {
            throw ex.getTargetException();
        }
    }

    Gate gate() {
        return rateLimits.gate();
    }

    CurrentRequest.@Nullable Source requests() {
        return requests;
    }

    @Override
    public String toString() {
        return method.toGenericString();
    }

    /** The rest of the call, behind the limits. */
    interface Body {

        @Nullable
        Object proceed() throws Throwable;
    }

    /** How calls of a kind of method are made: blocking, asynchronous, reactive. */
    interface CallStyle {

        @Nullable
        Object invoke(LimitedMethod method, @Nullable Object target, @Nullable Object[] args, Body body)
                throws Throwable;
    }
}
