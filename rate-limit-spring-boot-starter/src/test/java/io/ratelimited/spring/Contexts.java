package io.ratelimited.spring;

import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.RateLimitProperties;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.support.DefaultListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.boot.context.properties.source.MapConfigurationPropertySource;
import org.springframework.boot.diagnostics.FailureAnalysis;
import org.springframework.boot.diagnostics.FailureAnalyzer;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.util.TestPropertyValues;
import org.springframework.core.annotation.AnnotationAwareOrderComparator;
import org.springframework.core.env.Environment;
import org.springframework.core.env.StandardEnvironment;
import org.springframework.core.io.support.SpringFactoriesLoader;
import org.springframework.core.io.support.SpringFactoriesLoader.ArgumentResolver;
import org.springframework.http.client.ReactorResourceFactory;
import reactor.netty.resources.ConnectionProvider;
import reactor.netty.resources.LoopResources;

/** Application contexts with the starter, and what a user reads when one does not start. */
public final class Contexts {

    /** Of tests that need it alone. */
    private static final class Reactor {

        static final LoopResources LOOPS = LoopResources.create("shared", 1, true);
    }

    private Contexts() {}

    public static ApplicationContextRunner runner() {
        return new ApplicationContextRunner()
                .withConfiguration(AutoConfigurations.of(RateLimitAutoConfiguration.class, AopAutoConfiguration.class));
    }

    public static ApplicationContextRunner runner(ManualTicker ticker) {
        return runner().withBean(Ticker.class, () -> ticker);
    }

    /**
     * Threads of Reactor Netty that contexts share, so that the end of a context does not wait for theirs: by default it does for
     * two seconds. Without that quiet period of theirs, the end can wait for ever.
     */
    public static ReactorResourceFactory reactorResources() {
        ReactorResourceFactory resources = new ReactorResourceFactory();
        resources.setUseGlobalResources(false);
        resources.setLoopResources(Reactor.LOOPS);
        resources.setConnectionProvider(ConnectionProvider.newConnection());
        return resources;
    }

    /** Runs with beans of the classes, each named by its class. */
    public static ApplicationContextRunner with(ApplicationContextRunner runner, Class<?>... beans) {
        ApplicationContextRunner with = runner;
        for (Class<?> bean : beans) {
            with = with.withBean(bean);
        }
        return with;
    }

    /** The properties of an application that sets none. */
    public static RateLimitProperties properties() {
        return new Binder(new MapConfigurationPropertySource(Map.of()))
                .bindOrCreate("rate-limit", RateLimitProperties.class);
    }

    /**
     * What all registered failure analysers make of a failure, in an application with properties. Those of one order are asked in
     * the order of the class path, so here ours come last.
     */
    public static FailureAnalysis analyse(Throwable failure, String... properties) {
        StandardEnvironment environment = new StandardEnvironment();
        TestPropertyValues.of(properties).applyTo(environment);
        ArgumentResolver arguments = ArgumentResolver.of(Environment.class, environment)
                .and(BeanFactory.class, new DefaultListableBeanFactory());
        List<FailureAnalyzer> analysers = new ArrayList<>(SpringFactoriesLoader.forDefaultResourceLocation()
                .load(FailureAnalyzer.class, arguments, (type, name, ex) -> {}));
        analysers.sort(AnnotationAwareOrderComparator.INSTANCE.thenComparing(
                analyser -> analyser.getClass().getName().startsWith("io.ratelimited")));
        return analysers.stream()
                .map(analyser -> analyser.analyze(failure))
                .filter(Objects::nonNull)
                .findFirst()
                .orElseThrow(() -> new AssertionError("not analysed", failure));
    }
}
