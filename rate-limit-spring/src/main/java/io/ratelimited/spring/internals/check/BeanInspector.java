package io.ratelimited.spring.internals.check;

import io.ratelimited.spring.internals.aop.BeanTypes;
import io.ratelimited.spring.internals.aop.LimitedTypes;
import io.ratelimited.spring.internals.text.LogText;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.AopProxyUtils;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.config.BeanFactoryPostProcessor;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.config.SmartInstantiationAwareBeanPostProcessor;
import org.springframework.core.Ordered;

/**
 * Looks at each bean when it is made: at the start or later, by a factory bean or without one. The object shows its class,
 * which its definition may hide from {@link BeanTypes}. Warns of beans whose limited methods no proxy limits. Looks at each
 * name once. Thread-safe.
 */
public final class BeanInspector
        implements BeanFactoryPostProcessor, SmartInstantiationAwareBeanPostProcessor, Ordered {

    private static final LogText.Lines LOG = LogText.lines(BeanInspector.class);

    /** Classes behind the proxies of the beans that were looked at, by the name of the bean. */
    private final Map<String, Class<?>> types = new ConcurrentHashMap<>();
    /** Classes with limits that objects had before any processor wrapped them, by the name of the bean. */
    private final Map<String, Class<?>> made = new ConcurrentHashMap<>();

    /** Early references, by bean name: proxies of beans that were not finished, which no processor sees later. */
    private final Map<String, Object> handedOut = new ConcurrentHashMap<>();

    private final Set<String> early = ConcurrentHashMap.newKeySet();
    private volatile @Nullable BiConsumer<Class<?>, Object> check;

    /** Adds a processor that sees each object before all others do, and the beans that are made before the proxies. */
    @Override
    public void postProcessBeanFactory(ConfigurableListableBeanFactory beans) {
        beans.addBeanPostProcessor(new BeanPostProcessor() {
            @Override
            public Object postProcessAfterInitialization(Object bean, String name) {
                if (!(bean instanceof FactoryBean) && !types.containsKey(name)) {
                    remember(name, BeanTypes.userClass(bean.getClass()));
                }
                return bean;
            }
        });
    }

    private void remember(String name, Class<?> type) {
        if (LimitedTypes.contains(type)) {
            made.put(name, type);
        }
        if (check == null) {
            early.add(name);
        }
    }

    /** Follows Spring's processors that make proxies, and precedes those without an order, which may hide these proxies. */
    @Override
    public int getOrder() {
        return LOWEST_PRECEDENCE;
    }

    @Override
    public Object getEarlyBeanReference(Object bean, String name) {
        handedOut.put(name, bean);
        return bean;
    }

    @Override
    public Object postProcessAfterInitialization(Object bean, String name) {
        Object proxy = handedOut.remove(name);
        if (!(bean instanceof FactoryBean) && !types.containsKey(name)) {
            Object called = proxy != null && AopProxyUtils.getSingletonTarget(proxy) == bean ? proxy : bean;
            if (check == null && proxy != null && proxy != called) {
                // Others hold another object: Spring makes this one again, or the check at the start sees it.
                return bean;
            }
            Class<?> type = BeanProxies.targetClass(called);
            if (LimitedTypes.contains(type) || Proxy.isProxyClass(type) || made.containsKey(name)) {
                inspect(name, type, called);
            }
        }
        return bean;
    }

    private void inspect(String name, Class<?> type, Object bean) {
        if (LimitedTypes.contains(type)) {
            ContainerCalls.require(type, bean);
        }
        BiConsumer<Class<?>, Object> started = check;
        if (started != null && LimitedTypes.contains(type)) {
            started.accept(type, bean);
        }
        types.put(name, type);
        warnIfUnlimited(name, bean);
    }

    /** Warns of a bean with limited methods that can be called without their limit. */
    void warnIfUnlimited(String name, Object bean) {
        Class<?> type = made.getOrDefault(name, BeanProxies.targetClass(bean));
        warnOf(
                name,
                BeanProxies.unlimited(bean, type),
                "It was created before Spring's proxies, or registered as an instance, or wrapped by a processor or"
                        + " by hand in a proxy that Spring does not limit, or is itself part of the aspects, or"
                        + " spring.aop.auto is false: move the methods to a bean that is created later, or weave"
                        + " (rate-limit.aspect.mode: woven).");
    }

    /** Warns of the unlimited methods of a bean of a child context; not if there are none. */
    static void warnOfChild(String name, List<Method> unlimited) {
        warnOf(
                name,
                unlimited,
                "It is a bean of a child context that creates no proxies: add @EnableAutoConfiguration to the configuration of"
                        + " that context, move the bean to its parent, or weave (rate-limit.aspect.mode: woven).");
    }

    private static void warnOf(String name, List<Method> unlimited, String why) {
        if (!unlimited.isEmpty()) {
            LOG.warn("Bean '" + name + "' is not rate limited: no proxy intercepts "
                    + unlimited.stream().map(Method::toGenericString).sorted().collect(Collectors.joining(", "))
                    + ". " + why + " [RL-202]");
        }
    }

    /**
     * Has each bean with limits checked that is made from here on.
     *
     * @param started takes the class behind its proxy, and the bean
     */
    void checkWith(BiConsumer<Class<?>, Object> started) {
        check = started;
        early.removeAll(types.keySet());
    }

    /** The classes of the beans that were looked at, by the name of the bean. */
    Map<String, Class<?>> types() {
        return types;
    }

    /** Returns whether a bean was made too early to be looked at. */
    boolean isEarly(String name) {
        return early.contains(name);
    }
}
