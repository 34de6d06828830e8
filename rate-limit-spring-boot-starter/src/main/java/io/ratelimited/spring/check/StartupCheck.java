package io.ratelimited.spring.check;

import io.ratelimited.spring.aop.BeanTypes;
import io.ratelimited.spring.aop.LimitedMethod;
import io.ratelimited.spring.aop.LimitedMethods;
import io.ratelimited.spring.aop.LimitedTypes;
import io.ratelimited.spring.call.LimitUse;
import io.ratelimited.spring.limit.LimitRegistry;
import java.lang.reflect.Method;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;

/**
 * Makes every limit of the application while it starts, so that an invalid limit stops the start instead of failing
 * a call, and warns of calls that no limit will see.
 */
public final class StartupCheck implements SmartInitializingSingleton {

    private final ConfigurableListableBeanFactory beans;
    private final LimitedMethods methods;
    private final LimitRegistry registry;
    private final @Nullable BeanInspector made;
    private final Supplier<List<LimitUse>> ofEveryRequest;
    private final InventedKeys inventedKeys = new InventedKeys();
    /** The classes that were looked at. What they limit is not kept, since {@link LimitedMethods} knows it. */
    private final Set<Class<?>> known = ConcurrentHashMap.newKeySet();

    /**
     * @param made the beans that Spring's proxies limit; null where classes are woven
     * @param ofEveryRequest the limits of routes that every request passes
     */
    public StartupCheck(
            ConfigurableListableBeanFactory beans,
            LimitedMethods methods,
            LimitRegistry registry,
            @Nullable BeanInspector made,
            Supplier<List<LimitUse>> ofEveryRequest) {
        this.beans = beans;
        this.methods = methods;
        this.registry = registry;
        this.made = made;
        this.ofEveryRequest = ofEveryRequest;
    }

    @Override
    public void afterSingletonsInstantiated() {
        methods.declareAll();
        Map<String, Class<?>> types = BeanTypes.of(beans);
        if (made != null) {
            made.checkWith(this::check);
            made.types().forEach((name, type) -> {
                if (LimitedTypes.contains(type)) {
                    types.put(name, type);
                }
            });
        }
        types.forEach((name, type) -> {
            Object bean = object(name);
            check(type, bean);
            if (made != null && bean != null && !made.types().containsKey(name)) {
                ProxyCheck.warnIfUnlimited(name, bean);
            }
        });
        registry.registerConfigured();
    }

    private void check(Class<?> type, @Nullable Object bean) {
        Map<Method, LimitedMethod> limited = limitedMethods(type);
        limited.values()
                .forEach(method ->
                        inventedKeys.warnOf(method.method().toString(), method.limits(), ofEveryRequest.get()));
        if (made != null && !limited.isEmpty()) {
            ProxyCheck gaps = new ProxyCheck(type, limited);
            if (known.add(type)) {
                gaps.warnOfHiddenMethods();
                gaps.warnOfSelfCalls();
            }
            gaps.check(bean);
        }
    }

    /** The bean of a name; null if it is not made yet, or if a factory bean makes it and it was looked at then. */
    private @Nullable Object object(String name) {
        Object bean = beans.containsSingleton(name) ? beans.getSingleton(name) : null;
        if (!(bean instanceof FactoryBean)) {
            return bean;
        }
        return made != null && made.isEarly(name) && beans.isSingleton(name) ? beans.getBean(name) : null;
    }

    private Map<Method, LimitedMethod> limitedMethods(Class<?> type) {
        Map<Method, LimitedMethod> limited = new LinkedHashMap<>();
        for (Method method : BeanTypes.methods(type)) {
            LimitedMethod found = methods.find(method, type);
            if (found != null) {
                limited.put(method, found);
            }
        }
        return limited;
    }
}
