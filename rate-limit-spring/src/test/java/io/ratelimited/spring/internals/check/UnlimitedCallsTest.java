package io.ratelimited.spring.internals.check;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.InvalidRateLimitException;
import io.ratelimited.spring.RateLimitExempt;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.aop.RateLimitAdvisor;
import jakarta.annotation.PostConstruct;
import jakarta.annotation.PreDestroy;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.List;
import java.util.function.Supplier;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.BeanFactoryAware;
import org.springframework.beans.factory.DisposableBean;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.InitializingBean;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Autowired;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.beans.factory.support.DefaultListableBeanFactory;
import org.springframework.context.ApplicationContext;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.event.ApplicationEventMulticaster;
import org.springframework.context.event.SimpleApplicationEventMulticaster;
import org.springframework.context.support.AbstractApplicationContext;
import org.springframework.context.support.GenericApplicationContext;
import org.springframework.context.support.SimpleThreadScope;
import org.springframework.core.PriorityOrdered;
import org.springframework.core.task.SimpleAsyncTaskExecutor;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.EnableAsync;

/** Nothing is silently unlimited: what no limit can see is warned of, once, and what is seen is not. */
@ExtendWith(CapturedLog.Capture.class)
@Tag("slow")
class UnlimitedCallsTest {

    private final ContextRunner runner = ContextRunner.limited(new ManualTicker());

    @Test
    void aSelfCallIsWarnedOfOnce(CapturedLog output) {
        runner.withBean(SelfCalling.class).run(context -> {
            assertThat(context).hasNotFailed();
            context.getBean(SelfCalling.class).several();
            context.getBean(SelfCalling.class).several();
            assertThat(output)
                    .containsOnlyOnce("$SelfCalling.several calls place of the same object")
                    .contains("rate limit 'SelfCalling.place' does not limit this call")
                    .contains("woven");
        });
    }

    @Test
    void selfCallsFromLambdasReferencesAndSuperclassesAreWarnedOf(CapturedLog output) {
        runner.withBean(Roundabout.class)
                .run(context -> assertThat(output)
                        .containsOnlyOnce("$Roundabout.byLambda calls place")
                        .containsOnlyOnce("$Roundabout.byReference calls place")
                        .containsOnlyOnce("$Roundabout.inherited calls place"));
    }

