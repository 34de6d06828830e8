package io.ratelimited.spring.aop;

import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Method;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.ProxyMethodInvocation;
import org.springframework.aop.interceptor.ExposeInvocationInterceptor;

/**
 * A call that proceeds after its caller went on, perhaps on another thread. Other aspects of the method look up the
 * current invocation, which Spring exposes only on the caller's thread: it is exposed again.
 */
public final class DeferredInvocation implements LimitedInvocation {

    private final LimitedInvocation call;
    private final ProxyMethodInvocation shown;

    private DeferredInvocation(LimitedInvocation call, ProxyMethodInvocation shown) {
        this.call = call;
        this.shown = shown;
    }

    /** The call as it can be made later; the same when no invocation is shown now. */
    public static LimitedInvocation of(LimitedInvocation call) {
        try {
            return ExposeInvocationInterceptor.currentInvocation() instanceof ProxyMethodInvocation shown
                    ? new DeferredInvocation(call, shown)
                    : call;
        } catch (IllegalStateException ex) {
            return call;
        }
    }

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
        return ExposeInvocationInterceptor.INSTANCE.invoke(new Shown(shown, call));
    }

    /** The invocation of the caller, but proceeding with the call. */
    private record Shown(ProxyMethodInvocation invocation, LimitedInvocation call) implements ProxyMethodInvocation {

        @Override
        public @Nullable Object proceed() throws Throwable {
            return call.proceed();
        }

        @Override
        public Object getProxy() {
            return invocation.getProxy();
        }

        @Override
        public MethodInvocation invocableClone() {
            return invocation.invocableClone();
        }

        @Override
        public MethodInvocation invocableClone(@Nullable Object... arguments) {
            return invocation.invocableClone(arguments);
        }

        @Override
        public void setArguments(@Nullable Object... arguments) {
            invocation.setArguments(arguments);
        }

        @Override
        public void setUserAttribute(String key, @Nullable Object value) {
            invocation.setUserAttribute(key, value);
        }

        @Override
        public @Nullable Object getUserAttribute(String key) {
            return invocation.getUserAttribute(key);
        }

        @Override
        public Method getMethod() {
            return invocation.getMethod();
        }

        @Override
        public @Nullable Object[] getArguments() {
            return invocation.getArguments();
        }

        @Override
        public @Nullable Object getThis() {
            return invocation.getThis();
        }

        @Override
        public AccessibleObject getStaticPart() {
            return invocation.getStaticPart();
        }
    }
}
