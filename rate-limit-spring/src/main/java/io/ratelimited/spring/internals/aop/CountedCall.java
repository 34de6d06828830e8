package io.ratelimited.spring.internals.aop;

import java.lang.reflect.Method;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;

/**
 * A call that its limits have counted, where classes are woven. An overriding method may call the overridden one, which woven
 * code meets, too: in this call it is not counted again.
 *
 * @param limited the method that the limits stand on
 */
record CountedCall(Method limited, MethodInvocation call) implements DelegatedInvocation {

    /** The innermost one on this thread. */
    private static final ThreadLocal<@Nullable CountedCall> CURRENT = new ThreadLocal<>();

    /** Returns whether this thread is in a counted call of a method on an object. */
    static boolean isCurrent(Method limited, @Nullable Object target) {
        CountedCall current = CURRENT.get();
        return current != null && current.getThis() == target && current.limited.equals(limited);
    }

    @Override
    public @Nullable Object proceed() throws Throwable {
        CountedCall before = CURRENT.get();
        CURRENT.set(this);
        try {
            return call.proceed();
        } finally {
            if (before == null) {
                CURRENT.remove();
            } else {
                CURRENT.set(before);
            }
        }
    }
}
