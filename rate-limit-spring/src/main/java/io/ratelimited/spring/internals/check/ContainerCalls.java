package io.ratelimited.spring.internals.check;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.internals.aop.Declarations;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.util.List;
import java.util.stream.Stream;
import org.springframework.aop.support.AopUtils;
import org.springframework.util.ClassUtils;

/**
 * Finds filters and servlets that a server cannot start behind a proxy. A proxy that extends their class has no values in
 * its fields, and a final method runs on the proxy: Spring's {@code GenericFilterBean.init} then finds no logger.
 */
final class ContainerCalls {

    private ContainerCalls() {}

    /**
     * Requires that a server can call a bean.
     *
     * @param type the class of the bean, which has limits
     * @throws InvalidRateLimitException when the server would call a final method on a proxy
     */
    static void require(Class<?> type, Object bean) {
        if (!AopUtils.isCglibProxy(bean)) {
            return;
        }
        List<Class<?>> contracts = Stream.of(ClassUtils.getAllInterfacesForClass(type))
                .filter(contract -> contract.getName().startsWith("jakarta.servlet."))
                .toList();
        if (contracts.isEmpty()) {
            return;
        }
        Stream.of(type.getMethods())
                .filter(method -> Modifier.isFinal(method.getModifiers()) && isOf(contracts, method))
                .findFirst()
                .ifPresent(method -> {
                    String places = BeanProxies.limitedMethods(type)
                            .flatMap(limited -> Declarations.of(limited, type).stream())
                            .map(declaration -> declaration.place())
                            .distinct()
                            .sorted()
                            .reduce((first, second) -> first + ", " + second)
                            .orElse(type.getName());
                    throw new InvalidRateLimitException(
                            places + ": the server calls "
                                    + method.getDeclaringClass().getSimpleName() + "." + method.getName() + " of "
                                    + type.getName() + ", which is final, so Spring's proxy cannot pass the call on",
                            "Limit these requests by rate-limit.routes, annotate a method of another bean, or annotate"
                                    + " the class with @Proxyable(ProxyType.INTERFACES). [RL-108]");
                });
    }

    private static boolean isOf(List<Class<?>> contracts, Method method) {
        return contracts.stream()
                .anyMatch(contract -> ClassUtils.hasMethod(contract, method.getName(), method.getParameterTypes()));
    }
}
