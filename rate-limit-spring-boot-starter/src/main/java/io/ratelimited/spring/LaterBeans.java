package io.ratelimited.spring;

import java.lang.reflect.Method;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.util.ClassUtils;

/**
 * Warns of beans that nothing limits and that {@link StartupCheck} cannot look at, since each is made when it is asked
 * for: prototypes, beans of other scopes, products of factories. Each bean is looked at once. Thread-safe.
 */
final class LaterBeans implements BeanPostProcessor {

    private final ConfigurableListableBeanFactory beans;
    private final Set<String> seen = ConcurrentHashMap.newKeySet();

    LaterBeans(ConfigurableListableBeanFactory beans) {
        this.beans = beans;
    }

    /** Behind the processors that make proxies: those have an order. */
    @Override
    public Object postProcessAfterInitialization(Object bean, String name) {
        if (!(bean instanceof FactoryBean) && isMadeLater(name) && seen.add(name) && !ProxyGaps.isLimited(bean)) {
            Class<?> type = ClassUtils.getUserClass(bean);
            List<Method> methods = BeanTypes.methods(type).stream()
                    .filter(method -> LimitedMethods.isLimited(method, type))
                    .toList();
            if (!methods.isEmpty()) {
                ProxyGaps.warnOfUnlimited(name, methods);
            }
        }
        return bean;
    }

    private boolean isMadeLater(String name) {
        return beans.containsBeanDefinition(name) && (!beans.isSingleton(name) || beans.isFactoryBean(name));
    }
}
