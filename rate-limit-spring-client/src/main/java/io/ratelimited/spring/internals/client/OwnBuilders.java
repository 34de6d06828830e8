package io.ratelimited.spring.internals.client;

import java.util.function.Consumer;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.core.PriorityOrdered;

/**
 * Limits the builders of the application's own making, such as one for a load balancer: Spring Boot's customizers do not reach
 * them. The limits stand before the load balancer, which adds its own interceptor to the bean later: they know a service by its
 * name, whichever instance is called.
 */
public final class OwnBuilders implements BeanPostProcessor, PriorityOrdered {

    private final Consumer<Object> limit;

    /** @param limit adds the limits to a bean that is a builder and has none */
    public OwnBuilders(Consumer<Object> limit) {
        this.limit = limit;
    }

    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }

    @Override
    public Object postProcessBeforeInitialization(Object bean, String name) {
        limit.accept(bean);
        return bean;
    }

    /** For those that a {@code FactoryBean} makes. */
    @Override
    public Object postProcessAfterInitialization(Object bean, String name) {
        limit.accept(bean);
        return bean;
    }
}
