package io.ratelimited.spring.autoconfigure;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.github.resilience4j.circuitbreaker.CircuitBreakerRegistry;
import io.github.resilience4j.circuitbreaker.annotation.CircuitBreaker;
import io.github.resilience4j.retry.annotation.Retry;
import io.github.resilience4j.springboot.circuitbreaker.autoconfigure.CircuitBreakerAutoConfiguration;
import io.github.resilience4j.springboot.retry.autoconfigure.RetryAutoConfiguration;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.AspectOrderTest;
import io.ratelimited.spring.Contexts;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.aop.RateLimitAdvisor;
import jakarta.validation.ConstraintViolationException;
import jakarta.validation.constraints.NotBlank;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.validation.autoconfigure.ValidationAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.resilience.annotation.EnableResilientMethods;
import org.springframework.resilience.annotation.Retryable;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.security.access.AccessDeniedException;
import org.springframework.security.access.prepost.PreAuthorize;
import org.springframework.security.authentication.TestingAuthenticationToken;
import org.springframework.security.config.annotation.method.configuration.EnableMethodSecurity;
import org.springframework.security.core.context.SecurityContextHolder;
import org.springframework.transaction.annotation.EnableTransactionManagement;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.validation.annotation.Validated;
import org.springframework.validation.beanvalidation.MethodValidationPostProcessor;
import org.springframework.validation.method.MethodValidationException;

/** Where the limit stands among the aspects of other libraries, as each of them is by default. */
@Tag("slow")
final class AmongOtherAspectsTest {

    private final ApplicationContextRunner runner = Contexts.runner(new ManualTicker())
            .withConfiguration(AutoConfigurations.of(
                    RetryAutoConfiguration.class,
                    CircuitBreakerAutoConfiguration.class,
                    ValidationAutoConfiguration.class))
            .withUserConfiguration(Application.class)
            .withBean(Service.class)
            .withPropertyValues(
                    "resilience4j.retry.instances.remote.max-attempts=5",
                    "resilience4j.retry.instances.remote.wait-duration=1ms",
                    "resilience4j.circuitbreaker.instances.remote.minimum-number-of-calls=100");

    @AfterEach
    void signOut() {
        SecurityContextHolder.clearContext();
    }

    private void run(Run run) {
        runner.run(context -> run.with(context.getBean(Service.class), context.getBean(RateLimits.class)));
    }

    private interface Run {
        void with(Service service, RateLimits limits) throws Exception;
    }

    @Test
    void everyAttemptOfARetryOfResilience4jCounts() {
        run((service, limits) -> {
            assertThatThrownBy(service::retried).isInstanceOf(IllegalStateException.class);
            assertThat(service.calls()).hasValue(5);
            assertThat(limits.peek("retried", null).remaining()).isEqualTo(5);
        });
    }

    @Test
    void refusalsAreNotRetriedWhereTheRetryIgnoresThem() {
        runner.withPropertyValues("resilience4j.retry.instances.remote.ignore-exceptions="
                        + RateLimitExceededException.class.getName())
                .run(context -> {
                    Service service = context.getBean(Service.class);
                    context.getBean(RateLimits.class).tryAcquire("retried", null, 8);
                    assertThatThrownBy(service::retried).isInstanceOf(RateLimitExceededException.class);
                    assertThat(service.calls()).hasValue(2);
                });
    }

    @Test
    void refusedCallIsNoFailureForTheCircuitBreakerOfResilience4j() {
        runner.run(context -> {
            Service service = context.getBean(Service.class);
            service.broken();
            assertThatThrownBy(service::broken).isInstanceOf(RateLimitExceededException.class);
            CircuitBreakerRegistry breakers = context.getBean(CircuitBreakerRegistry.class);
            assertThat(breakers.circuitBreaker("remote").getMetrics().getNumberOfBufferedCalls())
                    .isEqualTo(1);
        });
    }

    @Test
    void callThatIsNotAllowedCostsNoPermit() {
        run((service, limits) -> {
            SecurityContextHolder.getContext().setAuthentication(new TestingAuthenticationToken("ada", "", "USER"));
            assertThatThrownBy(service::allowed).isInstanceOf(AccessDeniedException.class);
            assertThat(limits.peek("allowed", null).remaining()).isEqualTo(1);
            SecurityContextHolder.getContext().setAuthentication(new TestingAuthenticationToken("ada", "", "ADMIN"));
            service.allowed();
            assertThat(limits.peek("allowed", null).remaining()).isZero();
        });
    }

