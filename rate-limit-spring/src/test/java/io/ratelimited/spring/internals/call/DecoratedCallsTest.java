package io.ratelimited.spring.internals.call;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Policy;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.RateLimited;
import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.slf4j.LoggerFactory;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.core.task.TaskDecorator;
import org.springframework.core.task.support.CompositeTaskDecorator;
import org.springframework.scheduling.concurrent.ThreadPoolTaskExecutor;

/** Calls that go on on an executor that decorates its tasks itself, as that of Spring Boot does. */
class DecoratedCallsTest {

    private static final ThreadLocal<String> TENANT = new ThreadLocal<>();

    private final ManualTicker ticker = new ManualTicker();

    @AfterEach
    void clear() {
        TENANT.remove();
    }

    @Test
    void theDecoratorOfTheExecutorFindsTheContextOfTheCaller() {
        ContextRunner.limited(ticker)
                .withUserConfiguration(Application.class)
                .withBean(Reports.class)
                .run(context -> {
                    TENANT.set("ann");
                    Reports reports = context.getBean(Reports.class);
                    reports.create();
                    CompletableFuture<String> waiting = reports.create();
                    ticker.advance(Duration.ofHours(1));
                    assertThat(waiting.get(1, TimeUnit.MINUTES)).isEqualTo("of ann");
                });
    }

    /** By Spring's composite of them, in their order: the last one is the outermost. */
    @Test
    void decoratorsEncloseEachOtherAsInAnExecutorOfSpringBoot() {
        List<String> entered = new CopyOnWriteArrayList<>();
        TaskDecorator first = noting("first", entered);
        TaskDecorator second = noting("second", entered);
        new CompositeTaskDecorator(List.of(first, second)).decorate(() -> {}).run();
        List<String> ofSpring = List.copyOf(entered);
        entered.clear();
        ContextRunner.limited(ticker)
                .withBean("first", TaskDecorator.class, () -> first)
                .withBean("second", TaskDecorator.class, () -> second)
                .withBean(Reports.class)
                .run(context -> {
                    Reports reports = context.getBean(Reports.class);
                    reports.create();
                    CompletableFuture<String> waiting = reports.create();
                    ticker.advance(Duration.ofHours(1));
                    waiting.get(1, TimeUnit.MINUTES);
                    assertThat(entered).startsWith(ofSpring.toArray(String[]::new));
                });
    }

    private static TaskDecorator noting(String name, List<String> entered) {
        return task -> () -> {
            entered.add(name);
            task.run();
        };
    }

    @Test
    void aCallThatTheExecutorRejectsFailsThoughADecoratorKeepsFailuresToItself() {
        ContextRunner.limited(ticker)
                .withBean("applicationTaskExecutor", Executor.class, () -> task -> {
                    throw new RejectedExecutionException("full");
                })
                .withBean(
                        TaskDecorator.class,
                        () -> task -> () -> {
                            try {
                                task.run();
                            } catch (RuntimeException ex) {
                                LoggerFactory.getLogger(DecoratedCallsTest.class)
                                        .info("kept", ex);
                            }
                        })
                .withBean(Reports.class)
                .run(context -> {
                    Reports reports = context.getBean(Reports.class);
                    reports.create();
                    CompletableFuture<String> waiting = reports.create();
                    ticker.advance(Duration.ofHours(1));
                    assertThatThrownBy(() -> waiting.get(1, TimeUnit.MINUTES))
                            .hasCauseInstanceOf(RejectedExecutionException.class);
                });
    }

    @Configuration(proxyBeanMethods = false)
    static class Application {

        /** Fails on threads that know no tenant. */
        @Bean
        TaskDecorator tenants() {
            return task -> {
                String tenant = Objects.requireNonNull(TENANT.get(), "no tenant");
                return () -> {
                    TENANT.set(tenant);
                    try {
                        task.run();
                    } finally {
                        TENANT.remove();
                    }
                };
            };
        }

        @Bean
        ThreadPoolTaskExecutor applicationTaskExecutor(TaskDecorator decorator) {
            ThreadPoolTaskExecutor executor = new ThreadPoolTaskExecutor();
            executor.setTaskDecorator(decorator);
            executor.setDaemon(true);
            return executor;
        }
    }

    static class Reports {

        @RateLimited(rate = "1/h", policy = Policy.WAIT, maxWait = "2h")
        public CompletableFuture<String> create() {
            return CompletableFuture.completedFuture("of " + TENANT.get());
        }
    }
}
