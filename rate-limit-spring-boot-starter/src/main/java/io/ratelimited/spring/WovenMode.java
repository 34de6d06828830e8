package io.ratelimited.spring;

import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.core.KotlinDetector;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * Limits woven classes by this application context as long as it lives, and refuses beans that should be woven and are
 * not: nothing would limit them.
 */
final class WovenMode implements BeanPostProcessor, DisposableBean {

    private final Supplier<LimitedMethods> methods;

    WovenMode(Supplier<LimitedMethods> methods) {
        this.methods = methods;
        RateLimitAspect.aspectOf().configure(methods);
    }

    @Override
    public void destroy() {
        RateLimitAspect.aspectOf().unconfigure(methods);
    }

    @Override
    public Object postProcessBeforeInitialization(Object bean, String beanName) {
        Class<?> type = ClassUtils.getUserClass(bean);
        ReflectionUtils.doWithMethods(
                type,
                method -> check(method, type),
                method -> method.getDeclaringClass() != Object.class && !method.isSynthetic());
        return bean;
    }

    private static void check(Method method, Class<?> type) {
        if (Modifier.isAbstract(method.getModifiers())
                || !RateLimitAdvisor.isSeenByAspect(method, type)
                || !LimitedMethods.isLimited(method, type)) {
            return;
        }
        String place = "@RateLimited on " + method.getDeclaringClass().getName() + "." + method.getName();
        if (!isWoven(method.getDeclaringClass())) {
            throw new InvalidRateLimitException(
                    method.getName(),
                    place,
                    "rate-limit.aspect.mode is woven, but "
                            + method.getDeclaringClass().getName() + " was not woven",
                    "Weave it with AspectJ (at compile time, or by -javaagent:aspectjweaver.jar and META-INF/aop.xml),"
                            + " or set rate-limit.aspect.mode: proxy.");
        }
        if (KotlinDetector.isSuspendingFunction(method)) {
            throw new InvalidRateLimitException(
                    method.getName(),
                    place,
                    "rate-limit.aspect.mode is woven, but suspend functions run through woven code at every resumption",
                    "Set rate-limit.aspect.mode: proxy.");
        }
    }

    /** AspectJ leaves a description of every join point that it has advised in a static field. */
    private static boolean isWoven(Class<?> type) {
        return Stream.of(type.getDeclaredFields())
                .anyMatch(field -> field.getName().startsWith("ajc$tjp_"));
    }
}
