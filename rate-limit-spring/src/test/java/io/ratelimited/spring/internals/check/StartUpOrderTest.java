package io.ratelimited.spring.internals.check;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.CapturedLog;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.beans.factory.InitializingBean;
import org.springframework.beans.factory.config.BeanFactoryPostProcessor;
import org.springframework.beans.factory.config.BeanPostProcessor;
import org.springframework.beans.factory.config.ConfigurableListableBeanFactory;
import org.springframework.beans.factory.support.AbstractBeanDefinition;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.Ordered;

/** What the start of an application makes when. */
@ExtendWith(CapturedLog.Capture.class)
final class StartUpOrderTest {

    @Test
    void noBeanIsMadeBeforeItCanBePostProcessed(CapturedLog output) {
        try (AnnotationConfigApplicationContext context =
                ContextRunner.start(new ManualTicker(), new Class<?>[] {Application.class})) {
            context.getBean(Service.class).call();
        }
        assertThat(output).doesNotContain("not eligible for getting processed");
    }

    /** Spring warns of each bean that is made with a post-processor, unless it is part of the infrastructure. */
    @Test
    void nothingOfOursIsWarnedOfWhereAPostProcessorUsesLimits(CapturedLog output) {
        try (AnnotationConfigApplicationContext context =
                ContextRunner.start(new ManualTicker(), new Class<?>[] {Application.class, EarlyLimits.class})) {
            assertThat(context.getBean(RateLimits.class)).isNotNull();
        }
        assertThat(output.toString().lines().filter(line -> line.contains("not eligible for")))
                .noneMatch(line -> line.matches(".*Bean '[^']*(ratelimited|rate-limit|RateLimit).*"));
    }

    /** A post-processor by an instance method, so that its configuration is made early too. */
    @Configuration(proxyBeanMethods = false)
    static class EarlyLimits {

        @Bean
        BeanPostProcessor usesLimits(RateLimits limits, RateLimitOperations operations, Service service) {
            service.call();
            return new LatePostProcessor();
        }
    }

    /** The class that defines the limit is known when its bean is made, and not yet at the first call of any limited method. */
    @Test
    void limitMayBeDefinedByABeanThatIsDeclaredAsItsInterface() {
        try (AnnotationConfigApplicationContext context =
                ContextRunner.start(new ManualTicker(), new Class<?>[] {CallsEarly.class})) {
            context.getBean(Suggestions.class).suggest();
            assertThat(context.getBean(RateLimitOperations.class)
                            .limit("search")
                            .limit())
                    .hasToString("search: token-bucket, rate 10/h, burst 10");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class CallsEarly {

        @Bean
        Suggestions suggestions() {
            return new Suggestions();
        }

        @Bean
        Service service() {
            return new Service();
        }

        @Bean
        InitializingBean warmUp(Service service) {
            return service::call;
        }

        @Bean
        Search search() {
            return new SearchOfIndex();
        }
    }

    interface Search {
        void find();
    }

    static class SearchOfIndex implements Search {

        @Override
        @RateLimited(name = "search", rate = "10/h")
        public void find() {}
    }

    static class Suggestions {

        @RateLimited("search")
        public void suggest() {}
    }

    @Test
    void observerMayItselfBeLimited() {
        try (AnnotationConfigApplicationContext context =
                ContextRunner.start(new ManualTicker(), new Class<?>[] {Application.class, Observer.class})) {
            context.getBean(Service.class).call();
            assertThat(context.getBean(Observer.class).decisions()).isEqualTo(1);
        }
    }

    /** By its constructor, and through a bean with a limited method. Two of them, because each receives the calls of the other. */
    @Test
    void observersMayUseLimits() {
        try (AnnotationConfigApplicationContext context = ContextRunner.start(
                new ManualTicker(),
                new Class<?>[] {FirstAlarm.class, SecondAlarm.class, Application.class},
                "rate-limit.limits.alarm.rate=1/m")) {
            context.getBean(Service.class).call();
            assertThat(context.getBean(FirstAlarm.class).decisions).containsExactly("Service.call", "alarm");
            assertThat(context.getBean(SecondAlarm.class).decisions).containsExactly("alarm", "Service.call");
        }
    }

    @Test
    void observerReceivesDecisionsWhereBeansAreLazy() {
        try (AnnotationConfigApplicationContext context = ContextRunner.start(
                new ManualTicker(), new Class<?>[] {Application.class, Observer.class, Lazy.class})) {
            assertThat(context.getBeanFactory().containsSingleton("service")).isFalse();
            context.getBean(Service.class).call();
            assertThat(context.getBean(Observer.class).decisions()).isEqualTo(1);
        }
    }

    /** As {@code spring.main.lazy-initialization} of Spring Boot does. */
    static class Lazy implements BeanFactoryPostProcessor {

        @Override
        public void postProcessBeanFactory(ConfigurableListableBeanFactory beans) {
            for (String name : beans.getBeanDefinitionNames()) {
                if (beans.getBeanDefinition(name) instanceof AbstractBeanDefinition bean
                        && bean.getLazyInit() == null) {
                    bean.setLazyInit(true);
                }
            }
        }
    }

    abstract static class Alarm implements DecisionObserver {

        final List<String> decisions = new ArrayList<>();
        private final RateLimits limits;

        Alarm(RateLimits limits) {
            this.limits = limits;
        }

        @Override
        public void onDecision(RateLimitDecision decision) {
            decisions.add(decision.limit().name());
            limits.tryAcquire("alarm", null);
        }
    }

    static class FirstAlarm extends Alarm {

        FirstAlarm(RateLimits limits, Service service) {
            super(limits);
        }
    }

    static class SecondAlarm extends Alarm {

        SecondAlarm(RateLimits limits) {
            super(limits);
        }
    }

    static class Service {

        @RateLimited(rate = "1/s")
        public void call() {}
    }

    /** With a post-processor that has every advisor made early. */
    @Configuration(proxyBeanMethods = false)
    static class Application {

        @Bean
        Service service() {
            return new Service();
        }

        @Bean
        static BeanPostProcessor late() {
            return new LatePostProcessor();
        }
    }

    static class LatePostProcessor implements BeanPostProcessor, Ordered {

        @Override
        public int getOrder() {
            return LOWEST_PRECEDENCE;
        }
    }

    /** An observer with a limited method of its own. */
    static class Observer implements DecisionObserver {

        private int decisions;

        int decisions() {
            return decisions;
        }

        @RateLimited(rate = "1/s")
        public void limited() {}

        @Override
        public void onDecision(RateLimitDecision decision) {
            decisions++;
        }
    }
}
