package io.ratelimited.spring;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Proxy;
import java.util.concurrent.CompletableFuture;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.aopalliance.intercept.MethodInterceptor;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.aop.interceptor.PerformanceMonitorInterceptor;
import org.springframework.beans.factory.BeanFactory;
import org.springframework.beans.factory.BeanFactoryAware;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.annotation.Qualifier;
import org.springframework.beans.factory.config.BeanDefinition;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Primary;
import org.springframework.context.annotation.Scope;
import org.springframework.context.annotation.ScopedProxyMode;
import org.springframework.context.support.SimpleThreadScope;
import org.springframework.core.PriorityOrdered;
import org.springframework.mock.http.client.MockClientHttpResponse;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.client.RestClient;
import org.springframework.web.client.support.RestClientAdapter;
import org.springframework.web.client.support.RestClientHttpServiceGroupConfigurer;
import org.springframework.web.service.annotation.GetExchange;
import org.springframework.web.service.invoker.HttpServiceProxyFactory;
import org.springframework.web.service.registry.ImportHttpServices;
import reactor.core.publisher.Mono;

/**
 * Whatever makes the object that is called, and whenever: a call of it counts once, or the start says that no limit sees
 * it.
 */
@ExtendWith(CapturedLog.Capture.class)
@Tag("slow")
final class ProxyShapesTest {

    private final ContextRunner runner = ContextRunner.limited(new ManualTicker())
            .withInitializer(context -> context.getBeanFactory().registerScope("short", new SimpleThreadScope()));

    /** When the bean is made: for another one at the start, when somebody asks for it, or both. */
    enum Made {
        FOR_ANOTHER_BEAN,
        WHEN_ASKED_FOR,
        EACH_TIME
    }

    static Stream<Arguments> limitedShapes() {
        return Stream.of(
                        OfHttpClient.class,
                        OfImportedHttpClient.class,
                        OfFactory.class,
                        HandMadeOfInterface.class,
                        HandMadeByClass.class,
                        AroundLimitedBean.class,
                        AroundBeanOfLimitedInterface.class,
                        RepositoryWithFragment.class,
                        SameBeanAgain.class,
                        WrappedAfterItsLimit.class,
                        ScopedByClass.class,
                        ScopedByInterface.class)
                .flatMap(shape -> Stream.of(Made.values()).map(made -> Arguments.of(shape, made)));
    }

    @ParameterizedTest(name = "{0}, made {1}")
    @MethodSource("limitedShapes")
    void callCountsOnce(Class<?> shape, Made made, CapturedLog output) {
        application(shape, made).run(context -> {
            assertThat(context).hasNotFailed();
            Contacts contacts = context.getBean(Contacts.class);
            TestLimits limits = TestLimits.of(context);
            assertThat(limits.limits()).extracting(NamedLimit::name).containsExactly("once");
            contacts.findByName("Ada");
            assertThat(limits.peek("once", null).remaining()).isEqualTo(9);
            assertThat(output).doesNotContain("is not rate limited");
        });
    }

    @Test
    void fragmentThatIsCalledDirectlyCountsToo() {
        runner.withUserConfiguration(RepositoryWithFragment.class).run(context -> {
            TestLimits limits = TestLimits.of(context);
            context.getBean(Contacts.class).findByName("Ada");
            context.getBean("fragment", Contacts.class).findByName("Ada");
            assertThat(limits.peek("once", null).remaining()).isEqualTo(8);
        });
    }

    @Test
    void proxyThatCallsItsBeanAgainCountsAgain() {
        runner.withUserConfiguration(Retrying.class).run(context -> {
            TestLimits limits = TestLimits.of(context);
            context.getBean(Contacts.class).findByName("Ada");
            assertThat(limits.peek("once", null).remaining()).isEqualTo(8);
        });
    }

    @Test
    void classThatCallsAnotherBeanOfItsInterfaceCountsAsBoth() {
        runner.withUserConfiguration(Decorated.class).run(context -> {
            TestLimits limits = TestLimits.of(context);
            context.getBean(Contacts.class).findByName("Ada");
            assertThat(limits.peek("once", null).remaining()).isEqualTo(8);
        });
    }

