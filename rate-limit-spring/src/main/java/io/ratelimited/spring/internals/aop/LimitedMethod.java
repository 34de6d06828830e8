package io.ratelimited.spring.internals.aop;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiter.Callbacks;
import io.ratelimited.spring.internals.call.Admission;
import io.ratelimited.spring.internals.call.LimitEnforcer;
import io.ratelimited.spring.internals.call.LimitRequest;
import io.ratelimited.spring.internals.call.LimitUse;
import io.ratelimited.spring.internals.request.CurrentRequest;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.core.KotlinDetector;

/**
 * A method and its limits, resolved once: asks them about each call, and makes one that blocks its thread under them, or its
 * fallback if a limit refuses. {@link CallKinds} makes calls of other kinds. Immutable.
 */
public final class LimitedMethod implements RateLimitAspect.LimitedCall {

    /** Stands for the result of a handler among the uses of limits. */
    private static final String RESULT = "";

    private final Method method;
    private final List<LimitUse> limits;
    /** For each limit the annotation that it comes from. */
    private final List<Declaration> declarations;
    /** The requests of every call, if they are the same, made anew when a policy has changed; null if they depend on the call. */
    private volatile LimitRequest @Nullable [] same;

    private final @Nullable Method fallback;
    private final LimitEnforcer enforcer;
    private final CurrentRequest.@Nullable Source source;
    private final boolean suspending;
    private final boolean charges;
    private final boolean countsInFlight;

    LimitedMethod(
            Method method,
            List<LimitUse> limits,
            List<Declaration> declarations,
            @Nullable Method fallback,
            LimitEnforcer enforcer,
            CurrentRequest.@Nullable Source source) {
        this.method = method;
        this.limits = List.copyOf(limits);
        this.declarations = List.copyOf(declarations);
        this.same = limits.stream().allMatch(LimitUse::isSameForAll) ? sameRequests() : null;
        this.fallback = fallback;
        this.enforcer = enforcer;
        this.source = source;
        this.suspending = KotlinDetector.isSuspendingFunction(method);
        this.charges = limits.stream().anyMatch(LimitUse::charges);
        this.countsInFlight = limits.stream().anyMatch(limit -> limit.limit().countsInFlight());
    }

    @Override
    public Method method() {
        return method;
    }

    @Override
    public boolean blocks() {
        return true;
    }

    public List<LimitUse> limits() {
        return limits;
    }

    /**
     * Returns whether a call of this method may be one of the other that was handed on: it has the name and the limits of that
     * one, which come from the same annotations or have the same names.
     */
    boolean mayBe(LimitedMethod other) {
        if (!method.getName().equals(other.method.getName())
                || method.getParameterCount() != other.method.getParameterCount()
                || limits.size() != other.limits.size()) {
            return false;
        }
        for (int i = 0; i < limits.size(); i++) {
            Declaration own = declarations.get(i);
            Declaration ofOther = other.declarations.get(i);
            String name = limits.get(i).limit().name();
            if (!own.mayBeBehind(ofOther)
                    || !(own.isOfSameAnnotation(ofOther)
                            || name.equals(other.limits.get(i).limit().name()))) {
                return false;
            }
        }
        return true;
    }

    /** The method to call instead of a refused call; null when the refusal is thrown. */
    @Nullable
    public Method fallback() {
        return fallback;
    }

    /** Makes a call that blocks its thread until it ends. */
    @Override
    public @Nullable Object invoke(MethodInvocation call) throws Throwable {
        CurrentRequest current = currentRequest();
        LimitRequest[] requests = requests(call, current);
        Admission admission;
        try {
            admission = enforcer.enter(requests, current);
        } catch (RateLimitExceededException refusal) {
            return refused(call, refusal, current);
        }
        Object result = null;
        Throwable error = null;
        try {
            result = call.proceed();
            return result;
        } catch (Throwable ex) {
            error = ex;
            throw ex;
        } finally {
            admission.endWith(result, error);
        }
    }

