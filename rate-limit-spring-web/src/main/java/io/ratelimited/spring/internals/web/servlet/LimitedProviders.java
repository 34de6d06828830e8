package io.ratelimited.spring.internals.web.servlet;

import io.ratelimited.spring.internals.aop.LimitedTypes;
import org.springframework.aop.support.AopUtils;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.security.authentication.ProviderManager;

/**
 * Finds out whether Spring Security checks credentials by a provider with limits. A provider that is a bean need not be used,
 * and filters do not show their managers; but processors of beans see each manager that is built.
 */
public final class LimitedProviders implements BeanPostProcessor {

    private volatile boolean used;

    @Override
    public Object postProcessBeforeInitialization(Object bean, String name) {
        if (bean instanceof ProviderManager manager
                && manager.getProviders().stream().map(AopUtils::getTargetClass).anyMatch(LimitedTypes::contains)) {
            used = true;
        }
        return bean;
    }

    /** Returns whether a manager has a provider with limits. */
    public boolean areUsed() {
        return used;
    }
}