    @ParameterizedTest
    @ValueSource(classes = {CatalogByClass.class, CatalogByProxy.class})
    void selfCallsFromDefaultMethodsAreWarnedOf(Class<?> catalog, CapturedLog output) {
        ContextRunner.with(runner, catalog).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output)
                    .containsOnlyOnce(".first calls find of the same object")
                    .contains("rate limit 'catalog' does not limit this call")
                    .doesNotContain("all calls find");
        });
    }

    @Test
    void callsThroughTheProxyOrUnderTheSameLimitAreNotWarnedOf(CapturedLog output) {
        ContextRunner.with(runner, ThroughProxy.class, SharedByClass.class).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output).doesNotContain("of the same object");
        });
    }

    @Test
    void tiersThatNothingChoosesAreWarnedOf(CapturedLog output) {
        runner.withBean(FromProperties.class)
                .withPropertyValues(
                        "rate-limit.limits.search.rate=5/s",
                        "rate-limit.limits.search.tiers.gold.rate=9/s",
                        "rate-limit.limits.spare.rate=5/s",
                        "rate-limit.limits.spare.tiers.gold.rate=9/s")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(output)
                            .containsOnlyOnce("'search' (@RateLimited on")
                            .containsOnlyOnce("'spare' (rate-limit.limits.spare) has the tiers [gold] but no tier");
                });
    }

    @Test
    void aTierExpressionWithoutTiersIsWarnedOf(CapturedLog output) {
        runner.withBean(WithTier.class).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(output)
                    .containsOnlyOnce("has the tier expression \"#plan\" but no tiers")
                    .contains("Define rate-limit.limits.tiered.tiers.");
        });
    }

    @Test
    void aBeanMadeBeforeTheProxiesIsWarnedOf(CapturedLog output) {
        runner.withBean("early", Early.class)
                .withBean(EarlyProcessor.class)
                .run(context -> assertThat(output)
                        .containsOnlyOnce("Bean 'early' is not rate limited: no proxy intercepts")
                        .contains("$Early.place()"));
    }

    @Test
    void anInstanceRegisteredAsABeanIsWarnedOf(CapturedLog output) {
        runner.withInitializer(context -> ((GenericApplicationContext) context)
                        .getBeanFactory()
                        .registerSingleton("instance", new Early()))
                .run(context -> assertThat(output).containsOnlyOnce("Bean 'instance' is not rate limited"));
    }

    @Test
    void beansOfAChildContextThatMakesNoProxiesAreWarnedOf(CapturedLog output) {
        runner.run(parent -> {
            try (GenericApplicationContext child = new GenericApplicationContext(parent)) {
                child.registerBean("child", Early.class);
                child.registerBean("later", Early.class, bean -> bean.setLazyInit(true));
                child.refresh();
            }
            runner.withParent(parent).withBean("limited", Early.class).run(child -> child.getBean(Early.class));
            assertThat(output)
                    .containsOnlyOnce("Bean 'child' is not rate limited: no proxy intercepts")
                    .containsOnlyOnce("Bean 'later' is not rate limited: no proxy intercepts")
                    .doesNotContain("Bean 'limited'");
        });
    }

    /** Beans that are made before, with, and after the start. */
    private ContextRunner scopes() {
        return runner.withBean("one", Early.class)
                .withBean("lazy", Early.class, Early::new, definition -> definition.setLazyInit(true))
                .withBean("prototype", Early.class, Early::new, definition -> definition.setScope("prototype"))
                .withBean("product", EarlyFactory.class)
                .withInitializer(context -> context.getBeanFactory().registerScope("short", new SimpleThreadScope()))
                .withBean("scoped", Early.class, Early::new, definition -> definition.setScope("short"));
    }

    private static void ask(ApplicationContext context) {
        for (String bean : new String[] {"lazy", "prototype", "prototype", "product", "scoped"}) {
            assertThat(context.getBean(bean)).isInstanceOf(Early.class);
        }
    }

    @ParameterizedTest
    @ValueSource(classes = {FinalPlace.class, PrivatePlace.class})
    void methodsThatNoProxyOfAChildContextLimitsStopItsStart(Class<?> type) {
        SimpleApplicationEventMulticaster byExecutor = new SimpleApplicationEventMulticaster();
        byExecutor.setTaskExecutor(new SimpleAsyncTaskExecutor());
        ContextRunner withExecutor = runner.withBean(
                AbstractApplicationContext.APPLICATION_EVENT_MULTICASTER_BEAN_NAME,
                ApplicationEventMulticaster.class,
                () -> byExecutor);
        for (ContextRunner parents : List.of(runner, withExecutor)) {
            parents.run(parent -> stopsTheStartOfAChild(parent, type));
        }
    }

    private static void stopsTheStartOfAChild(ApplicationContext parent, Class<?> type) {
        try (AnnotationConfigApplicationContext child = new AnnotationConfigApplicationContext()) {
            child.setParent(parent);
            child.register(ContextRunner.ClassProxies.class, type);
            assertThatThrownBy(child::refresh)
                    .isInstanceOf(InvalidRateLimitException.class)
                    .hasMessageContaining("place is ");
        }
    }

    @Test
    void proxiedBeansOfEveryScopeAreNotWarnedOf(CapturedLog output) {
        scopes().run(context -> {
            assertThat(context).hasNotFailed();
            ask(context);
            assertThat(output).doesNotContain("is not rate limited");
        });
    }

    @Test
    void limitedBeansThatNeedEachOtherAreNotWarnedOf(CapturedLog output) {
        ContextRunner.with(runner.withAllowCircularReferences(true), Chicken.class, Egg.class)
                .run(context -> {
                    context.getBean(Egg.class).chicken.lay();
                    assertThat(context.getBean(RateLimits.class).tryAcquire("lay", null))
                            .isFalse();
                    assertThat(output).doesNotContain("is not rate limited");
                });
    }

    /** Spring throws the first object away, because others hold a proxy that it does not have, and makes the bean after them. */
    @Test
    void aLimitedBeanThatIsMadeTwiceIsNotWarnedOf(CapturedLog output) {
        ContextRunner.with(runner.withAllowCircularReferences(true), InBackground.class, Hen.class, Nest.class)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    context.getBean(Nest.class).hen.lay();
                    assertThat(context.getBean(RateLimits.class).tryAcquire("lay", null))
                            .isFalse();
                    assertThat(output).doesNotContain("is not rate limited");
                });
    }

    @Test
    void aBeanOfWhichOnlyOthersHoldTheLimitedProxyIsWarnedOf(CapturedLog output) {
        ContextRunner.with(runner.withAllowCircularReferences(true), InBackground.class, Hen.class, Nest.class)
                .withInitializer(context -> ((DefaultListableBeanFactory) context.getBeanFactory())
                        .setAllowRawInjectionDespiteWrapping(true))
                .run(context -> {
                    context.getBean(Hen.class).lay();
                    assertThat(context.getBean(RateLimits.class).tryAcquire("lay", null))
                            .isTrue();
                    assertThat(output).containsOnlyOnce("Hen' is not rate limited: no proxy intercepts");
                });
    }

    @Test
    void beansOfEveryScopeAreWarnedOfOnceWhenNothingMakesProxies(CapturedLog output) {
        scopes().withoutProxies().run(context -> {
            ask(context);
            assertThat(output)
                    .containsOnlyOnce("Bean 'one' is not rate limited")
                    .containsOnlyOnce("Bean 'prototype' is not rate limited")
                    .containsOnlyOnce("Bean 'product' is not rate limited")
                    .containsOnlyOnce("Bean 'scoped' is not rate limited");
        });
    }

    @Test
    void aMethodThatALimitedClassHidesIsWarnedOf(CapturedLog output) {
        runner.withBean(PartlyHidden.class)
                .run(context -> assertThat(output)
                        .containsOnlyOnce("$PartlyHidden limits public methods only, and not [handle]"));
    }

    @Test
    void aLimitedClassThatOnlyMakesBeansIsWarnedOf(CapturedLog output) {
        runner.withUserConfiguration(OnlyBeans.class)
                .run(context -> assertThat(output)
                        .containsOnlyOnce("$OnlyBeans limits no call, because [made] create beans: annotate the"
                                + " methods of the beans. [RL-203]"));
    }

    @Test
    void aLimitedClassWithoutPublicMethodsIsWarnedOf(CapturedLog output) {
        runner.withBean(Hidden.class)
                .run(context ->
                        assertThat(output).containsOnlyOnce("$Hidden limits public methods only, and not [handle]"));
    }

    @Test
    void aLimitedMethodThatTheContainerCallsOnTheObjectIsWarnedOf(CapturedLog output) {
        ContextRunner.with(runner, Prepared.class, Initialized.class, LimitedByClass.class)
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(output)
                            .containsOnlyOnce(
                                    "The container calls " + Prepared.class.getName() + ".load on the object itself")
                            .containsOnlyOnce(
                                    "The container calls " + Prepared.class.getName() + ".close on the object itself")
                            .containsOnlyOnce(
                                    "The container calls " + Initialized.class.getName() + ".afterPropertiesSet on")
                            .containsOnlyOnce("The container calls " + Initialized.class.getName() + ".destroy on")
                            .contains("rate limit 'Prepared.load' does not limit this call")
                            .doesNotContain("calls " + LimitedByClass.class.getName());
                });
    }

    @Test
    void anIncompleteLimitThatNothingUsesIsWarnedOfAndLeftOut(CapturedLog output) {
        runner.withBean(Early.class)
                .withPropertyValues(
                        "rate-limit.limits.logins.missing-key=deny",
                        "rate-limit.limits.quota.rate=5/d",
                        "rate-limit.limits.quota.zone=Europe/Berlin",
                        "rate-limit.limits.reports.max-concurrent=8",
                        "rate-limit.limits[Early.plaec].max-waiting=8")
                .run(context -> {
                    assertThat(context).hasNotFailed();
                    assertThat(output)
                            .containsOnlyOnce(
                                    "Rate limit 'logins' (rate-limit.limits.logins) is ignored: nothing uses it, and rate is missing. Complete it, or remove it")
                            .containsOnlyOnce(
                                    "zone is set, but TOKEN_BUCKET does not support it, and no other algorithm is set")
                            .containsOnlyOnce("Rate limit 'reports' (rate-limit.limits.reports) is ignored")
                            .containsOnlyOnce("uses it (did you mean 'Early.place'?), and rate");
                    RateLimits limits = context.getBean(RateLimits.class);
                    for (String ignored : new String[] {"logins", "quota", "reports", "Early.plaec"}) {
                        assertThatThrownBy(() -> limits.tryAcquire(ignored, "ann"))
                                .isInstanceOf(IllegalArgumentException.class)
                                .hasMessageContaining("there is no rate limit named '" + ignored + "'");
                    }
                    assertThatThrownBy(() -> limits.tryAcquire("logins", "ann"))
                            .hasMessageContaining("rate is missing: no property sets it");
                });
    }

    @Test
    void aPropertyThatAlmostNamesALimitIsWarnedOf(CapturedLog output) {
        runner.withBean(Early.class)
                .withPropertyValues("rate-limit.limits[Early.plaec].rate=1/s")
                .run(context -> assertThat(output)
                        .containsOnlyOnce(
                                "'Early.plaec' (rate-limit.limits[Early.plaec]) is not named by any annotation")
                        .contains("did you mean 'Early.place'?"));
    }

    /** Such a limit applies to nothing, and the annotation's value stays in force. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "Early | Early.place",
                "Early.place(String,Order) | Early.place",
                "LimitedByClass.anything | LimitedByClass"
            })
    void aPropertyWithTheDefaultNameOfAnotherPlaceIsWarnedOf(String name, String meant, CapturedLog output) {
        runner.withBean(Early.class)
                .withBean(LimitedByClass.class)
                .withPropertyValues("rate-limit.limits[" + name + "].rate=1/s")
                .run(context -> assertThat(output)
                        .containsOnlyOnce("is not named by any annotation; did you mean '" + meant + "'?"));
    }

    @Test
    void aPropertyWithTheBeginningOfANameIsNotWarnedOf(CapturedLog output) {
        runner.withBean(Early.class)
                .withPropertyValues("rate-limit.limits[Early.place.more].rate=1/s", "rate-limit.limits.e.rate=1/s")
                .run(context -> assertThat(output).doesNotContain("is not named by any annotation"));
    }

    @ParameterizedTest
    @ValueSource(strings = {"true", "on", "YES", "1"})
    void enabledInAnyWordOfSpringEverythingIsLimited(String enabled) {
        runner.withBean(Early.class)
                .withPropertyValues("rate-limit.enabled=" + enabled)
                .run(context -> assertThat(context)
                        .hasSingleBean(RateLimitAdvisor.class)
                        .hasSingleBean(RateLimits.class));
    }

    @ParameterizedTest
    @ValueSource(strings = {"false", "off", "No", "0"})
    void disabledEverythingGoesAndOneLineSaysSo(String enabled, CapturedLog output) {
        runner.withBean(Early.class)
                .withPropertyValues("rate-limit.enabled=" + enabled)
                .run(context -> {
                    assertThat(context).hasNotFailed().doesNotHaveBean(RateLimitAdvisor.class);
                    Early bean = context.getBean(Early.class);
                    bean.place();
                    bean.place();
                    RateLimits limits = context.getBean(RateLimits.class);
                    assertThat(limits.tryAcquire("Early.place", null)).isTrue();
                    assertThat(limits.<String>execute("whatever", "key", () -> "done"))
                            .isEqualTo("done");
                    assertThat(output).containsOnlyOnce("Nothing is rate limited: rate-limit.enabled is false");
                });
    }

    static class SelfCalling {
        @RateLimited(rate = "1/h")
        public void place() {}

        public void several() {
            place();
            place();
        }
    }

    static class Base {
        @RateLimited(rate = "1/h")
        public String place() {
            return "placed";
        }

        public String inherited() {
            return place();
        }
    }

    static class Roundabout extends Base {
        public Supplier<String> byLambda() {
            return () -> place() + "!";
        }

        public Supplier<String> byReference() {
            return this::place;
        }
    }

    interface Catalog {
        @RateLimited(name = "catalog", rate = "1/h")
        String find(int number);

        default String first() {
            return find(1);
        }

        @RateLimited(name = "catalog", rate = "1/h")
        default String all() {
            return find(1) + find(2);
        }
    }

    static class CatalogByClass implements Catalog {
        @Override
        public String find(int number) {
            return "found";
        }
    }

    /** As a client of an HTTP interface, which calls default methods on itself. */
    static class CatalogByProxy implements FactoryBean<Catalog> {
        @Override
        public Catalog getObject() {
            return (Catalog) Proxy.newProxyInstance(
                    Catalog.class.getClassLoader(),
                    new Class<?>[] {Catalog.class},
                    (proxy, method, args) ->
                            method.isDefault() ? InvocationHandler.invokeDefault(proxy, method, args) : "found");
        }

        @Override
        public Class<?> getObjectType() {
            return Catalog.class;
        }
    }

    static class ThroughProxy {
        private final ObjectProvider<ThroughProxy> self;

        ThroughProxy(ObjectProvider<ThroughProxy> self) {
            this.self = self;
        }

        @RateLimited(rate = "1/h")
        public void place() {}

        public void several() {
            self.getObject().place();
        }
    }

    @RateLimited(rate = "1/h")
    static class SharedByClass {
        public void one() {
            other();
        }

        public void other() {}
    }

    static class FinalPlace {
        @RateLimited(rate = "1/h")
        public final void place() {}
    }

    static class PrivatePlace {
        @SuppressWarnings("UnusedMethod") // nobody can call it but the class itself
        @RateLimited(rate = "1/h")
        private void place() {}
    }

    static class Early {
        @RateLimited(rate = "1/h")
        public void place() {}
    }

    static class Chicken {
        @Autowired
        Egg egg;

        @RateLimited(name = "lay", rate = "1/h")
        public void lay() {}
    }

    static class Egg {
        @Autowired
        Chicken chicken;
    }

    @Configuration
    @EnableAsync(order = 0)
    static class InBackground {}

    static class Hen {
        @Autowired
        Nest nest;

        @RateLimited(name = "lay", rate = "1/h")
        public void lay() {}

        @Async
        public void cluck() {}
    }

    static class Nest {
        @Autowired
        Hen hen;
    }

    static class EarlyFactory implements FactoryBean<Early> {
        @Override
        public Early getObject() {
            return new Early();
        }

        @Override
        public Class<?> getObjectType() {
            return Early.class;
        }
    }

    static class EarlyProcessor implements BeanPostProcessor, PriorityOrdered, BeanFactoryAware {
        @Override
        public void setBeanFactory(BeanFactory beans) {
            beans.getBean("early", Early.class).place();
        }

        @Override
        public int getOrder() {
            return 0;
        }
    }

    @RateLimited(rate = "1/h")
    static class PartlyHidden {
        public void place() {}

        void handle() {}

        @RateLimitExempt
        void meant() {}

        @RateLimited(rate = "2/h", fallback = "instead")
        public void own() {}

        void instead() {}
    }

    @Configuration(proxyBeanMethods = false)
    @RateLimited(rate = "1/h")
    static class OnlyBeans {

        @Bean
        String made() {
            return "made";
        }
    }

    @RateLimited(rate = "1/h")
    static class Hidden {
        void handle() {}
    }

    static class Prepared {
        @PostConstruct
        @RateLimited(rate = "1/h")
        public void load() {}

        @PreDestroy
        @RateLimited(rate = "1/h")
        public void close() {}
    }

    static class Destroyed {
        @RateLimited(rate = "1/h")
        public void destroy() {}
    }

    static class Initialized extends Destroyed implements InitializingBean, DisposableBean {
        @Override
        @RateLimited(rate = "1/h")
        public void afterPropertiesSet() {}
    }

    @RateLimited(rate = "1/h")
    static class LimitedByClass implements InitializingBean {
        @Override
        public void afterPropertiesSet() {}

        @PostConstruct
        public void load() {}
    }

    static class WithTier {
        @RateLimited(name = "tiered", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 5, tier = "#plan")
        public void call(String plan) {}

        /** May yield numbers. */
        @RateLimited(name = "numbered", rate = "5/s", tier = "#plan")
        public void other(String plan) {}
    }

    static class FromProperties {
        @RateLimited("search")
        public void call() {}
    }
}
