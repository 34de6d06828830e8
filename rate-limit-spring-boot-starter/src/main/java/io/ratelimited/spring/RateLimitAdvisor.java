package io.ratelimited.spring;

import java.lang.reflect.Method;
import java.util.function.Supplier;
import org.aopalliance.intercept.MethodInterceptor;
import org.aopalliance.intercept.MethodInvocation;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.support.StaticMethodMatcherPointcutAdvisor;
import org.springframework.core.annotation.MergedAnnotations;
import org.springframework.util.ClassUtils;

/**
 * The advice of {@link RateLimitAspect} for methods that its pointcut cannot see: annotations on interfaces, on what is
 * overridden, and inside other annotations. Matches exactly what the aspect does not, so that no call counts twice.
 */
final class RateLimitAdvisor extends StaticMethodMatcherPointcutAdvisor {

    private static final long serialVersionUID = 1L;

    RateLimitAdvisor(Supplier<LimitedMethods> methods, int order) {
        setAdvice(new Advice(methods));
        setOrder(order);
    }

    @Override
    public boolean matches(Method method, Class<?> targetClass) {
        return LimitedMethods.isLimited(method, targetClass) && !isSeenByAspect(method, targetClass);
    }

    private static boolean isSeenByAspect(Method method, Class<?> targetClass) {
        Method specific = ClassUtils.getMostSpecificMethod(method, ClassUtils.getUserClass(targetClass));
        return isDirect(MergedAnnotations.from(specific))
                || isDirect(MergedAnnotations.from(specific.getDeclaringClass()));
    }

    private static boolean isDirect(MergedAnnotations annotations) {
        return annotations.isDirectlyPresent(RateLimited.class)
                || annotations.isDirectlyPresent(RateLimited.List.class);
    }

    private record Advice(Supplier<LimitedMethods> methods) implements MethodInterceptor {

        @Override
        public @Nullable Object invoke(MethodInvocation call) throws Throwable {
            Object target = call.getThis();
            Class<?> targetClass = target == null ? call.getMethod().getDeclaringClass() : target.getClass();
            LimitedMethod method = methods.get().find(call.getMethod(), targetClass);
            return method == null ? call.proceed() : method.invoke(target, call.getArguments(), call::proceed);
        }
    }
}
