package io.ratelimited.spring.autoconfigure;

import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.threads.CallbackThreads;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.aop.LimitedMethods;
import io.ratelimited.spring.aop.OutermostValidation;
import io.ratelimited.spring.aop.RateLimitAdvisor;
import io.ratelimited.spring.aop.RateLimitAspect;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.block.BlockReports;
import io.ratelimited.spring.call.Continuations;
import io.ratelimited.spring.call.LimitEnforcer;
import io.ratelimited.spring.call.NamedLimits;
import io.ratelimited.spring.check.BeanInspector;
import io.ratelimited.spring.check.LimitLog;
import io.ratelimited.spring.check.StartupCheck;
import io.ratelimited.spring.check.WovenCheck;
import io.ratelimited.spring.limit.ChangeReports;
import io.ratelimited.spring.limit.KeyMemory;
import io.ratelimited.spring.limit.LimitOperations;
import io.ratelimited.spring.limit.LimitRegistry;
import io.ratelimited.spring.limit.RequestThreads;
import io.ratelimited.spring.web.RouteLimits;
import io.ratelimited.spring.web.UncountedRoutes;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.Executor;
import java.util.function.ToLongFunction;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.boot.autoconfigure.AutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnMissingBean;
import org.springframework.boot.autoconfigure.condition.ConditionalOnProperty;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.autoconfigure.condition.SearchStrategy;
import org.springframework.boot.context.properties.EnableConfigurationProperties;
import org.springframework.boot.context.properties.bind.Binder;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Primary;
import org.springframework.context.annotation.Role;
import org.springframework.core.env.Environment;
import org.springframework.core.task.TaskDecorator;
import org.springframework.util.function.SingletonSupplier;

/** Wires limits, their aspect, and limits in memory. */
@AutoConfiguration(
        beforeName = "io.github.resilience4j.springboot.circuitbreaker.autoconfigure.CircuitBreakerAutoConfiguration")
@Role(BeanDefinition.ROLE_INFRASTRUCTURE)
@Conditional(OnEnabledCondition.class)
@EnableConfigurationProperties(RateLimitProperties.class)
@Import(PropertyNames.class)
public final class RateLimitAutoConfiguration {

    /** Beans that the contexts of a hierarchy share: the first context that starts makes them. */
    @Configuration(proxyBeanMethods = false)
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    @ConditionalOnMissingBean(LimitRegistry.class)
    static class Shared {

        @Bean("io.ratelimited.rateLimitTicker")
        @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
        @ConditionalOnMissingBean
        Ticker rateLimitTicker() {
            return Ticker.system();
        }

        @Bean("io.ratelimited.inMemoryLimiterFactory")
        @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
        LimiterFactory inMemoryLimiterFactory(
                RateLimitProperties properties, Ticker ticker, ObjectProvider<LimitRegistry> registry) {
            KeyMemory memory = properties.memory().keys();
            return new InMemoryLimiterFactory(
                    "memory",
                    Set.of(),
                    ticker,
                    limit -> memory.maximumKeys(
                            limit, registry.getObject().rememberingKeys().size()));
        }

        @Bean("io.ratelimited.limitRegistry")
        @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
        LimitRegistry limitRegistry(
                RateLimitProperties properties,
                ObjectProvider<LimiterFactory> backends,
                ContextRequests requests,
                ObjectProvider<RequestThreads> threads,
                ChangeReports reports,
                ApplicationEventPublisher events,
                Ticker ticker) {
            PropertyRanges.check(properties);
            return new LimitRegistry(
                    properties.limitSettings(),
                    backends.orderedStream().toList(),
                    requests,
                    threads.getIfAvailable(() -> RequestThreads.UNBOUNDED),
                    reports,
                    new BlockReports(events),
                    ticker);
        }

        @Bean("io.ratelimited.rateLimitChangeReports")
        @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
        ChangeReports rateLimitChangeReports(ApplicationEventPublisher events) {
            return new ChangeReports(events);
        }

        /** Found before the requests of a single context. */
        @Bean("io.ratelimited.contextRequests")
        @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
        @Primary
        ContextRequests contextRequests() {
            return new ContextRequests();
        }

        @Bean("io.ratelimited.endOfWaits")
        @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
        EndOfWaits endOfWaits(ApplicationContext context, LimitRegistry registry) {
            return new EndOfWaits(context, registry);
        }

        @Bean("io.ratelimited.limitLog")
        @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
        LimitLog limitLog(LimitRegistry registry, RateLimitProperties properties) {
            return new LimitLog(registry, properties.memory().keys());
        }

        @Bean("io.ratelimited.rateLimitConfigurationRefresh")
        @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
        ConfigurationRefresh rateLimitConfigurationRefresh(LimitRegistry registry, Environment environment) {
            return new ConfigurationRefresh(registry, environment);
        }
    }

    @Bean("io.ratelimited.hierarchyMember")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    @Lazy(false)
    HierarchyMember hierarchyMember(ApplicationContext context, LimitRegistry registry, ContextRequests requests) {
        return new HierarchyMember(context, registry, requests);
    }

