package io.ratelimited.spring.internals.client;

import io.ratelimited.spring.internals.check.Mocks;
import io.ratelimited.spring.internals.text.LogText;
import java.util.function.Predicate;
import java.util.function.UnaryOperator;
import org.springframework.aop.scope.ScopedObject;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.core.PriorityOrdered;

/**
 * The beans of one kind by which an application calls others: builders, templates, or clients. Limits those that the application
 * has made itself, such as one for a load balancer, because Spring Boot's customizers do not reach them. The limits stand before
 * the load balancer, which adds its own interceptor to the bean later: they know a service by its name, whichever instance is
 * called.
 *
 * <p>When the application has started, warns of those whose calls nothing limits: clients, to which nothing can be added, and
 * builders that are registered as they are, which no post-processor sees.
 *
 * @param <T> the class of the builder, template or client
 */
public final class ClientBeans<T> implements BeanPostProcessor, PriorityOrdered, SmartInitializingSingleton {

    private static final LogText.Lines LOG = LogText.lines(ClientBeans.class);

    private final ConfigurableListableBeanFactory beans;
    private final Class<T> type;
    private final UnaryOperator<T> limited;
    private final Predicate<T> isLimited;
    private final String remedy;

    /**
     * @param limited adds the limits to a bean that has none, and returns it or what takes its place; called twice for a bean
     * @param isLimited whether calls pass the limits
     * @param remedy what the application can do if they do not
     */
    public ClientBeans(
            ConfigurableListableBeanFactory beans,
            Class<T> type,
            UnaryOperator<T> limited,
            Predicate<T> isLimited,
            String remedy) {
        this.beans = beans;
        this.type = type;
        this.limited = limited;
        this.isLimited = isLimited;
        this.remedy = remedy;
    }

    /** Returns whether the application has such beans, without making one. */
    public boolean exist() {
        return beans.getBeanNamesForType(type, true, false).length > 0;
    }

    @Override
    public int getOrder() {
        return HIGHEST_PRECEDENCE;
    }

    @Override
    public Object postProcessBeforeInitialization(Object bean, String name) {
        return limited(bean);
    }

    /** For those that a {@code FactoryBean} makes. */
    @Override
    public Object postProcessAfterInitialization(Object bean, String name) {
        return limited(bean);
    }

    private Object limited(Object bean) {
        return calls(bean) ? limited.apply(type.cast(bean)) : bean;
    }

    /** Returns whether a bean calls others itself: not a mock, nor the proxy of a scope, which the target of a call may lack. */
    private boolean calls(Object bean) {
        return type.isInstance(bean) && !(bean instanceof ScopedObject) && !Mocks.isMock(bean);
    }

    /** Looks at those that exist: none is made for it. */
    @Override
    public void afterSingletonsInstantiated() {
        for (String name : beans.getBeanNamesForType(type, false, false)) {
            if (beans.containsSingleton(name) && isUnlimited(name)) {
                LOG.warn("Calls of bean '" + LogText.escaped(name)
                        + "' are not limited by rate-limit.clients: the application"
                        + " has built this "
                        + type.getName()
                                .substring(type.getPackageName().length() + 1)
                                .replace('$', '.')
                        + " itself. " + remedy + " [RL-230]");
            }
        }
    }

    private boolean isUnlimited(String name) {
        try {
            Object bean = beans.getBean(name);
            return calls(bean) && !isLimited.test(type.cast(bean));
        } catch (RuntimeException ex) {
            // A warning is no reason to fail startup.
            LOG.debug("Whether bean '" + LogText.escaped(name) + "' is limited is not known", ex);
            return false;
        }
    }
}
