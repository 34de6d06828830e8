package io.ratelimited.spring.internals.client;

import io.ratelimited.spring.internals.text.LogText;
import java.util.function.Predicate;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;

/**
 * Warns of clients that were built without limits, to which nothing can be added, and of builders that are registered as they
 * are: {@link OwnBuilders} does not see them. Nothing limits their calls.
 *
 * @param <T> the class of the client or builder
 */
public final class UnlimitedClients<T> implements SmartInitializingSingleton {

    private static final LogText.Lines LOG = LogText.lines(UnlimitedClients.class);

    private final ConfigurableListableBeanFactory beans;
    private final Class<T> type;
    private final Predicate<T> isLimited;
    private final String remedy;

    /**
     * @param isLimited whether calls of a client pass the limits
     * @param remedy what the application can do
     */
    public UnlimitedClients(
            ConfigurableListableBeanFactory beans, Class<T> type, Predicate<T> isLimited, String remedy) {
        this.beans = beans;
        this.type = type;
        this.isLimited = isLimited;
        this.remedy = remedy;
    }

    /** Looks at those that exist: none is made for it. */
    @Override
    public void afterSingletonsInstantiated() {
        for (String name : beans.getBeanNamesForType(type, false, false)) {
            if (beans.containsSingleton(name) && !isLimited.test(beans.getBean(name, type))) {
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
}