    @Test
    void callWithInvalidArgumentsCostsNoPermitAndBeginsNoTransaction() {
        runner.run(context -> {
            Service service = context.getBean(Service.class);
            RateLimits limits = context.getBean(RateLimits.class);
            assertThatThrownBy(() -> service.validated(" ")).isInstanceOf(ConstraintViolationException.class);
            assertThat(limits.peek("validated", null).remaining()).isEqualTo(1);
            assertThat(context.getBean(AspectOrderTest.Transactions.class).begun)
                    .hasValue(0);
            service.validated("Ada");
            assertThatThrownBy(() -> service.validated("Ada")).isInstanceOf(RateLimitExceededException.class);
        });
    }

    @Test
    void argumentsAreValidatedBeforeAllElse() {
        run((service, limits) -> {
            SecurityContextHolder.getContext().setAuthentication(new TestingAuthenticationToken("ada", "", "USER"));
            assertThatThrownBy(() -> service.guarded(" ")).isInstanceOf(ConstraintViolationException.class);
            assertThatThrownBy(() -> service.guarded("Ada")).isInstanceOf(AccessDeniedException.class);
            assertThat(service.calls()).hasValue(0);
        });
    }

    @Test
    void invalidCallIsNeitherRetriedNorHandedToAnExecutor() {
        runner.withUserConfiguration(Resilient.class).run(context -> {
            Service service = context.getBean(Service.class);
            assertThatThrownBy(() -> service.retriedLater(" ")).isInstanceOf(ConstraintViolationException.class);
            assertThat(context.getBean(RateLimits.class).peek("later", null).remaining())
                    .isEqualTo(10);
        });
    }

    /** As where an application validates without Spring Boot. */
    @Test
    void argumentsAreValidatedFirstByAProcessorOfTheApplicationToo() {
        runner.withUserConfiguration(OwnValidation.class).run(context -> {
            Service service = context.getBean(Service.class);
            assertThatThrownBy(() -> service.validated(" ")).isInstanceOf(MethodValidationException.class);
            assertThat(context.getBean(RateLimits.class).peek("validated", null).remaining())
                    .isEqualTo(1);
        });
    }

    @Test
    void orderOfItsOwnLeavesAuthorizationBeforeValidation() {
        runner.withPropertyValues("rate-limit.aspect.order=" + (RateLimitAdvisor.DEFAULT_ORDER - 1))
                .run(context -> {
                    Service service = context.getBean(Service.class);
                    SecurityContextHolder.getContext()
                            .setAuthentication(new TestingAuthenticationToken("ada", "", "USER"));
                    assertThatThrownBy(() -> service.guarded(" ")).isInstanceOf(AccessDeniedException.class);
                });
    }

    @Test
    void limitOfAnOrderOfItsOwnIsAskedBeforeArgumentsAreValidated() {
        runner.withPropertyValues("rate-limit.aspect.order=100").run(context -> {
            Service service = context.getBean(Service.class);
            assertThatThrownBy(() -> service.validated(" ")).isInstanceOf(ConstraintViolationException.class);
            assertThatThrownBy(() -> service.validated(" ")).isInstanceOf(RateLimitExceededException.class);
        });
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAsync
    @EnableResilientMethods
    static class Resilient {}

    @Configuration(proxyBeanMethods = false)
    static class OwnValidation {
        @Bean
        static MethodValidationPostProcessor ownValidation() {
            MethodValidationPostProcessor processor = new MethodValidationPostProcessor();
            processor.setAdaptConstraintViolations(true);
            return processor;
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableMethodSecurity
    @EnableTransactionManagement
    static class Application {
        @Bean
        AspectOrderTest.Transactions transactionManager() {
            return new AspectOrderTest.Transactions();
        }
    }

    @Validated
    static class Service {

        private final AtomicInteger calls = new AtomicInteger();

        /** Read through the proxy. */
        public AtomicInteger calls() {
            return calls;
        }

        @Retry(name = "remote")
        @RateLimited(name = "retried", rate = "10/h")
        public void retried() {
            calls.incrementAndGet();
            throw new IllegalStateException("again");
        }

        @CircuitBreaker(name = "remote")
        @RateLimited(rate = "1/h")
        public void broken() {}

        @PreAuthorize("hasAuthority('ADMIN')")
        @RateLimited(name = "allowed", rate = "1/h")
        public void allowed() {}

        @PreAuthorize("hasAuthority('ADMIN')")
        @RateLimited(rate = "1/h")
        public void guarded(@NotBlank String name) {
            calls.incrementAndGet();
        }

        @Async
        @Retryable(maxRetries = 2, delay = 0)
        @RateLimited(name = "later", rate = "10/h")
        public CompletableFuture<String> retriedLater(@NotBlank String name) {
            return CompletableFuture.completedFuture(name);
        }

        @Transactional
        @RateLimited(name = "validated", rate = "1/h")
        public void validated(@NotBlank String name) {}
    }
}
