package io.ratelimited.spring.aop;

import org.jspecify.annotations.Nullable;

/** A call on its way to the method: whoever calls {@link #proceed} makes it. */
public interface LimitedInvocation {

    /** The called object; null for a static method. */
    @Nullable
    Object target();

    /** The arguments. */
    @Nullable
    Object[] args();

    /** Makes the call; as often as it is called, and on any thread. */
    @Nullable
    Object proceed() throws Throwable;
}
