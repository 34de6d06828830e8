package io.ratelimited.spring.aop;

import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Calls of a JDK proxy, which may hand a call on to another bean with the same limit, as a repository of Spring Data does
 * with the methods of a fragment. The caller has made one call and pays one permit: the proxy asks the limit, and the
 * first such call behind it, on the same thread, is not counted again.
 *
 * @param kind how these calls are made
 */
record ProxiedCalls(LimitedMethod.Kind kind) implements LimitedMethod.Kind {

    /** The call of a proxy on this thread that has been counted and not yet been handed on. */
    private static final ThreadLocal<@Nullable Call> COUNTED = new ThreadLocal<>();

    @Override
    public @Nullable Object invoke(LimitedMethod method, LimitedInvocation call) throws Throwable {
        Call counting = new Call(method, call);
        return consumeMarker(method, call.target()) ? counting.proceed() : kind.invoke(method, counting);
    }

    @Override
    public boolean mayProceedLater() {
        return kind.mayProceedLater();
    }

    /**
     * Whether a proxy has handed this call on and has counted it. True once for each call of the proxy.
     *
     * @param target a proxy that calls itself makes another call; null if the target is no proxy
     */
    static boolean consumeMarker(LimitedMethod method, @Nullable Object target) {
        Call counted = COUNTED.get();
        if (counted == null || counted.target() == target || !isSame(counted.method(), method)) {
            return false;
        }
        COUNTED.remove();
        return true;
    }

    private static boolean isSame(LimitedMethod one, LimitedMethod other) {
        return one.method().getName().equals(other.method().getName())
                && one.method().getParameterCount() == other.method().getParameterCount()
                && names(one).equals(names(other));
    }

    private static List<String> names(LimitedMethod method) {
        return method.limits().stream().map(limit -> limit.limit().name()).toList();
    }

    private record Call(LimitedMethod method, LimitedInvocation call) implements LimitedInvocation {

        @Override
        public @Nullable Object target() {
            return call.target();
        }

        @Override
        public @Nullable Object[] args() {
            return call.args();
        }

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
