package io.ratelimited.spring;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.Logger;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.config.RateLimitConfiguration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.slf4j.LoggerFactory;
import org.springframework.aop.config.AopConfigUtils;
import org.springframework.beans.factory.config.BeanDefinitionCustomizer;
import org.springframework.beans.factory.support.BeanDefinitionRegistry;
import org.springframework.context.ApplicationContextInitializer;
import org.springframework.context.ConfigurableApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.EnableAspectJAutoProxy;
import org.springframework.core.env.MapPropertySource;

/**
 * Applications of the Spring Framework with limits: each run starts one and closes it. Immutable: what is added is in the
 * runner that is returned.
 */
public final class ContextRunner {

    static {
        // A file for Logback would also be that of the modules that use these classes.
        ((Logger) LoggerFactory.getLogger(Logger.ROOT_LOGGER_NAME)).setLevel(Level.INFO);
    }

    private final List<Consumer<RunContext>> preparations;

    private ContextRunner(List<Consumer<RunContext>> preparations) {
        this.preparations = preparations;
    }

    /** With limits, and with proxies of classes, as an application of Spring Boot has them. */
    public static ContextRunner limited() {
        return new ContextRunner(List.of()).withUserConfiguration(RateLimitConfiguration.class, ClassProxies.class);
    }

    /** Under a time that tests move. */
    public static ContextRunner limited(ManualTicker ticker) {
        return limited().withBean(Ticker.class, () -> ticker);
    }

    /** With limits, and what an application of the Spring Framework has by itself. */
    public static ContextRunner plain() {
        return new ContextRunner(List.of()).withUserConfiguration(RateLimitConfiguration.class);
    }

    private ContextRunner with(Consumer<RunContext> preparation) {
        List<Consumer<RunContext>> all = new ArrayList<>(preparations);
        all.add(preparation);
        return new ContextRunner(List.copyOf(all));
    }

    /** Adds beans of the classes, each named by its class. */
    public ContextRunner with(Class<?>... beans) {
        ContextRunner with = this;
        for (Class<?> bean : beans) {
            with = with.withBean(bean);
        }
        return with;
    }

    /** A runner with beans of the classes, each named by its class. */
    public static ContextRunner with(ContextRunner runner, Class<?>... beans) {
        return runner.with(beans);
    }

    /** Adds properties, as in {@code name=value} or {@code name: value}. */
    public ContextRunner withPropertyValues(String... properties) {
        return with(context -> properties(context, properties));
    }

    private static void properties(ConfigurableApplicationContext context, String... properties) {
        Map<String, Object> values = new LinkedHashMap<>();
        if (context.getEnvironment().getPropertySources().get("test") instanceof MapPropertySource before) {
            values.putAll(before.getSource());
        }
        for (String property : properties) {
            String[] parts = property.split("[=:]", 2);
            values.put(parts[0].strip(), parts.length == 1 ? "" : parts[1].strip());
        }
        context.getEnvironment().getPropertySources().remove("test");
        context.getEnvironment().getPropertySources().addFirst(new MapPropertySource("test", values));
    }

    public ContextRunner withUserConfiguration(Class<?>... configurations) {
        return with(context -> context.register(configurations));
    }

    public ContextRunner withInitializer(
            ApplicationContextInitializer<? super ConfigurableApplicationContext> initializer) {
        return with(initializer::initialize);
    }

    /** With a configuration that makes no proxies, as nobody would want it. */
    public ContextRunner withoutProxies() {
        return with(context -> context.addBeanFactoryPostProcessor(beans ->
                ((BeanDefinitionRegistry) beans).removeBeanDefinition(AopConfigUtils.AUTO_PROXY_CREATOR_BEAN_NAME)));
    }

    public ContextRunner withParent(ConfigurableApplicationContext parent) {
        return with(context -> context.setParent(parent));
    }

    public ContextRunner withAllowCircularReferences(boolean allowed) {
        return with(context -> context.setAllowCircularReferences(allowed));
    }

    public <T> ContextRunner withBean(Class<T> type, Object... arguments) {
        return with(context -> context.registerBean(type, arguments));
    }

    public <T> ContextRunner withBean(String name, Class<T> type, Object... arguments) {
        return with(context -> context.registerBean(name, type, arguments));
    }

    public <T> ContextRunner withBean(Class<T> type, Supplier<T> bean, BeanDefinitionCustomizer... customizers) {
        return with(context -> context.registerBean(type, bean, customizers));
    }

    public <T> ContextRunner withBean(
            String name, Class<T> type, Supplier<T> bean, BeanDefinitionCustomizer... customizers) {
        return with(context -> context.registerBean(name, type, bean, customizers));
    }

    /** Starts an application, whose start may fail, looks at it, and closes it. */
    public ContextRunner run(Run look) {
        try (RunContext context = start()) {
            look.at(context);
        } catch (Exception ex) {
            throw ex instanceof RuntimeException unchecked ? unchecked : new IllegalStateException(ex);
        }
        return this;
    }

    private RunContext start() {
        RunContext context = new RunContext();
        context.setAllowCircularReferences(false);
        preparations.forEach(preparation -> preparation.accept(context));
        context.tryToRefresh();
        return context;
    }

    /** An application of beans that is under a ticker, with properties as in {@code name=value}; its start must not fail. */
    public static RunContext start(Ticker ticker, Class<?>[] beans, String... properties) {
        RunContext context = new RunContext();
        properties(context, properties);
        context.registerBean(Ticker.class, () -> ticker);
        context.register(RateLimitConfiguration.class, ClassProxies.class);
        return start(context, beans);
    }

    /** An application whose beans are called by their interfaces. */
    public static RunContext startWithInterfaces(Ticker ticker, Class<?>... beans) {
        RunContext context = new RunContext();
        context.registerBean(Ticker.class, () -> ticker);
        context.register(RateLimitConfiguration.class);
        return start(context, beans);
    }

    private static RunContext start(RunContext context, Class<?>... beans) {
        if (beans.length > 0) {
            context.register(beans);
        }
        context.refresh();
        return context;
    }

    /** What a test does with an application. */
    public interface Run {

        void at(RunContext context) throws Exception;
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAspectJAutoProxy(proxyTargetClass = true)
    public static class ClassProxies {}
}
