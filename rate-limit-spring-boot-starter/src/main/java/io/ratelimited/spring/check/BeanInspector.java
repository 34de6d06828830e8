package io.ratelimited.spring.check;

import io.ratelimited.spring.aop.BeanTypes;
import io.ratelimited.spring.aop.LimitedTypes;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.config.BeanFactoryPostProcessor;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;

/**
 * Looks at every bean when it is made, whenever that is and whatever makes it: at the start or later, once or each time
 * somebody asks for it, by a factory bean. The object shows what its definition hides from {@link BeanTypes}. Warns of
 * beans that nothing limits. Looks at each name once. Thread-safe.
 */
public final class BeanInspector implements BeanFactoryPostProcessor, BeanPostProcessor {

    /** Classes behind the proxies of the beans that were looked at, by the name of the bean. */
    private final Map<String, Class<?>> types = new ConcurrentHashMap<>();

    private final Set<String> early = ConcurrentHashMap.newKeySet();
    private final boolean validatesFirst;
    private volatile @Nullable Check check;

    /** @param validatesFirst whether arguments are validated before a limit is asked */
    public BeanInspector(boolean validatesFirst) {
        this.validatesFirst = validatesFirst;
    }

    /** Remembers the beans that are made before the processors that make proxies. */
    @Override
    public void postProcessBeanFactory(ConfigurableListableBeanFactory beans) {
        beans.addBeanPostProcessor(new BeanPostProcessor() {
            @Override
            public Object postProcessAfterInitialization(Object bean, String name) {
                if (check == null && !(bean instanceof FactoryBean)) {
                    early.add(name);
                }
                return bean;
            }
        });
    }

    /** Comes after the processors that make proxies, because those have an order. */
    @Override
    public Object postProcessAfterInitialization(Object bean, String name) {
        if (!(bean instanceof FactoryBean)) {
            BeanProxies.limitOnce(bean);
            if (validatesFirst) {
                BeanProxies.validateFirst(bean);
            }
            Class<?> type = BeanProxies.targetClass(bean);
            if ((LimitedTypes.contains(type) || Proxy.isProxyClass(type)) && !types.containsKey(name)) {
                look(name, type, bean);
            }
        }
        return bean;
    }

    private void look(String name, Class<?> type, Object bean) {
        Check started = check;
        if (started != null && LimitedTypes.contains(type)) {
            started.check(type, bean);
        }
        types.put(name, type);
        ProxyCheck.warnIfUnlimited(name, bean);
    }

    /** From now on each bean with limits is checked when it is made. */
    void checkWith(Check started) {
        check = started;
        early.removeAll(types.keySet());
    }

    /** The classes of the beans made so far. */
    Map<String, Class<?>> types() {
        return types;
    }

    /** Whether a bean was made too early to be looked at. */
    boolean isEarly(String name) {
        return early.contains(name);
    }

    /** Checks the limits of a bean. */
    interface Check {

        /**
         * Checks a bean.
         *
         * @param type the class behind its proxy
         */
        void check(Class<?> type, Object bean);
    }
}
