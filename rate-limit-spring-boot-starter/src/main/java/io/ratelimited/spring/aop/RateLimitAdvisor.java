package io.ratelimited.spring.aop;

import io.ratelimited.spring.ComposedRateLimitAspect;
import io.ratelimited.spring.RateLimitAspect;
import io.ratelimited.spring.RateLimited;
import java.lang.reflect.AnnotatedElement;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.ProxyMethodInvocation;
import org.springframework.aop.support.StaticMethodMatcherPointcutAdvisor;
import org.springframework.util.ClassUtils;

/**
 * The advice of {@link RateLimitAspect} for methods that its pointcut does not see: annotations on interfaces, on what is
 * overridden, and on other annotations. Matches exactly what the aspect does not, so that no call counts twice.
 */
public final class RateLimitAdvisor extends StaticMethodMatcherPointcutAdvisor {

    private static final long serialVersionUID = 1L;

    private final boolean woven;

    /** @param woven whether {@link ComposedRateLimitAspect} is there, too */
    public RateLimitAdvisor(Supplier<LimitedMethods> methods, int order, boolean woven) {
        this.woven = woven;
        setAdvice(new Advice(methods));
        setClassFilter(LimitedTypes::contains);
        setOrder(order);
    }

    @Override
    public boolean matches(Method method, Class<?> targetClass) {
        return LimitedMethods.isLimited(method, targetClass) && !isSeenByAspect(method, targetClass, woven);
    }

    /** Whether an aspect sees to a method, among proxies or woven. */
    public static boolean isSeenByAspect(Method method, Class<?> targetClass, boolean woven) {
        Method specific = ClassUtils.getMostSpecificMethod(method, ClassUtils.getUserClass(targetClass));
        if (!woven && Proxy.isProxyClass(specific.getDeclaringClass())) {
            // Of a client or another JDK proxy, Spring matches the pointcut against the method of the interface.
            specific = method;
        }
        Class<?> type = specific.getDeclaringClass();
        return isDirect(specific) || isDirect(type) || (woven && (isComposed(specific) || isComposed(type)));
    }

    private static boolean isComposed(AnnotatedElement element) {
        return Stream.of(element.getDeclaredAnnotations())
                .anyMatch(annotation -> isDirect(annotation.annotationType()));
    }

    private static boolean isDirect(AnnotatedElement element) {
        return element.getDeclaredAnnotation(RateLimited.class) != null
                || element.getDeclaredAnnotation(RateLimited.List.class) != null;
    }

    private record Advice(Supplier<LimitedMethods> methods) implements MethodInterceptor {

        @Override
        public @Nullable Object invoke(MethodInvocation call) throws Throwable {
            Object target = call.getThis();
            Class<?> targetClass = target == null ? call.getMethod().getDeclaringClass() : target.getClass();
            LimitedMethod method = methods.get().find(call.getMethod(), targetClass);
            if (method == null || method.isAdmittedAtOnce()) {
                return call.proceed();
            }
            boolean later = method.mayProceedLater();
            LimitedInvocation adapted = new InvocationCall(call, later);
            return method.invoke(later ? DeferredInvocation.of(adapted) : adapted);
        }
    }

    /** @param repeatable made as often as somebody subscribes: an invocation itself proceeds only once */
    private record InvocationCall(MethodInvocation call, boolean repeatable) implements LimitedInvocation {

        @Override
        public @Nullable Object target() {
            return call.getThis();
        }

        @Override
        public @Nullable Object[] args() {
            return call.getArguments();
        }

        @Override
        public @Nullable Object proceed() throws Throwable {
            return (repeatable ? ((ProxyMethodInvocation) call).invocableClone() : call).proceed();
        }
    }
}
