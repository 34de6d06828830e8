package io.ratelimited.spring.check;

import io.ratelimited.spring.aop.BeanTypes;
import io.ratelimited.spring.aop.LimitedMethods;
import io.ratelimited.spring.aop.LimitedTypes;
import io.ratelimited.spring.aop.RateLimitAdvisor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.Advisor;
import org.springframework.aop.TargetSource;
import org.springframework.aop.framework.Advised;
import org.springframework.aop.support.AopUtils;
import org.springframework.util.ClassUtils;
import org.springframework.util.ReflectionUtils;
import org.springframework.validation.beanvalidation.MethodValidationInterceptor;

/** The proxies between the callers of a bean and the object that has the methods. */
final class BeanProxies {

    private BeanProxies() {}

    /** The class that calls of a bean find behind its outermost proxy; it makes no bean to know it. */
    static Class<?> targetClass(Object bean) {
        Class<?> type = null;
        if (bean instanceof Advised proxy && proxy.getTargetSource().isStatic()) {
            type = proxy.getTargetSource().getTargetClass();
        }
        return BeanTypes.userClass(type == null ? bean.getClass() : type);
    }

    /** The limited methods that can be called by way of a bean without meeting a limit. */
    static List<Method> unlimited(Object bean) {
        List<Class<?>> limited = new ArrayList<>();
        Object object = bean;
        while (object instanceof Advised proxy) {
            TargetSource targets = proxy.getTargetSource();
            if (limits(proxy) && targets.getTargetClass() != null) {
                limited.add(targets.getTargetClass());
            }
            if (!targets.isStatic()) {
                return List.of(); // as of a scoped proxy: it leads to another bean, perhaps one not to be made yet
            }
            object = target(targets);
            if (object == null) {
                return List.of();
            }
        }
        if (AopUtils.isAopProxy(object)) {
            return List.of(); // an opaque proxy, whose advice is not to be seen
        }
        if (limited.contains(object.getClass()) && !Proxy.isProxyClass(object.getClass())) {
            return List.of(); // the usual bean: its proxy knows the limits of all its methods
        }
        return methods(object).stream()
                .filter(method -> limited.stream().noneMatch(type -> isLimited(method, type)))
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
        return LimitedMethods.isLimited(called == null ? method : called, type);
    }

    /** The limited methods of an object, and those of objects that it stands for without advice of Spring's. */
    private static List<Method> methods(Object object) {
        List<Method> methods = new ArrayList<>(limitedMethods(BeanTypes.userClass(object.getClass())));
        if (Proxy.isProxyClass(object.getClass())) {
            InvocationHandler handler = Proxy.getInvocationHandler(object);
            for (Object hidden : fieldsOf(handler)) {
                if (hidden != object && !AopUtils.isAopProxy(hidden) && !Proxy.isProxyClass(hidden.getClass())) {
                    limitedMethods(BeanTypes.userClass(hidden.getClass())).stream()
                            .filter(method -> ClassUtils.hasMethod(
                                    object.getClass(), method.getName(), method.getParameterTypes()))
                            .forEach(methods::add);
                }
            }
        }
        return methods;
    }

    private static List<Method> limitedMethods(Class<?> type) {
        return LimitedTypes.contains(type)
                ? BeanTypes.methods(type).stream()
                        .filter(method -> LimitedMethods.isLimited(method, type))
                        .toList()
                : List.of();
    }

    private static List<Object> fieldsOf(Object handler) {
        List<Object> values = new ArrayList<>();
        ReflectionUtils.doWithFields(
                handler.getClass(),
                field -> {
                    Object value = value(field, handler);
                    if (value != null) {
                        values.add(value);
                    }
                },
                field -> !Modifier.isStatic(field.getModifiers())
                        && !field.getType().isPrimitive());
        return values;
    }

    private static @Nullable Object value(Field field, Object owner) throws IllegalAccessException {
        return field.trySetAccessible() ? field.get(owner) : null;
    }

    /** Whether a limit stands in a proxy itself. */
    private static boolean limits(Advised proxy) {
        return ours(proxy).findAny().isPresent();
    }

    private static Stream<Advisor> ours(Advised proxy) {
        return Stream.of(proxy.getAdvisors()).filter(RateLimitAdvisor.class::isInstance);
    }

    /**
     * Leaves the limit to the inner proxy, where a bean is another limited bean once more: a method that makes a bean may
     * return one that it was given.
     */
    static void limitOnce(Object bean) {
        if (bean instanceof Advised proxy
                && !proxy.isFrozen()
                && proxy.getTargetSource().isStatic()
                && target(proxy.getTargetSource()) instanceof Advised inner
                && limits(inner)) {
            ours(proxy).forEach(proxy::removeAdvisor);
        }
    }

    /** Lets arguments be validated before the limit is asked, so that an invalid call costs no permit. */
    static void validateFirst(Object bean) {
        if (!(bean instanceof Advised proxy) || proxy.isFrozen()) {
            return;
        }
        int limit = ours(proxy).mapToInt(proxy::indexOf).min().orElse(Integer.MAX_VALUE);
        for (Advisor advisor : proxy.getAdvisors()) {
            if (advisor.getAdvice() instanceof MethodValidationInterceptor && proxy.indexOf(advisor) > limit) {
                proxy.removeAdvisor(advisor);
                proxy.addAdvisor(limit, advisor);
            }
        }
    }
}
