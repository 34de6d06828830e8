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

    /**
     * Makes a part of a call: its fallback, which may call the overridden method, too.
     *
     * @param call perhaps one that delegates to a counted one, which there is only where classes are woven
     */
    static @Nullable Object during(MethodInvocation call, Part part) throws Throwable {
        MethodInvocation inner = call;
        while (inner instanceof DelegatedInvocation delegated) {
            if (inner instanceof CountedCall counted) {
                return counted.during(part);
            }
            inner = delegated.call();
        }
        return part.proceed();
    }

    @Override
    public @Nullable Object proceed() throws Throwable {
        return during(call::proceed);
    }

    private @Nullable Object during(Part part) throws Throwable {
        CountedCall before = CURRENT.get();
        CURRENT.set(this);
        try {
            return part.proceed();
        } finally {
            if (before == null) {
                CURRENT.remove();
            } else {
                CURRENT.set(before);
            }
        }
    }

    /** The method of a call, or its fallback. */
    interface Part {

        @Nullable
        Object proceed() throws Throwable;
    }
}
