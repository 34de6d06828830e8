package io.ratelimited.spring.internals.check;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.aop.ComposedRateLimitAspect;
import io.ratelimited.spring.internals.aop.Declarations;
import io.ratelimited.spring.internals.aop.KotlinNames;
import io.ratelimited.spring.internals.aop.LimitedMethods;
import io.ratelimited.spring.internals.aop.RateLimitAdvisor;
import io.ratelimited.spring.internals.aop.RateLimitAspect;
import java.lang.reflect.Method;
import java.util.function.Supplier;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.core.KotlinDetector;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;

/**
 * Configures the woven aspects with the limits of this application context until it closes. Refuses beans that should be
 * woven by the aspects of limits and are not, because nothing would limit them.
 */
public final class WovenCheck implements BeanPostProcessor, DisposableBean {

    private final Supplier<LimitedMethods> methods;
    private final WovenMethods woven = new WovenMethods();

    public WovenCheck(Supplier<LimitedMethods> methods) {
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

    private void check(Method called, Class<?> type) {
        Method method = Declarations.specific(called, type);
        if (!RateLimitAdvisor.isSeenByAspect(called, type) || !RateLimitAdvisor.isLimited(method, type)) {
            return;
        }
        String place = "@RateLimited on " + method.getDeclaringClass().getName() + "." + KotlinNames.of(method);
        if (!woven.contains(method)) {
            throw new InvalidRateLimitException(
                    KotlinNames.of(method),
                    place,
                    "rate-limit.aspect.mode is woven, but "
                            + method.getDeclaringClass().getName() + "." + KotlinNames.of(method) + " was not woven",
                    "Weave it with AspectJ (at compile time, or by -javaagent:aspectjweaver.jar and a META-INF/aop.xml"
                            + " with " + RateLimitAspect.class.getSimpleName() + " and "
                            + ComposedRateLimitAspect.class.getSimpleName()
                            + "), or set rate-limit.aspect.mode: proxy. [RL-114]");
        }
        if (KotlinDetector.isSuspendingFunction(method)) {
            throw new InvalidRateLimitException(
                    KotlinNames.of(method),
                    place,
                    "rate-limit.aspect.mode is woven, but suspend functions run through woven code at every resumption",
                    "Set rate-limit.aspect.mode: proxy. [RL-114]");
        }
    }
}