    @Test
    void proxyThatCallsAnotherOneOfItsOwnLimitCountsAsBoth() {
        runner.withUserConfiguration(TwoStores.class).run(context -> {
            TestLimits limits = TestLimits.of(context);
            assertThat(context.getBean(Sales.class).save("order")).isEqualTo("order");
            assertThat(limits.peek("db", null).remaining()).isEqualTo(8);
        });
    }

    @Test
    void proxyWhoseOwnAnnotationRepeatsThatOfItsFragmentCountsOnce() {
        runner.withUserConfiguration(StoreWithFragment.class).run(context -> {
            TestLimits limits = TestLimits.of(context);
            assertThat(context.getBean(Archive.class).save("order")).isEqualTo("order");
            assertThat(limits.peek("db", null).remaining()).isEqualTo(9);
        });
    }

    @Test
    void laterResultOfFragmentCountsOnce() {
        runner.withBean("fragment", LaterFragment.class, LaterFragment::new)
                .withUserConfiguration(LaterRepository.class)
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    LaterContacts contacts = context.getBean(LaterContacts.class);
                    assertThat(contacts.future()).isCompletedWithValue("found");
                    assertThat(contacts.mono().block()).isEqualTo("found");
                    assertThat(limits.peek("future", null).remaining()).isEqualTo(9);
                    assertThat(limits.peek("mono", null).remaining()).isEqualTo(9);
                });
    }

    static Stream<Arguments> unlimitedShapes() {
        return Stream.of(WrappedBeforeItsLimit.class, ReplacedByProcessor.class, HandMadeBySpring.class)
                .flatMap(shape -> Stream.of(Made.values()).map(made -> Arguments.of(shape, made)));
    }

    @ParameterizedTest(name = "{0}, made {1}")
    @MethodSource("unlimitedShapes")
    void whatNoLimitSeesIsWarnedOf(Class<?> shape, Made made, CapturedLog output) {
        application(shape, made).run(context -> {
            assertThat(context).hasNotFailed();
            context.getBean(Contacts.class).findByName("Ada");
            context.getBean(Contacts.class).findByName("Ada");
            assertThat(output).containsOnlyOnce("Bean 'contacts' is not rate limited: no proxy intercepts");
        });
    }

    /** The limit on the interface works, and must not hide that the one on the class behind the proxy does not. */
    @ParameterizedTest
    @ValueSource(classes = {TimedByProcessor.class, TimedBySpring.class})
    void methodThatOnlyTheClassBehindAProxyLimitsIsWarnedOf(Class<?> shape, CapturedLog output) {
        runner.withUserConfiguration(shape).run(context -> {
            assertThat(context).hasNotFailed();
            Orders orders = context.getBean(Orders.class);
            orders.find("1");
            orders.place("1");
            assertThat(TestLimits.of(context).peek("find", null).remaining()).isEqualTo(9);
            assertThat(output)
                    .containsOnlyOnce("Bean 'orders' is not rate limited: no proxy intercepts public java.lang.String "
                            + OrderService.class.getName() + ".place(java.lang.String). It was created");
        });
    }

    /** The proxy around a limited bean leaves the limit to the proxy inside, of both kinds of Spring's proxies. */
    @ParameterizedTest
    @ValueSource(booleans = {true, false})
    void beanThatIsAnotherLimitedBeanOnceMoreCountsOnce(boolean byClass) {
        runner.withUserConfiguration(SameInterfaceAgain.class)
                .withPropertyValues("spring.aop.proxy-target-class=" + byClass)
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    LaterContacts contacts = context.getBean(LaterContacts.class);
                    assertThat(contacts.future()).isCompletedWithValue("found");
                    assertThat(contacts.mono().block()).isEqualTo("found");
                    assertThat(limits.peek("future", null).remaining()).isEqualTo(9);
                    assertThat(limits.peek("mono", null).remaining()).isEqualTo(9);
                });
    }

    @Test
    void productOfFactoryThatNamesNoTypeIsLimitedWhenItIsMade(CapturedLog output) {
        runner.withBean("contacts", SilentFactory.class).run(context -> {
            Contacts contacts = (Contacts) context.getBean("contacts");
            TestLimits limits = TestLimits.of(context);
            assertThat(limits.limits()).extracting(NamedLimit::name).containsExactly("once");
            contacts.findByName("Ada");
            assertThat(limits.peek("once", null).remaining()).isEqualTo(9);
            assertThat(output).doesNotContain("is not rate limited");
        });
    }

    @Test
    void productMadeBeforeTheProxiesIsWarnedOf(CapturedLog output) {
        runner.withUserConfiguration(OfFactory.class)
                .withBean(EarlyProcessor.class)
                .run(context -> assertThat(output)
                        .containsOnlyOnce("Bean 'contacts' is not rate limited: no proxy intercepts"));
    }

    private ContextRunner application(Class<?> shape, Made made) {
        ContextRunner application = runner.withUserConfiguration(shape);
        return switch (made) {
            case FOR_ANOTHER_BEAN -> application.withUserConfiguration(Caller.class);
            case WHEN_ASKED_FOR -> changed(application, definition -> definition.setLazyInit(true));
            case EACH_TIME -> changed(application, definition -> definition.setScope("prototype"));
        };
    }

    private static ContextRunner changed(ContextRunner application, Consumer<BeanDefinition> change) {
        return application.withInitializer(context -> context.addBeanFactoryPostProcessor(
                beans -> Stream.of(beans.getBeanNamesForType(Contacts.class, true, false))
                        .filter(name -> !name.startsWith("scopedTarget."))
                        .forEach(name -> change.accept(beans.getBeanDefinition(name)))));
    }

    interface Contacts {
        @Nullable
        Object findByName(String name);
    }

    interface LimitedContacts extends Contacts {
        @Override
        @RateLimited(name = "once", rate = "10/s")
        @Nullable
        Object findByName(String name);
    }

    interface HttpClient extends Contacts {
        @Override
        @GetExchange("/contacts")
        @RateLimited(name = "once", rate = "10/s")
        String findByName(@RequestParam String name);
    }

    static class AnnotatedContacts implements Contacts {
        @Override
        @RateLimited(name = "once", rate = "10/s")
        public Object findByName(String name) {
            return name;
        }
    }

    static class Caller {
        Caller(Contacts contacts) {}
    }

    private static <T> T jdkProxy(Class<T> type, InvocationHandler handler) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, handler));
    }

    /** As Feign's: the product is a JDK proxy. */
    static class ClientFactory implements FactoryBean<LimitedContacts> {

        @Override
        public LimitedContacts getObject() {
            return jdkProxy(LimitedContacts.class, (proxy, method, args) -> "found");
        }

        @Override
        public @Nullable Class<?> getObjectType() {
            return LimitedContacts.class;
        }
    }

    static class SilentFactory extends ClientFactory {

        @Override
        public @Nullable Class<?> getObjectType() {
            return null;
        }
    }

    static class EarlyProcessor implements BeanPostProcessor, PriorityOrdered, BeanFactoryAware {

        @Override
        public void setBeanFactory(BeanFactory beans) {
            beans.getBean("contacts", Contacts.class).findByName("Ada");
        }

        @Override
        public int getOrder() {
            return 0;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OfFactory {
        @Bean
        static ClientFactory contacts() {
            return new ClientFactory();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OfHttpClient {
        @Bean
        HttpClient contacts() {
            return HttpServiceProxyFactory.builderFor(RestClientAdapter.create(answering()))
                    .build()
                    .createClient(HttpClient.class);
        }
    }

    @Configuration(proxyBeanMethods = false)
    @ImportHttpServices(types = HttpClient.class)
    static class OfImportedHttpClient {
        @Bean
        RestClientHttpServiceGroupConfigurer answers() {
            return groups -> groups.forEachClient((group, client) -> answer(client));
        }
    }

    private static RestClient answering() {
        return answer(RestClient.builder()).build();
    }

    private static RestClient.Builder answer(RestClient.Builder client) {
        return client.baseUrl("http://nobody.invalid")
                .requestInterceptor(
                        (request, body, execution) -> new MockClientHttpResponse("found".getBytes(UTF_8), 200));
    }

    @Configuration(proxyBeanMethods = false)
    static class HandMadeOfInterface {
        @Bean
        Contacts contacts() {
            return jdkProxy(LimitedContacts.class, (proxy, method, args) -> "found");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class HandMadeByClass {
        @Bean
        Contacts contacts() {
            ProxyFactory factory = new ProxyFactory(new AnnotatedContacts());
            factory.setProxyTargetClass(true);
            return (Contacts) factory.getProxy();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class AroundLimitedBean {
        @Bean
        AnnotatedContacts inner() {
            return new AnnotatedContacts();
        }

        @Bean
        @Primary
        Contacts contacts(AnnotatedContacts inner) {
            return jdkProxy(Contacts.class, (proxy, method, args) -> method.invoke(inner, args));
        }
    }

    static class Fragment implements LimitedContacts {
        @Override
        public Object findByName(String name) {
            return name;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class AroundBeanOfLimitedInterface {
        @Bean
        LimitedContacts fragment() {
            return new Fragment();
        }

        @Bean
        @Primary
        LimitedContacts contacts(@Qualifier("fragment") LimitedContacts inner) {
            return jdkProxy(LimitedContacts.class, (proxy, method, args) -> method.invoke(inner, args));
        }
    }

    interface Repository extends LimitedContacts {}

    /** As Spring Data makes repositories: methods of a fragment are those of a bean. */
    @Configuration(proxyBeanMethods = false)
    static class RepositoryWithFragment {
        @Bean
        Fragment fragment() {
            return new Fragment();
        }

        @Bean
        @Primary
        static FactoryBean<Repository> contacts(@Qualifier("fragment") ObjectProvider<LimitedContacts> fragment) {
            return new RepositoryFactory(fragment);
        }
    }

    record RepositoryFactory(ObjectProvider<LimitedContacts> fragment) implements FactoryBean<Repository> {

        @Override
        public Repository getObject() {
            ProxyFactory factory = new ProxyFactory(new Object());
            factory.setInterfaces(Repository.class);
            LimitedContacts inner = fragment.getObject();
            factory.addAdvice((MethodInterceptor) call -> call.getMethod().invoke(inner, call.getArguments()));
            return (Repository) factory.getProxy();
        }

        @Override
        public Class<?> getObjectType() {
            return Repository.class;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Retrying {
        @Bean
        LimitedContacts fragment() {
            return new Fragment();
        }

        @Bean
        @Primary
        LimitedContacts contacts(@Qualifier("fragment") LimitedContacts inner) {
            return jdkProxy(LimitedContacts.class, (proxy, method, args) -> {
                method.invoke(inner, args);
                return method.invoke(inner, args);
            });
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Decorated {
        @Bean
        Fragment fragment() {
            return new Fragment();
        }

        @Bean
        @Primary
        Decorator contacts(@Qualifier("fragment") LimitedContacts inner) {
            return new Decorator(inner);
        }
    }

    static class Decorator implements LimitedContacts {

        private final LimitedContacts inner;

        Decorator(LimitedContacts inner) {
            this.inner = inner;
        }

        @Override
        public @Nullable Object findByName(String name) {
            return inner.findByName(name);
        }
    }

    interface Store {
        Object save(Object entity);
    }

    @RateLimited(name = "db", rate = "10/s")
    interface Sales extends Store {}

    @RateLimited("db")
    interface Outbox extends Store {}

    @RateLimited("db")
    interface Archive extends Outbox {}

    /** As a repository whose events are for a listener that saves them by another repository. */
    @Configuration(proxyBeanMethods = false)
    static class TwoStores {
        @Bean
        Outbox outbox() {
            return jdkProxy(Outbox.class, (proxy, method, args) -> args[0]);
        }

        @Bean
        Sales sales(Outbox outbox) {
            return jdkProxy(Sales.class, (proxy, method, args) -> outbox.save(args[0]));
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class StoreWithFragment {
        @Bean
        Sales limit() {
            return entity -> entity;
        }

        @Bean
        Outbox fragment() {
            return entity -> entity;
        }

        @Bean
        Archive archive(@Qualifier("fragment") Outbox fragment) {
            return jdkProxy(Archive.class, (proxy, method, args) -> fragment.save(args[0]));
        }
    }

    interface LaterContacts {
        @RateLimited(name = "future", rate = "10/s")
        CompletableFuture<String> future();

        @RateLimited(name = "mono", rate = "10/s")
        Mono<String> mono();
    }

    static class LaterFragment implements LaterContacts {
        @Override
        public CompletableFuture<String> future() {
            return CompletableFuture.completedFuture("found");
        }

        @Override
        public Mono<String> mono() {
            return Mono.just("found");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class LaterRepository {
        @Bean
        @Primary
        LaterContacts contacts(@Qualifier("fragment") LaterContacts inner) {
            return jdkProxy(LaterContacts.class, (proxy, method, args) -> method.invoke(inner, args));
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class SameInterfaceAgain {
        @Bean
        LaterContacts inner() {
            return new LaterFragment();
        }

        @Bean
        @Primary
        LaterContacts contacts(@Qualifier("inner") LaterContacts inner) {
            return inner;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class SameBeanAgain {
        @Bean
        AnnotatedContacts inner() {
            return new AnnotatedContacts();
        }

        @Bean
        @Primary
        Contacts contacts(AnnotatedContacts inner) {
            return inner;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ScopedByClass {
        @Bean
        @Scope(scopeName = "short", proxyMode = ScopedProxyMode.TARGET_CLASS)
        AnnotatedContacts contacts() {
            return new AnnotatedContacts();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ScopedByInterface {
        @Bean
        @Scope(scopeName = "short", proxyMode = ScopedProxyMode.INTERFACES)
        LimitedContacts contacts() {
            return name -> name;
        }
    }

    /** As libraries wrap beans of their interest: in a proxy that shows nothing of what it calls. */
    static class Wrapper implements BeanPostProcessor {

        @Override
        public Object postProcessAfterInitialization(Object bean, String name) {
            return bean instanceof Contacts
                    ? jdkProxy(Contacts.class, (proxy, method, args) -> method.invoke(bean, args))
                    : bean;
        }
    }

    static class EarlyWrapper extends Wrapper implements PriorityOrdered {

        @Override
        public int getOrder() {
            return 0;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class WrappedBeforeItsLimit {
        @Bean
        static EarlyWrapper wrapper() {
            return new EarlyWrapper();
        }

        @Bean
        Contacts contacts() {
            return new AnnotatedContacts();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class WrappedAfterItsLimit {
        @Bean
        static Wrapper wrapper() {
            return new Wrapper();
        }

        @Bean
        Contacts contacts() {
            return new AnnotatedContacts();
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class ReplacedByProcessor {
        @Bean
        static EarlyReplacement replacement() {
            return new EarlyReplacement();
        }

        @Bean
        Contacts contacts() {
            return new AnnotatedContacts();
        }
    }

    static class EarlyReplacement extends EarlyWrapper {

        @Override
        public Object postProcessAfterInitialization(Object bean, String name) {
            return bean instanceof Contacts contacts ? new Delegating(contacts) : bean;
        }
    }

    record Delegating(Contacts contacts) implements Contacts {

        @Override
        public @Nullable Object findByName(String name) {
            return contacts.findByName(name);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class HandMadeBySpring {
        @Bean
        Contacts contacts() {
            return (Contacts) new ProxyFactory(new AnnotatedContacts()).getProxy();
        }
    }

    interface Orders {
        @RateLimited(name = "find", rate = "10/s")
        String find(String order);

        String place(String order);
    }

    static class OrderService implements Orders {
        @Override
        public String find(String order) {
            return order;
        }

        @Override
        @RateLimited(name = "place", rate = "1/s")
        public String place(String order) {
            return order;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class TimedByProcessor {
        @Bean
        static EarlyTimer timer() {
            return new EarlyTimer();
        }

        @Bean
        Orders orders() {
            return new OrderService();
        }
    }

    static class EarlyTimer extends EarlyWrapper {

        @Override
        public Object postProcessAfterInitialization(Object bean, String name) {
            return bean instanceof Orders
                    ? jdkProxy(Orders.class, (proxy, method, args) -> method.invoke(bean, args))
                    : bean;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class TimedBySpring {
        @Bean
        Orders orders() {
            ProxyFactory factory = new ProxyFactory(new OrderService());
            factory.addAdvice(new PerformanceMonitorInterceptor());
            return (Orders) factory.getProxy();
        }
    }
}
