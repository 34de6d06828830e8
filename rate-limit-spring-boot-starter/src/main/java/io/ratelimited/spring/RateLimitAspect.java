package io.ratelimited.spring;

import org.aspectj.lang.ProceedingJoinPoint;
import org.aspectj.lang.annotation.Around;
import org.aspectj.lang.annotation.Aspect;
import org.aspectj.lang.reflect.MethodSignature;
import org.jspecify.annotations.Nullable;
import org.springframework.core.Ordered;

/**
 * The one advice: method to limits, and on to {@link LimitedMethod#invoke}. Applied by Spring's proxies, or woven into
 * classes by AspectJ. Binds nothing, which would cost more than all the rest.
 */
@Aspect
public final class RateLimitAspect implements Ordered {

    private volatile @Nullable LimitedMethods methods;
    private volatile int order = RateLimitProperties.Aspect.DEFAULT_ORDER;

    /** For AspectJ, which makes the instance itself when it weaves; limits nothing until it is configured. */
    public RateLimitAspect() {}

    RateLimitAspect(LimitedMethods methods, int order) {
        configure(methods, order);
    }

    void configure(LimitedMethods configured, int configuredOrder) {
        this.methods = configured;
        this.order = configuredOrder;
    }

    @Override
    public int getOrder() {
        return order;
    }

    /** Around every call that an annotation on the method or its class limits. */
    @Around("execution(* *(..)) && (@annotation(io.ratelimited.spring.RateLimited)"
            + " || @annotation(io.ratelimited.spring.RateLimited.List)"
            + " || @within(io.ratelimited.spring.RateLimited)"
            + " || @within(io.ratelimited.spring.RateLimited.List))")
    public @Nullable Object limit(ProceedingJoinPoint call) throws Throwable {
        LimitedMethods configured = methods;
        if (configured == null) {
            return call.proceed();
        }
        Object target = call.getTarget();
        MethodSignature signature = (MethodSignature) call.getSignature();
        LimitedMethod method = configured.find(
                signature.getMethod(), target == null ? signature.getDeclaringType() : target.getClass());
        return method == null ? call.proceed() : method.invoke(target, call.getArgs(), call::proceed);
    }
}
