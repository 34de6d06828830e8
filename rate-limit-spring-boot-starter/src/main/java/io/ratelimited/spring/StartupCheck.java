package io.ratelimited.spring;

import java.lang.reflect.Method;
import java.util.LinkedHashMap;
import java.util.Map;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;

/**
 * Makes every limit of the application while it starts, so that what cannot be meant stops the start instead of failing
 * a call, and warns of calls that no limit will see.
 */
final class StartupCheck implements SmartInitializingSingleton {

    private final ConfigurableListableBeanFactory beans;
    private final LimitedMethods methods;
    private final RateLimits rateLimits;
    private final boolean proxied;

    /** @param proxied whether calls are limited by Spring's proxies, not by woven classes */
    StartupCheck(
            ConfigurableListableBeanFactory beans, LimitedMethods methods, RateLimits rateLimits, boolean proxied) {
        this.beans = beans;
        this.methods = methods;
        this.rateLimits = rateLimits;
        this.proxied = proxied;
    }

    @Override
    public void afterSingletonsInstantiated() {
        methods.declareAll();
        Map<Class<?>, Map<Method, LimitedMethod>> limitedByType = new LinkedHashMap<>();
        BeanTypes.of(beans).forEach((bean, type) -> {
            boolean known = limitedByType.containsKey(type);
            Map<Method, LimitedMethod> limited = limitedByType.computeIfAbsent(type, this::limitedMethods);
            if (proxied && !limited.isEmpty()) {
                ProxyGaps gaps = new ProxyGaps(type, limited);
                if (!known) {
                    gaps.warnOfHiddenMethods();
                    gaps.warnOfSelfCalls();
                }
                gaps.checkBean(bean, beans);
            }
        });
        rateLimits.registerConfigured();
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
