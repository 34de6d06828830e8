package io.ratelimited.spring.internals.check;

import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.aop.BeanTypes;
import io.ratelimited.spring.internals.aop.KotlinNames;
import io.ratelimited.spring.internals.aop.LimitedMethod;
import io.ratelimited.spring.internals.aop.LimitedMethods;
import io.ratelimited.spring.internals.aop.LimitedTypes;
import io.ratelimited.spring.internals.call.LimitUse;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.text.LogText;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.springframework.aop.framework.autoproxy.AbstractAutoProxyCreator;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.context.ApplicationListener;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.event.ContextRefreshedEvent;

/**
 * Makes every limit while the application starts, so that an invalid limit stops the start instead of failing a call.
 * Warns of calls that no limit sees.
 */
public final class StartupCheck implements SmartInitializingSingleton, ApplicationListener<ContextRefreshedEvent> {

    private static final LogText.Lines LOG = LogText.lines(StartupCheck.class);

    private final ConfigurableListableBeanFactory beans;
    private final LimitedMethods methods;
    private final LimitRegistry registry;
    private final @Nullable BeanInspector inspector;
    private final Supplier<List<LimitUse>> ofEveryRequest;
    private final InventedKeys inventedKeys = new InventedKeys();
    /** The classes whose methods were warned of. */
    private final Set<Class<?>> warnedOf = ConcurrentHashMap.newKeySet();

    /**
     * @param inspector looks at the beans that Spring's proxies limit; null where classes are woven
     * @param ofEveryRequest the limits of routes that every request passes
     */
    public StartupCheck(
            ConfigurableListableBeanFactory beans,
            LimitedMethods methods,
            LimitRegistry registry,
            @Nullable BeanInspector inspector,
            Supplier<List<LimitUse>> ofEveryRequest) {
        this.beans = beans;
        this.methods = methods;
        this.registry = registry;
        this.inspector = inspector;
        this.ofEveryRequest = ofEveryRequest;
    }

    @Override
    public void afterSingletonsInstantiated() {
        Map<String, Class<?>> types = BeanTypes.of(beans);
        if (inspector != null) {
            inspector.checkWith(this::check);
            inspector.types().forEach((name, type) -> {
                if (LimitedTypes.contains(type)) {
                    types.put(name, type);
                }
            });
        }
        methods.declare(types.values());
        types.forEach((name, type) -> {
            Object bean = madeBean(name);
            if (inspector == null || bean == null || inspector.types().containsKey(name)) {
                check(type, bean);
            } else if (Mocks.isMock(bean)) {
                declareMocked(type);
            } else {
                check(type, bean);
                inspector.warnIfUnlimited(name, bean);
            }
        });
        registry.registerConfigured();
    }

    /** Only what fails in the thread of the start stops it. */
    @Override
    public boolean supportsAsyncExecution() {
        return false;
    }

    /** Checks the beans of a child context: one without limits of its own is looked at by nothing else. */
    @Override
    public void onApplicationEvent(ContextRefreshedEvent event) {
        if (inspector == null
                || !(event.getApplicationContext() instanceof ConfigurableApplicationContext context)
                || context.getBeanFactory() == beans) {
            return;
        }
        ConfigurableListableBeanFactory child = context.getBeanFactory();
        if (child.getBeanNamesForType(RateLimits.class, true, false).length > 0) {
            return;
        }
        boolean makesProxies = child.getBeanNamesForType(AbstractAutoProxyCreator.class, true, false).length > 0;
        BeanTypes.of(child).forEach((name, type) -> {
            Object bean = child.containsSingleton(name) ? child.getSingleton(name) : null;
            if (makesProxies) {
                check(type, bean instanceof FactoryBean ? null : bean);
            }
            if (bean == null && !makesProxies) { // which it has yet to make
                BeanInspector.warnOfChild(name, BeanProxies.limitedMethods(type).toList());
            } else if (bean != null && !(bean instanceof FactoryBean)) {
                BeanInspector.warnOfChild(name, BeanProxies.unlimited(bean, BeanProxies.targetClass(bean)));
            }
        });
    }

    /** Other beans may use the limits of a mock by their names. That no call of it is limited is what its test wants. */
    private void declareMocked(Class<?> type) {
        for (Method method : BeanTypes.methods(type)) {
            try {
                methods.find(method, type);
            } catch (InvalidRateLimitException ex) {
                // It may need beans that a test with the mock does not have.
                LOG.debug("The limits of the mocked " + nameOf(method) + " are not known", ex);
            }
        }
    }

    private static String nameOf(Method method) {
        return method.getDeclaringClass().getName() + "." + KotlinNames.of(method);
    }

    private void check(Class<?> type, @Nullable Object bean) {
        Map<Method, LimitedMethod> limited = limitedMethods(type);
        limited.values()
                .forEach(method -> inventedKeys.warnOf(nameOf(method.method()), method.limits(), ofEveryRequest.get()));
        if (inspector != null) {
            ProxyCheck calls = new ProxyCheck(type, limited);
            if (warnedOf.add(type)) {
                calls.warnOfHiddenMethods();
                calls.warnOfHiddenAnnotations();
                calls.warnOfCallbacks();
                calls.warnOfTools();
                calls.warnOfSelfCalls();
            }
            calls.check(bean);
        }
    }

    /** The bean of a name; null if it is not made yet, or if a factory bean has made it and it was looked at then. */
    private @Nullable Object madeBean(String name) {
        Object bean = beans.containsSingleton(name) ? beans.getSingleton(name) : null;
        if (!(bean instanceof FactoryBean)) {
            return bean;
        }
        return inspector != null && inspector.isEarly(name) && beans.isSingleton(name) ? beans.getBean(name) : null;
    }

    private Map<Method, LimitedMethod> limitedMethods(Class<?> type) {
        Map<Method, LimitedMethod> limited = new LinkedHashMap<>();
        List<Method> all = new ArrayList<>(BeanTypes.methods(type));
        if (inspector != null) {
            all.addAll(BeanTypes.notInherited(type));
        }
        for (Method method : all) {
            LimitedMethod found = methods.find(method, type);
            if (found != null) {
                limited.put(method, found);
            }
        }
        return limited;
    }
}