    /** Asks the limits, as {@link LimitEnforcer#enter}; throws the exceptions of their expressions, too. */
    Admission enter(MethodInvocation call, @Nullable CurrentRequest current) {
        return enforcer.enter(requests(call, current), current);
    }

    /**
     * Asks the limits without blocking, as {@link LimitEnforcer#reserveAsync}; throws the exceptions of their expressions.
     */
    CompletableFuture<Admission> reserveAsync(
            MethodInvocation call, @Nullable CurrentRequest current, Callbacks callbacks) {
        return enforcer.reserveAsync(requests(call, current), current, callbacks);
    }

    private LimitRequest[] sameRequests() {
        return limits.stream().map(LimitUse::sameRequest).toArray(LimitRequest[]::new);
    }

    private LimitRequest[] requests(MethodInvocation call, @Nullable CurrentRequest current) {
        LimitRequest[] known = same;
        if (known != null) {
            for (LimitRequest request : known) {
                if (!request.isCurrent()) {
                    known = sameRequests();
                    same = known;
                    break;
                }
            }
            return known;
        }
        Object target = call.getThis();
        @Nullable Object[] args = KotlinOverrides.arguments(call, method);
        if (suspending) {
            args = Arrays.copyOf(args, args.length - 1);
        }
        LimitRequest[] requests = new LimitRequest[limits.size()];
        int applying = 0;
        for (int i = 0; i < requests.length; i++) {
            LimitRequest request = limits.get(i).request(target, args, current);
            if (request != null) {
                requests[applying++] = request;
            }
        }
        return applying == requests.length ? requests : Arrays.copyOf(requests, applying);
    }

    /** Calls the fallback, or throws the refusal if there is none. */
    @Nullable
    Object refused(MethodInvocation call, RateLimitExceededException refusal, @Nullable CurrentRequest current)
            throws Throwable {
        Method instead = fallback;
        if (instead == null) {
            throw refusal;
        }
        if (current != null) {
            current.fallbackCalled(refusal.decision());
        }
        try {
            return CountedCall.during(
                    call,
                    () -> Fallbacks.call(
                            instead, call.getThis(), KotlinOverrides.arguments(call, method), suspending, refusal));
        } catch (Throwable ex) {
            fallbackFailed(ex, refusal, current);
            throw ex;
        }
    }

    /** The fallback has failed, perhaps later: if because of the refusal, its caller gets that one all the same. */
    static void fallbackFailed(
            Throwable failure, RateLimitExceededException refusal, @Nullable CurrentRequest current) {
        if (current != null && Fallbacks.isCausedBy(failure, refusal)) {
            current.fallbackFailed(refusal.decision());
        }
    }

    /** Returns whether the cost of a call is known only when it has ended. */
    boolean charges() {
        return charges;
    }

    /** Returns whether calls of it are in flight until they have ended. */
    boolean countsInFlight() {
        return countsInFlight;
    }

    /** Returns whether something depends on the end of a call, or on its result. */
    boolean followsResult() {
        return charges || countsInFlight;
    }

    /**
     * Finds the request whose end is that of the call that begins: of a call that something follows to its end, and by which the
     * request comes to its handler. Others may go on without the request.
     */
    @Nullable
    CurrentRequest served(@Nullable CurrentRequest current) {
        return current != null && followsResult() && current.isOwnCall(RESULT, method) ? current : null;
    }

    LimitEnforcer enforcer() {
        return enforcer;
    }

    /** The request of this thread. */
    @Nullable
    CurrentRequest currentRequest() {
        return source == null ? null : source.current();
    }

    /** The request of a subscription. */
    @Nullable
    CurrentRequest currentRequest(Function<Object, @Nullable Object> reactorContext) {
        return source == null ? null : source.current(reactorContext);
    }

    @Override
    public String toString() {
        return method.toGenericString();
    }
}
