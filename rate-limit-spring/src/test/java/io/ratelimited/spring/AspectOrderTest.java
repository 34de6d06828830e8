package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.micrometer.core.annotation.Timed;
import io.micrometer.core.aop.TimedAspect;
import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.cache.CacheManager;
import org.springframework.cache.annotation.Cacheable;
import org.springframework.cache.annotation.EnableCaching;
import org.springframework.cache.concurrent.ConcurrentMapCacheManager;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.resilience.InvocationRejectedException;
import org.springframework.resilience.annotation.ConcurrencyLimit;
import org.springframework.resilience.annotation.EnableResilientMethods;
import org.springframework.resilience.annotation.Retryable;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.transaction.TransactionDefinition;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.transaction.support.AbstractPlatformTransactionManager;
import org.springframework.transaction.support.DefaultTransactionStatus;

/** Where the limit stands among the other advice of a method. */
public final class AspectOrderTest {

    private final ManualTicker ticker = new ManualTicker();
    private @Nullable AnnotationConfigApplicationContext context;

    private Service start(String... properties) {
        context = ContextRunner.start(ticker, new Class<?>[] {Application.class}, properties);
        return context.getBean(Service.class);
    }

    @AfterEach
    void stop() {
        if (context != null) {
            context.close();
        }
    }

    private Transactions transactions() {
        return context.getBean(Transactions.class);
    }

    @Test
    void refusedCallBeginsNoTransaction() {
        Service service = start();
        service.transactional();
        assertThatThrownBy(service::transactional).isInstanceOf(RateLimitExceededException.class);
        assertThat(transactions().begun).hasValue(1);
    }

    @Test
    void callThatFindsItsResultInTheCacheCountsToo() {
        Service service = start();
        assertThat(service.cached("a")).isEqualTo("cached a");
        assertThatThrownBy(() -> service.cached("a")).isInstanceOf(RateLimitExceededException.class);
    }

    @Test
    void everyAttemptOfARetryCounts() {
        Service service = start();
        assertThatThrownBy(service::retried).isInstanceOf(RuntimeException.class);
        assertThat(service.attempts()).hasValue(3);
        assertThat(context.getBean(RateLimits.class).peek("retried", null).remaining())
                .isEqualTo(7);
    }

    @ParameterizedTest
    @CsvSource({"999, 1", "1001, 2"})
    void orderCanBeSet(int order, int transactions) {
        context = ContextRunner.start(
                ticker, new Class<?>[] {OrderedApplication.class}, "rate-limit.aspect.order=" + order);
        Service service = context.getBean(Service.class);
        service.transactional();
        assertThatThrownBy(service::transactional).isInstanceOf(RateLimitExceededException.class);
        assertThat(transactions().begun).hasValue(transactions);
    }

    @Test
    void rejectedCallsAreNotTimed() {
        Service service = start();
        service.timed();
        assertThatThrownBy(service::timed).isInstanceOf(RateLimitExceededException.class);
        assertThat(context.getBean(MeterRegistry.class).get("work").timer().count())
                .isEqualTo(1);
    }

    @Test
    void callThatWaitsForTheLimitHoldsAPlaceOfSpringsConcurrencyLimit() throws InterruptedException {
        Service service = start();
        ticker.autoAdvance();
        service.one();
        ticker.autoAdvance(false);
        Thread waiting = new Thread(service::one);
        waiting.start();
        ticker.awaitSleeping(1);
        assertThatThrownBy(service::one).isInstanceOf(InvocationRejectedException.class);
        ticker.advance(Duration.ofSeconds(1));
        waiting.join(20_000);
        assertThat(waiting.isAlive()).isFalse();
    }

    @Test
    void asynchronousMethodCountsOnceAndItsRefusalFailsItsFuture() {
        Service service = start();
        assertThat(service.async().orTimeout(20, TimeUnit.SECONDS).join()).isEqualTo("async");
        assertThatThrownBy(() -> service.async().orTimeout(20, TimeUnit.SECONDS).join())
                .hasCauseInstanceOf(RateLimitExceededException.class);
    }

    /** Methods with other advice beside the limit. */
    static class Service {

        private final AtomicInteger attempts = new AtomicInteger();

        AtomicInteger attempts() {
            return attempts;
        }

        @Transactional
        @RateLimited(rate = "1/s")
        public void transactional() {}

        @Cacheable("results")
        @RateLimited(rate = "1/s")
        public String cached(String id) {
            return "cached " + id;
        }

        @Retryable(maxRetries = 2, delay = 0)
        @RateLimited(name = "retried", rate = "10/s")
        public void retried() {
            attempts.incrementAndGet();
            throw new IllegalStateException("again");
        }

        @Timed("work")
        @RateLimited(rate = "1/s")
        public void timed() {}

        @ConcurrencyLimit(limit = 1, policy = ConcurrencyLimit.ThrottlePolicy.REJECT)
        @RateLimited(rate = "1/s", policy = Policy.WAIT)
        public void one() {}

        @Async
        @RateLimited(rate = "1/s")
        public CompletableFuture<String> async() {
            return CompletableFuture.completedFuture("async");
        }
    }

    /** Real infrastructure around a service. */
    @Configuration(proxyBeanMethods = false)
    @EnableTransactionManagement
    @EnableCaching
    @EnableResilientMethods
    @EnableAsync
    static class Application {

        @Bean
        Service service() {
            return new Service();
        }

        @Bean
        Transactions transactionManager() {
            return new Transactions();
        }

        @Bean
        MeterRegistry meters() {
            return new SimpleMeterRegistry();
        }

        @Bean
        TimedAspect timedAspect(MeterRegistry meters) {
            return new TimedAspect(meters);
        }

        @Bean
        CacheManager cacheManager() {
            return new ConcurrentMapCacheManager();
        }
    }

    /** Transactions of an order of their own. */
    @Configuration(proxyBeanMethods = false)
    @EnableTransactionManagement(order = 1000)
    static class OrderedApplication {

        @Bean
        Service service() {
            return new Service();
        }

        @Bean
        Transactions transactionManager() {
            return new Transactions();
        }
    }

    /** Counts transactions. */
    public static final class Transactions extends AbstractPlatformTransactionManager {

        private static final long serialVersionUID = 1L;

        public final transient AtomicInteger begun = new AtomicInteger();

        @Override
        protected Object doGetTransaction() {
            return this;
        }

        @Override
        protected void doBegin(Object transaction, TransactionDefinition definition) {
            begun.incrementAndGet();
        }

        @Override
        protected void doCommit(DefaultTransactionStatus status) {
            // Nothing to commit.
        }

        @Override
        protected void doRollback(DefaultTransactionStatus status) {
            // Nothing to roll back.
        }
    }
}
