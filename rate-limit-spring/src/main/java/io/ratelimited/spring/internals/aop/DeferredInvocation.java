package io.ratelimited.spring.internals.aop;

import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.ProxyMethodInvocation;
import org.springframework.aop.interceptor.ExposeInvocationInterceptor;

/**
 * A call that proceeds after its caller went on, perhaps on another thread or several times. Other aspects of the method
 * look up the current invocation, which Spring exposes only on the caller's thread: it is exposed again.
 */
record DeferredInvocation(ProxyMethodInvocation call) implements DelegatedInvocation {

    /** The call as it can be made later; the same if it does not come from a proxy of Spring's. */
    static MethodInvocation of(MethodInvocation call) {
        return call instanceof ProxyMethodInvocation proxied ? new DeferredInvocation(proxied) : call;
    }

    @Override
    public @Nullable Object proceed() throws Throwable {
        return ExposeInvocationInterceptor.INSTANCE.invoke(call.invocableClone());
    }
}
