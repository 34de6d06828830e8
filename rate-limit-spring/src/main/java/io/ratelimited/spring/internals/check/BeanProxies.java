package io.ratelimited.spring.internals.check;

import io.ratelimited.spring.internals.aop.BeanTypes;
import io.ratelimited.spring.internals.aop.LimitedTypes;
import io.ratelimited.spring.internals.aop.RateLimitAdvisor;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.TargetSource;
import org.springframework.aop.framework.Advised;
import org.springframework.aop.support.AopUtils;
import org.springframework.util.ClassUtils;

/** Reads which methods Spring's proxies of a bean limit, as {@link Advised} shows them. Changes no proxy. */
final class BeanProxies {

    private BeanProxies() {}

    /** The class behind the outermost proxy of a bean; makes no other bean to find it. */
    static Class<?> targetClass(Object bean) {
        Class<?> type = null;
        if (bean instanceof Advised proxy && proxy.getTargetSource().isStatic()) {
            type = proxy.getTargetSource().getTargetClass();
        }
        return BeanTypes.userClass(type == null ? bean.getClass() : type);
    }

    /**
     * The limited methods that a call of a bean reaches without meeting a limit.
     *
     * @param made the class that the object had before any processor wrapped it: a proxy of another library hides it
     */
    static List<Method> unlimited(Object bean, Class<?> made) {
        List<Class<?>> limited = new ArrayList<>();
        Object object = bean;
        while (object instanceof Advised proxy) {
            TargetSource targets = proxy.getTargetSource();
            if (RateLimitAdvisor.isIn(proxy) && targets.getTargetClass() != null) {
                limited.add(targets.getTargetClass());
            }
            if (!targets.isStatic()) {
                return List.of(); // a scoped proxy, for example: it leads to another bean, which is looked at itself
            }
            object = target(targets);
            if (object == null) {
                return List.of();
            }
        }
        Class<?> type = object.getClass();
        if (AopUtils.isAopProxy(object)) {
            return List.of(); // a proxy of Spring's that is configured to hide its advice
        }
        if (limited.contains(type) && !Proxy.isProxyClass(type)) {
            return List.of(); // the usual bean: its proxy limits each limited method of its class
        }
        return Stream.concat(limitedMethods(BeanTypes.userClass(type)), hiddenMethods(made, type))
                .distinct()
                .filter(method -> limited.stream().noneMatch(target -> isLimited(method, target)))
                .toList();
    }

    private static @Nullable Object target(TargetSource targets) {
        try {
            return targets.getTarget();
        } catch (Exception ex) {
            return null;
        }
    }

    private static boolean isLimited(Method method, Class<?> type) {
        Method called = ClassUtils.getMethodIfAvailable(type, method.getName(), method.getParameterTypes());
        return RateLimitAdvisor.isLimited(called == null ? method : called, type);
    }

    /** The limited methods of a wrapped object that its wrapper has too. */
    private static Stream<Method> hiddenMethods(Class<?> made, Class<?> wrapper) {
        return made.isAssignableFrom(wrapper)
                ? Stream.empty()
                : limitedMethods(made)
                        .filter(method -> ClassUtils.hasMethod(wrapper, method.getName(), method.getParameterTypes()));
    }

    /** The methods of a class that have limits. */
    static Stream<Method> limitedMethods(Class<?> type) {
        return LimitedTypes.contains(type)
                ? BeanTypes.methods(type).stream().filter(method -> RateLimitAdvisor.isLimited(method, type))
                : Stream.empty();
    }
}
