package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.util.stream.Stream;
import org.aopalliance.intercept.MethodInterceptor;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.aop.framework.ProxyFactory;
import org.springframework.aop.support.AopUtils;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.core.annotation.AliasFor;

/** Wherever the annotations of a method stand, and however it is proxied, a call counts once. */
final class CountedOnceTest {

    static Stream<Arguments> services() {
        return Stream.of(
                        Direct.class,
                        OnInterface.class,
                        OnInterfaceAndMethod.class,
                        OnClass.class,
                        OnClassAndInterface.class,
                        OnSuperclass.class,
                        Inherited.class,
                        AnnotatedSubclass.class,
                        Meta.class,
                        DeeperMeta.class,
                        MetaOnClass.class,
                        MetaAndClass.class,
                        Both.class)
                .flatMap(service -> Stream.of(Arguments.of(service, true), Arguments.of(service, false)));
    }

    @ParameterizedTest(name = "{0}, proxied by class: {1}")
    @MethodSource("services")
    void callCountsOnce(Class<? extends Service> type, boolean byClass) {
        try (AnnotationConfigApplicationContext context = byClass
                ? ContextRunner.start(new ManualTicker(), new Class<?>[] {type})
                : ContextRunner.startWithInterfaces(new ManualTicker(), type)) {
            Service service = context.getBean(Service.class);
            assertThat(AopUtils.isCglibProxy(service)).isEqualTo(byClass);
            service.call();
            TestLimits limits = TestLimits.of(context);
            assertThat(limits.limits())
                    .allSatisfy(
                            limit -> assertThat(limits.peek(limit.name(), null).remaining())
                                    .as(limit.name())
                                    .isEqualTo(9));
            assertThat(limits.limits()).hasSize(1);
        }
    }

    @Test
    void callOfClientThatIsProxyItselfCountsOnce() {
        try (AnnotationConfigApplicationContext context =
                ContextRunner.start(new ManualTicker(), new Class<?>[] {Clients.class})) {
            TestLimits limits = TestLimits.of(context);
            context.getBeansOfType(Service.class).forEach((name, client) -> {
                client.call();
                assertThat(limits.peek("once", null).remaining()).as(name).isEqualTo(9);
                limits.reset("once", null);
            });
        }
    }

    @Test
    void callOfClientThatIsProxyItselfIsChargedOnce() {
        try (AnnotationConfigApplicationContext context =
                ContextRunner.start(new ManualTicker(), new Class<?>[] {ChargedClient.class})) {
            context.getBean(ChargedService.class).call();
            assertThat(TestLimits.of(context).peek("charged", null).remaining()).isEqualTo(6);
        }
    }

    static class ChargedClient {
        @Bean
        ChargedService charged() {
            return Clients.client(ChargedService.class);
        }
    }

    interface ChargedService {
        @RateLimited(name = "charged", rate = "10/h", charge = "4")
        void call();
    }

    /** As HTTP clients and repositories are made: proxies of interfaces, without a class behind them. */
    static class Clients {
        @Bean
        Service ofMethod() {
            return client(LimitedService.class);
        }

        @Bean
        Service ofInheritedMethod() {
            return client(InheritingService.class);
        }

        @Bean
        Service ofType() {
            return client(LimitedTypeService.class);
        }

        @Bean
        Service ofOverriddenType() {
            return client(OverridingService.class);
        }

        @Bean
        Service ofMetaAnnotation() {
            return client(MetaService.class);
        }

        private static <T> T client(Class<T> type) {
            return ProxyFactory.getProxy(type, (MethodInterceptor) call -> null);
        }
    }

    interface Service {
        void call();
    }

    interface InheritingService extends LimitedService {}

    interface MetaService extends Service {
        @Override
        @Ten
        void call();
    }

    interface LimitedService extends Service {
        @Override
        @RateLimited(name = "once", rate = "10/s")
        void call();
    }

    @RateLimited(name = "once", rate = "10/s")
    interface LimitedTypeService extends Service {}

    interface OverridingService extends LimitedTypeService {
        @Override
        void call();
    }

    @Retention(RetentionPolicy.RUNTIME)
    @RateLimited(rate = "10/s")
    @interface Ten {
        @AliasFor(annotation = RateLimited.class, attribute = "name")
        String value() default "once";
    }

    @Retention(RetentionPolicy.RUNTIME)
    @Ten
    @interface TenAgain {
        @AliasFor(annotation = Ten.class, attribute = "value")
        String name() default "once";
    }

    static class Direct implements Service {
        @Override
        @RateLimited(name = "once", rate = "10/s")
        public void call() {}
    }

    static class OnInterface implements LimitedService {
        @Override
        public void call() {}
    }

    static class OnInterfaceAndMethod implements LimitedService {
        @Override
        @RateLimited(name = "once", rate = "10/s")
        public void call() {}
    }

    @RateLimited(name = "once", rate = "10/s")
    static class OnClass implements Service {
        @Override
        public void call() {}
    }

    @RateLimited(name = "once", rate = "10/s")
    static class OnClassAndInterface implements LimitedService {
        @Override
        public void call() {}
    }

    static class OnSuperclass extends OnClass {
        @Override
        public void call() {}
    }

    static class Inherited extends OnClass {}

    static class Plain implements Service {
        @Override
        public void call() {}
    }

    @RateLimited(name = "once", rate = "10/s")
    static class AnnotatedSubclass extends Plain {}

    static class Meta implements Service {
        @Override
        @Ten("once")
        public void call() {}
    }

    static class DeeperMeta implements Service {
        @Override
        @TenAgain(name = "once")
        public void call() {}
    }

    @Ten
    static class MetaOnClass implements LimitedTypeService {
        @Override
        public void call() {}
    }

    @TenAgain
    static class MetaAndClass implements LimitedTypeService {
        @Override
        @Ten
        public void call() {}
    }

    @RateLimited(name = "once", rate = "10/s")
    static class Both extends AnnotatedSubclass implements LimitedService {
        @Override
        @RateLimited(name = "once", rate = "10/s")
        @org.springframework.scheduling.annotation.Async
        public void call() {}
    }
}
