package io.ratelimited.spring.internals.aop;

import io.ratelimited.spring.internals.aop.RateLimitAspect.LimitedCall;
import java.lang.reflect.Method;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.Advised;

/**
 * Calls of a limited bean that is a proxy itself. The caller has made one call and pays one permit:
 *
 * <ul>
 *   <li>A proxy that has the limit in its own advice asks it, as where a {@code @Bean} method returns a limited bean that
 *       it was given. The proxy around it asks nothing.
 *   <li>Any other proxy may hand the call on to a bean with the same limit, as a repository of Spring Data does with the
 *       methods of a fragment. The limit is asked before the proxy, and the first such call behind it, on the same thread,
 *       is not counted again.
 * </ul>
 *
 * @param limited the method of the proxy
 * @param counted makes its calls under its limits
 */
record ProxiedCalls(LimitedMethod limited, LimitedCall counted) implements LimitedCall {

    /** The call of a proxy on this thread that has been counted and not yet been handed on. */
    private static final ThreadLocal<@Nullable Call> COUNTED = new ThreadLocal<>();

    @Override
    public Method method() {
        return limited.method();
    }

    @Override
    public boolean blocks() {
        return counted.blocks();
    }

    @Override
    public @Nullable Object invoke(MethodInvocation call) throws Throwable {
        if (call.getThis() instanceof Advised proxy && RateLimitAdvisor.isIn(proxy)) {
            return call.proceed();
        }
        Call counting = new Call(limited, counted.blocks() ? call : DeferredInvocation.of(call));
        return consumeMarker(limited, call.getThis()) ? counting.proceed() : counted.invoke(counting);
    }

    /** Calls of a bean that a proxy may hand on to it, having counted them: such a call is not counted again. */
    record Behind(LimitedMethod limited, LimitedCall counted) implements LimitedCall {

        @Override
        public Method method() {
            return limited.method();
        }

        @Override
        public boolean blocks() {
            return counted.blocks();
        }

        @Override
        public @Nullable Object invoke(MethodInvocation call) throws Throwable {
            return consumeMarker(limited, null) ? call.proceed() : counted.invoke(call);
        }
    }

    /**
     * Returns whether a proxy has handed this call on and has counted it. True once for each call of the proxy.
     *
     * @param target a proxy that calls itself makes another call; null if the target is no proxy
     */
    private static boolean consumeMarker(LimitedMethod method, @Nullable Object target) {
        Call counted = COUNTED.get();
        if (counted == null || counted.getThis() == target || !method.mayBe(counted.method())) {
            return false;
        }
        COUNTED.remove();
        return true;
    }

    private record Call(LimitedMethod method, MethodInvocation call) implements DelegatedInvocation {

        @Override
        public @Nullable Object proceed() throws Throwable {
            Call before = COUNTED.get();
            COUNTED.set(this);
            try {
                return call.proceed();
            } finally {
                if (before == null) {
                    COUNTED.remove();
                } else {
                    COUNTED.set(before);
                }
            }
        }
    }
}