    @Bean("io.ratelimited.limitEnforcer")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    LimitEnforcer limitEnforcer(
            ObjectProvider<DecisionObserver> observers,
            Ticker ticker,
            LimitRegistry registry,
            ContextRequests requests,
            @Qualifier("applicationTaskExecutor") ObjectProvider<Executor> taskExecutor,
            ObjectProvider<TaskDecorator> taskDecorators) {
        return new LimitEnforcer(
                observers.orderedStream().toList(),
                ticker,
                new Continuations(
                        SingletonSupplier.of(() -> taskExecutor.getIfAvailable(() -> CallbackThreads.SHARED)),
                        SingletonSupplier.of(
                                () -> taskDecorators.orderedStream().toList()),
                        requests),
                () -> requests.isServing() ? registry.threads() : RequestThreads.UNBOUNDED);
    }

    @Bean("io.ratelimited.rateLimits")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    @ConditionalOnMissingBean(search = SearchStrategy.CURRENT)
    RateLimits rateLimits(LimitRegistry registry, LimitEnforcer enforcer, ContextRequests requests) {
        return new NamedLimits(registry, enforcer, requests);
    }

    @Bean("io.ratelimited.rateLimitOperations")
    @ConditionalOnMissingBean(search = SearchStrategy.CURRENT)
    RateLimitOperations rateLimitOperations(LimitRegistry registry, ContextRequests requests) {
        return new LimitOperations(true, registry, requests);
    }

    @Bean("io.ratelimited.limitedMethods")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    LimitedMethods limitedMethods(
            LimitRegistry registry,
            LimitEnforcer enforcer,
            ConfigurableListableBeanFactory beanFactory,
            ContextRequests requests) {
        return new LimitedMethods(registry, enforcer, beanFactory, requests);
    }

    @Bean("io.ratelimited.rateLimitStartupCheck")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    @Lazy(false)
    StartupCheck rateLimitStartupCheck(
            ConfigurableListableBeanFactory beanFactory,
            LimitedMethods methods,
            LimitRegistry registry,
            ObjectProvider<BeanInspector> inspector,
            ObjectProvider<RouteLimits> routes) {
        return new StartupCheck(
                beanFactory,
                methods,
                registry,
                inspector.getIfAvailable(),
                () -> routes.getObject().ofEveryRequest());
    }

    @Bean("io.ratelimited.routeLimits")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    RouteLimits routeLimits(
            LimitRegistry registry,
            LimitEnforcer enforcer,
            RateLimitProperties properties,
            ConfigurableListableBeanFactory beanFactory) {
        return RouteLimits.of(properties.routes(), registry, enforcer, beanFactory);
    }

    @Bean("io.ratelimited.rateLimitUncountedRoutes")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    @Lazy(false)
    @ConditionalOnWebApplication
    UncountedRoutes rateLimitUncountedRoutes(RateLimitProperties properties, ContextRequests requests) {
        return new UncountedRoutes(properties.routes(), requests::isEmpty);
    }

    // The parts of proxies depend on no other bean, so that none is made before its time.

    @Bean("io.ratelimited.rateLimitMadeBeans")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    @ConditionalOnProperty(name = "rate-limit.aspect.mode", havingValue = "proxy", matchIfMissing = true)
    static BeanInspector rateLimitMadeBeans() {
        return new BeanInspector();
    }

    @Bean("io.ratelimited.rateLimitOutermostValidation")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static OutermostValidation rateLimitOutermostValidation(Environment environment) {
        return new OutermostValidation(aspectOrder(environment) == RateLimitProperties.Aspect.DEFAULT_ORDER);
    }

    @Bean("io.ratelimited.rateLimitAdvisor")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    static RateLimitAdvisor rateLimitAdvisor(ObjectProvider<LimitedMethods> methods, Environment environment) {
        boolean woven =
                environment.getProperty("rate-limit.aspect.mode", "proxy").equalsIgnoreCase("woven");
        RateLimitAspect aspect = new RateLimitAspect(SingletonSupplier.of(methods::getObject));
        return new RateLimitAdvisor(aspect, aspectOrder(environment), woven);
    }

    @Bean("io.ratelimited.rateLimitWovenMode")
    @Role(BeanDefinition.ROLE_INFRASTRUCTURE)
    @ConditionalOnProperty(name = "rate-limit.aspect.mode", havingValue = "woven")
    static WovenCheck rateLimitWovenMode(ObjectProvider<LimitedMethods> methods) {
        return new WovenCheck(SingletonSupplier.of(methods::getObject));
    }

    private static int aspectOrder(Environment environment) {
        return Binder.get(environment)
                .bind("rate-limit.aspect.order", Integer.class)
                .orElse(RateLimitProperties.Aspect.DEFAULT_ORDER);
    }

    /**
     * Limits in memory, under the name of a backend.
     *
     * @param maximumKeys asked when the first key of a limit comes
     */
    record InMemoryLimiterFactory(
            String backend, Set<String> properties, Ticker ticker, ToLongFunction<Limit> maximumKeys)
            implements LimiterFactory {

        @Override
        public boolean blocks() {
            return true;
        }

        @Override
        public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
            return new InMemoryRateLimiter(limit, ticker, () -> maximumKeys.applyAsLong(limit));
        }
    }
}
