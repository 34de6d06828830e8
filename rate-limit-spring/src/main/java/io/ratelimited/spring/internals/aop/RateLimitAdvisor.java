package io.ratelimited.spring.internals.aop;

import io.ratelimited.spring.RateLimited;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.stream.Stream;
import org.aopalliance.intercept.MethodInterceptor;
import org.springframework.aop.framework.Advised;
import org.springframework.aop.support.StaticMethodMatcherPointcutAdvisor;
import org.springframework.core.Ordered;
import org.springframework.util.ClassUtils;

/**
 * Puts the advice of {@link RateLimitAspect} into Spring's proxies: around every limited method, or, where classes are
 * woven, around those that AspectJ does not see, such as methods with an annotation on their interface. A class without
 * limits costs one look. AspectJ's own matching, which parses a pointcut and reads class files, is not needed.
 */
public final class RateLimitAdvisor extends StaticMethodMatcherPointcutAdvisor {

    private static final long serialVersionUID = 1L;

    /**
     * A smaller order stands further outside. Transactions and caching have the lowest precedence, and so stand inside
     * this; Resilience4j's retry is at the lowest precedence - 5, and so stands outside. Its circuit breaker has the
     * same order as this, and stands inside because its auto-configuration comes later.
     */
    public static final int DEFAULT_ORDER = Ordered.LOWEST_PRECEDENCE - 4;

    private final boolean woven;

    /**
     * @param advice the aspect
     * @param woven whether {@link RateLimitAspect} and {@link ComposedRateLimitAspect} are woven into classes
     */
    public RateLimitAdvisor(MethodInterceptor advice, int order, boolean woven) {
        this.woven = woven;
        setAdvice(advice);
        setClassFilter(LimitedTypes::contains);
        setOrder(order);
    }

    @Override
    public boolean matches(Method method, Class<?> targetClass) {
        return isLimited(method, targetClass) && !(woven && isSeenByAspect(method, targetClass));
    }

    /** Returns whether there are limits on a method; makes none of them. */
    public static boolean isLimited(Method method, Class<?> targetClass) {
        return !Declarations.of(method, targetClass).isEmpty();
    }

    /** Returns whether a proxy limits methods of its target. */
    public static boolean isIn(Advised proxy) {
        return Stream.of(proxy.getAdvisors()).anyMatch(RateLimitAdvisor.class::isInstance);
    }

    /**
     * Returns whether an aspect that is woven into classes limits a method. A proxy may answer a call of a default method
     * itself.
     */
    public static boolean isSeenByAspect(Method method, Class<?> targetClass) {
        return !Proxy.isProxyClass(targetClass)
                && isSeenByAspect(Declarations.specific(method, ClassUtils.getUserClass(targetClass)));
    }

    /** As {@link #isSeenByAspect(Method, Class)}, of the method that objects of the class run: it has a body to weave. */
    static boolean isSeenByAspect(Method specific) {
        Class<?> type = specific.getDeclaringClass();
        return !Modifier.isAbstract(specific.getModifiers())
                && (isDirect(specific) || isDirect(type) || isComposed(specific) || isComposed(type));
    }

    /** The one of the two aspects that is woven into a method if one of them sees it. */
    public static Class<?> aspectOf(Method specific) {
        boolean direct = isDirect(specific);
        // AspectJ takes an inner class for a part of the outer one.
        for (Class<?> type = specific.getDeclaringClass(); type != null && !direct; type = type.getDeclaringClass()) {
            direct = isDirect(type);
        }
        return direct ? RateLimitAspect.class : ComposedRateLimitAspect.class;
    }

    private static boolean isComposed(AnnotatedElement element) {
        return Stream.of(element.getDeclaredAnnotations())
                .anyMatch(annotation -> isDirect(annotation.annotationType()));
    }

    private static boolean isDirect(AnnotatedElement element) {
        return element.getDeclaredAnnotation(RateLimited.class) != null
                || element.getDeclaredAnnotation(RateLimited.List.class) != null;
    }
}
