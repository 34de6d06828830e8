package io.ratelimited.spring.internals.aop;

import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Method;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;

/** A call that equals another one, but proceeds in its own way. */
interface DelegatedInvocation extends MethodInvocation {

    /** The other one. */
    MethodInvocation call();

    @Override
    default Method getMethod() {
        return call().getMethod();
    }

    @Override
    default @Nullable Object[] getArguments() {
        return call().getArguments();
    }

    @Override
    default @Nullable Object getThis() {
        return call().getThis();
    }

    @Override
    default AccessibleObject getStaticPart() {
        return call().getStaticPart();
    }
}
