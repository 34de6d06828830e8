package io.ratelimited.spring.aop;

import io.ratelimited.core.Decision;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.spring.CurrentRequest;
import io.ratelimited.spring.Outcome;
import io.ratelimited.spring.call.Admission;
import io.ratelimited.spring.call.Fallbacks;
import io.ratelimited.spring.call.LimitEnforcer;
import io.ratelimited.spring.call.LimitRequest;
import io.ratelimited.spring.call.LimitUse;
import java.lang.reflect.Method;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.core.KotlinDetector;

/**
 * A method and its limits, resolved once: makes each call under these limits, or its fallback if a limit refuses.
 * Immutable.
 */
public final class LimitedMethod {

    private final Method method;
    private final List<LimitUse> limits;
    /** The only limit, if it has no expressions. */
    private final @Nullable LimitUse only;
    /** Describes its budget; made once, so that reporting a decision allocates nothing. */
    private final @Nullable Supplier<Decision> budget;
    /** The requests of every call, if they are the same, made anew when a policy has changed; null if they depend on the call. */
    private volatile LimitRequest @Nullable [] plain;

    private final @Nullable Method fallback;
    private final LimitEnforcer enforcer;
    private final Kind kind;
    private final CurrentRequest.@Nullable Source source;
    private final boolean suspending;
    private final boolean behindProxies;
    private final boolean charges;

    /** @param behindProxies whether a proxy may hand its calls on to this method, having counted them */
    LimitedMethod(
            Method method,
            List<LimitUse> limits,
            @Nullable Method fallback,
            LimitEnforcer enforcer,
            Kind kind,
            CurrentRequest.@Nullable Source source,
            boolean behindProxies) {
        this.method = method;
        this.limits = List.copyOf(limits);
        this.only = limits.size() == 1 && limits.get(0).isPlain() ? limits.get(0) : null;
        this.budget = only == null ? null : only.plainRequest()::peekAtOnce;
        this.plain = limits.stream().allMatch(LimitUse::isSameForAll) ? plainRequests() : null;
        this.fallback = fallback;
        this.enforcer = enforcer;
        this.kind = kind;
        this.source = source;
        this.suspending = KotlinDetector.isSuspendingFunction(method);
        this.behindProxies = behindProxies;
        this.charges = limits.stream().anyMatch(LimitUse::charges);
    }

    public Method method() {
        return method;
    }

    public List<LimitUse> limits() {
        return limits;
    }

    /** The method to call instead of a refused call; null when the refusal is thrown. */
    @Nullable
    public Method fallback() {
        return fallback;
    }

    /** Makes the call under its limits. */
    @Nullable
    public Object invoke(LimitedInvocation call) throws Throwable {
        return kind.invoke(this, call);
    }

    /**
     * Takes the permits of a call without key, expression and request if that needs no reservation. Allocates nothing.
     * Takes none for a call that a proxy hands on and has counted.
     *
     * @return true if the call is admitted and may proceed; false if {@link #invoke} has to decide
     */
    public boolean tryAdmit() {
        if (behindProxies && ProxiedCalls.consumeMarker(this, null)) {
            return true;
        }
        LimitUse limit = only;
        if (limit == null
                || budget == null
                || kind != Kind.BLOCKING
                || currentRequest() != null
                || !limit.limit().enforcement().mayTry()
                || !limit.limit().limiter().tryAcquire(null, limit.fixedPermits())) {
            return false;
        }
        enforcer.report(limit.limit(), Outcome.ADMITTED, null, 0, budget);
        return true;
    }

    /** A call that blocks its thread until it ends. */
    private @Nullable Object invokeBlocking(LimitedInvocation call) throws Throwable {
        CurrentRequest current = currentRequest();
        LimitRequest[] requests = requests(call, current);
        if (requests.length == 0) {
            return call.proceed();
        }
        @Nullable Admission admission;
        try {
            boolean admitted = current == null && requests.length == 1 && tryAdmit(requests[0]);
            admission = admitted ? null : enforcer.enter(requests, current);
        } catch (RateLimitExceededException refusal) {
            return refused(call, refusal);
        }
        if (admission == null) {
            return call.proceed();
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

    /**
     * Whether a call without a request has been admitted; false decides nothing. A plain limit was tried before, by {@link
     * #tryAdmit()}, and is not tried again: each call is decided once.
     *
     * @throws RateLimitExceededException when it is refused
     */
    private boolean tryAdmit(LimitRequest request) {
        if (request.denied()
                || request.charge() != null
                || !request.enforcement().mayTry()) {
            return false;
        }
        boolean tried = kind == Kind.BLOCKING && only != null;
        if (!tried && request.limiter().tryAcquire(request.key(), request.permits())) {
            if (!enforcer.isUnobserved()) {
                enforcer.report(request.limit(), Outcome.ADMITTED, request.key(), 0, request::peekAtOnce);
            }
            return true;
        }
        Decision refusal = request.peekAtOnce();
        if (!refusal.admitted()) {
            throw enforcer.refused(request, refusal);
        }
        return false;
    }

    /** Asks the limits without blocking, as {@link LimitEnforcer#enterAsync}; throws what evaluating their expressions throws. */
    CompletableFuture<Admission> enterAsync(LimitedInvocation call, @Nullable CurrentRequest current) {
        return enforcer.enterAsync(requests(call, current), current);
    }

    private LimitRequest[] plainRequests() {
        return limits.stream().map(LimitUse::plainRequest).toArray(LimitRequest[]::new);
    }

    private LimitRequest[] requests(LimitedInvocation call, @Nullable CurrentRequest current) {
        LimitRequest[] same = plain;
        if (same != null) {
            for (LimitRequest request : same) {
                if (!request.isCurrent()) {
                    same = plainRequests();
                    plain = same;
                    break;
                }
            }
            return same;
        }
        Object target = call.target();
        @Nullable Object[] args = call.args();
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
    Object refused(LimitedInvocation call, RateLimitExceededException refusal) throws Throwable {
        if (fallback == null) {
            throw refusal;
        }
        return Fallbacks.call(fallback, call.target(), call.args(), suspending, refusal);
    }

    /** Whether what a call has cost is known only when it has ended. */
    boolean charges() {
        return charges;
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

    /** How calls of a kind of method are made: blocking, asynchronous, reactive. */
    interface Kind {

        /** The calling thread waits, and the call ends when it returns. */
        Kind BLOCKING = LimitedMethod::invokeBlocking;

        @Nullable
        public Object invoke(LimitedMethod method, LimitedInvocation call) throws Throwable;

        /** Whether the call may be made after its caller went on, or more than once. */
        public default boolean mayProceedLater() {
            return this != BLOCKING;
        }
    }

    public boolean mayProceedLater() {
        return kind.mayProceedLater();
    }
}
