package io.ratelimited.spring.config;

import io.ratelimited.core.Ticker;
import io.ratelimited.core.internals.threads.CallbackThreads;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.internals.aop.LimitedMethods;
import io.ratelimited.spring.internals.aop.OutermostValidation;
import io.ratelimited.spring.internals.aop.RateLimitAdvisor;
import io.ratelimited.spring.internals.aop.RateLimitAspect;
import io.ratelimited.spring.internals.bean.InternalBean;
import io.ratelimited.spring.internals.bean.InternalConfiguration;
import io.ratelimited.spring.internals.block.BlockReports;
import io.ratelimited.spring.internals.call.Continuations;
import io.ratelimited.spring.internals.call.EveryRequest;
import io.ratelimited.spring.internals.call.LimitEnforcer;
import io.ratelimited.spring.internals.call.LimitUse;
import io.ratelimited.spring.internals.call.NamedLimits;
import io.ratelimited.spring.internals.check.BeanInspector;
import io.ratelimited.spring.internals.check.LimitLog;
import io.ratelimited.spring.internals.check.StartupCheck;
import io.ratelimited.spring.internals.check.WovenCheck;
import io.ratelimited.spring.internals.limit.ChangeReports;
import io.ratelimited.spring.internals.limit.EndOfWaits;
import io.ratelimited.spring.internals.limit.InMemoryLimiterFactory;
import io.ratelimited.spring.internals.limit.KeyMemory;
import io.ratelimited.spring.internals.limit.LimitOperations;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.limit.RequestThreads;
import io.ratelimited.spring.internals.limit.SettingsSource;
import io.ratelimited.spring.internals.request.ContextRequests;
import java.util.List;
import java.util.Set;
import java.util.concurrent.Executor;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.context.ApplicationContext;
import org.springframework.context.ApplicationEventPublisher;
import org.springframework.context.annotation.Conditional;
import org.springframework.context.annotation.Fallback;
import org.springframework.context.annotation.Lazy;
import org.springframework.context.annotation.Primary;
import org.springframework.core.convert.ConversionException;
import org.springframework.core.env.Environment;
import org.springframework.core.task.TaskDecorator;
import org.springframework.util.function.SingletonSupplier;

/**
 * Wires limits, their aspect, and limits in memory. A bean that the application may declare itself is left out where it has, as far as
 * the order of configuration classes shows it, and otherwise stands back.
 */
@InternalConfiguration
@Conditional(ByProperty.Enabled.class)
class LimitBeans {

    private static final String WOVEN = "io.ratelimited.rateLimitWovenMode";

    /** Beans that the contexts of a hierarchy share: the first context that starts makes them. */
    @InternalConfiguration
    @ConditionalOnNone(LimitRegistry.class)
    static class Shared {

        @InternalBean("io.ratelimited.rateLimitTicker")
        @ConditionalOnNone(Ticker.class)
        @Fallback
        Ticker rateLimitTicker() {
            return Ticker.system();
        }

        @InternalBean("io.ratelimited.inMemoryLimiterFactory")
        LimiterFactory inMemoryLimiterFactory(
                SettingsSource settings, Ticker ticker, ObjectProvider<LimitRegistry> registry) {
            KeyMemory memory = settings.memory();
            return new InMemoryLimiterFactory(
                    "memory",
                    Set.of(),
                    ticker,
                    limit -> memory.maximumKeys(limit, registry.getObject().rememberingKeys()));
        }

        @InternalBean("io.ratelimited.limitRegistry")
        LimitRegistry limitRegistry(
                SettingsSource settings,
                ObjectProvider<LimiterFactory> backends,
                ContextRequests requests,
                ObjectProvider<RequestThreads> threads,
                ChangeReports reports,
                ApplicationEventPublisher events,
                Ticker ticker) {
            return new LimitRegistry(
                    settings.settings(),
                    backends.orderedStream().toList(),
                    requests,
                    threads.getIfAvailable(() -> RequestThreads.UNBOUNDED),
                    reports,
                    new BlockReports(events, ticker),
                    ticker);
        }

        @InternalBean("io.ratelimited.rateLimitChangeReports")
        ChangeReports rateLimitChangeReports(ApplicationEventPublisher events) {
            return new ChangeReports(events);
        }

        /** Found before the requests of a single context. */
        @InternalBean("io.ratelimited.contextRequests")
        @Primary
        ContextRequests contextRequests() {
            return new ContextRequests();
        }

        @InternalBean("io.ratelimited.endOfWaits")
        EndOfWaits endOfWaits(ApplicationContext context, LimitRegistry registry) {
            return new EndOfWaits(context, registry::close);
        }

        @InternalBean("io.ratelimited.limitLog")
        LimitLog limitLog(LimitRegistry registry, SettingsSource settings) {
            return new LimitLog(registry, settings.memory());
        }
    }

    @InternalBean("io.ratelimited.hierarchyMember")
    @Lazy(false)
    HierarchyMember hierarchyMember(
            ApplicationContext context, LimitRegistry registry, ContextRequests requests, SettingsSource settings) {
        ByProperty.requireEnabled(true, context.getEnvironment());
        ByProperty.requireMode(context.containsLocalBean(WOVEN), context.getEnvironment());
        return new HierarchyMember(context, registry, requests, settings);
    }

    @InternalBean("io.ratelimited.limitEnforcer")
    LimitEnforcer limitEnforcer(
            ObjectProvider<DecisionObserver> observers,
            Ticker ticker,
            LimitRegistry registry,
            ContextRequests requests,
            @Qualifier("applicationTaskExecutor") ObjectProvider<Executor> taskExecutor,
            ObjectProvider<TaskDecorator> taskDecorators) {
        return new LimitEnforcer(
                () -> observers.orderedStream().toList(),
                ticker,
                new Continuations(
                        SingletonSupplier.of(() -> taskExecutor.getIfAvailable(() -> CallbackThreads.SHARED)),
                        SingletonSupplier.of(
                                () -> taskDecorators.orderedStream().toList()),
                        requests),
                () -> requests.isRequestThread() ? registry.threads() : RequestThreads.UNBOUNDED);
    }

    @InternalBean("io.ratelimited.rateLimits")
    @ConditionalOnNone(value = RateLimits.class, inHierarchy = false)
    @Fallback
    RateLimits rateLimits(LimitRegistry registry, LimitEnforcer enforcer, ContextRequests requests) {
        return new NamedLimits(registry, enforcer, requests);
    }

    @InternalBean("io.ratelimited.rateLimitOperations")
    @ConditionalOnNone(value = RateLimitOperations.class, inHierarchy = false)
    @Fallback
    RateLimitOperations rateLimitOperations(LimitRegistry registry, ContextRequests requests) {
        return new LimitOperations(true, registry, requests);
    }

    @InternalBean("io.ratelimited.limitedMethods")
    LimitedMethods limitedMethods(
            LimitRegistry registry,
            LimitEnforcer enforcer,
            ConfigurableListableBeanFactory beanFactory,
            ContextRequests requests) {
        return new LimitedMethods(registry, enforcer, beanFactory, requests);
    }

    @InternalBean("io.ratelimited.rateLimitStartupCheck")
    @Lazy(false)
    StartupCheck rateLimitStartupCheck(
            ConfigurableListableBeanFactory beanFactory,
            LimitedMethods methods,
            LimitRegistry registry,
            ObjectProvider<BeanInspector> inspector,
            ObjectProvider<EveryRequest> routes) {
        return new StartupCheck(beanFactory, methods, registry, inspector.getIfAvailable(), () -> {
            EveryRequest all = routes.getIfAvailable();
            return all == null ? List.<LimitUse>of() : all.ofEveryRequest();
        });
    }

    // The parts of proxies depend on no other bean, so that none is made before its time.

    @InternalBean("io.ratelimited.rateLimitMadeBeans")
    @Conditional(ByProperty.Proxied.class)
    static BeanInspector rateLimitMadeBeans() {
        return new BeanInspector();
    }

    @InternalBean("io.ratelimited.rateLimitOutermostValidation")
    static OutermostValidation rateLimitOutermostValidation(Environment environment) {
        return new OutermostValidation(aspectOrder(environment) == RateLimitAdvisor.DEFAULT_ORDER);
    }

    @InternalBean("io.ratelimited.rateLimitAdvisor")
    static RateLimitAdvisor rateLimitAdvisor(ObjectProvider<LimitedMethods> methods, Environment environment) {
        RateLimitAspect aspect = new RateLimitAspect(SingletonSupplier.of(methods::getObject));
        return new RateLimitAdvisor(aspect, aspectOrder(environment), ByProperty.isWoven(environment));
    }

    @InternalBean(WOVEN)
    @Conditional(ByProperty.Woven.class)
    static WovenCheck rateLimitWovenMode(ObjectProvider<LimitedMethods> methods) {
        return new WovenCheck(SingletonSupplier.of(methods::getObject));
    }

    /** A value that is no number fails startup where the settings are read, with the name of the property. */
    private static int aspectOrder(Environment environment) {
        try {
            return environment.getProperty("rate-limit.aspect.order", Integer.class, RateLimitAdvisor.DEFAULT_ORDER);
        } catch (IllegalArgumentException | ConversionException ex) {
            return RateLimitAdvisor.DEFAULT_ORDER;
        }
    }
}
