package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.RateLimiterClosedException;
import io.ratelimited.core.Threads;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import jakarta.jms.ConnectionFactory;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.reflect.Method;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.aop.Advisor;
import org.springframework.aop.interceptor.AsyncExecutionInterceptor;
import org.springframework.aop.interceptor.AsyncUncaughtExceptionHandler;
import org.springframework.aop.support.DefaultPointcutAdvisor;
import org.springframework.aop.support.NameMatchMethodPointcut;
import org.springframework.beans.factory.FactoryBean;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.context.SmartLifecycle;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.event.EventListener;
import org.springframework.context.event.SimpleApplicationEventMulticaster;
import org.springframework.jms.annotation.EnableJms;
import org.springframework.jms.annotation.JmsListener;
import org.springframework.jms.config.DefaultJmsListenerContainerFactory;
import org.springframework.jms.connection.CachingConnectionFactory;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.AsyncAnnotationBeanPostProcessor;
import org.springframework.scheduling.annotation.AsyncConfigurer;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;
import org.springframework.scheduling.concurrent.ThreadPoolTaskExecutor;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;
import reactor.core.publisher.Mono;

/**
 * A refused call that Spring makes itself, of a schedule, a listener or an asynchronous method, throws as any other does,
 * so that whoever made the call can handle it: by an error handler, or by delivering the message again.
 */
@ExtendWith(CapturedLog.Capture.class)
@Tag("slow")
final class SpringsOwnCallsTest {

    private final ManualTicker ticker = new ManualTicker();
    private final ContextRunner runner = ContextRunner.limited(ticker);

    @Test
    void refusedRunsOfAScheduleReachTheErrorHandlerOfTheScheduler() {
        runner.withUserConfiguration(Scheduling.class).withBean(Job.class).run(context -> {
            List<Throwable> errors = context.getBean(Scheduling.class).errors;
            Threads.until(() -> errors.size() >= 2);
            assertThat(errors)
                    .allSatisfy(error -> assertThat(error)
                            .isInstanceOf(RateLimitExceededException.class)
                            .satisfies(refusal ->
                                    assertThat(refusal.getStackTrace()).isEmpty()));
            assertThat(context.getBean(Job.class).runs()).isEqualTo(1);
        });
    }

    @Test
    void anInvalidLimitOfAReactiveScheduleStopsTheStartWithItsCause() {
        runner.withUserConfiguration(Scheduling.class)
                .withBean(ReactiveJob.class)
                .run(context -> assertThat(context.getStartupFailure())
                        .isInstanceOf(InvalidRateLimitException.class)
                        .hasMessageContaining("ReactiveJob.run")
                        .hasMessageContaining("fast"));
    }

    @Test
    void refusedCallsOfAsynchronousMethodsReachTheirExceptionHandler() {
        runner.withUserConfiguration(Asynchronous.class).withBean(Mails.class).run(context -> {
            for (int i = 0; i < 3; i++) {
                context.getBean(Mails.class).send();
            }
            List<Throwable> errors = context.getBean(Asynchronous.class).errors;
            Threads.until(() -> errors.size() == 2);
            assertThat(errors).hasOnlyElementsOfType(RateLimitExceededException.class);
        });
    }

    /** Spring's task waits for the future: another task of the executor might never get a thread. */
    @Test
    void asynchronousMethodWaitsOnTheThreadThatSpringHasGivenIt() throws InterruptedException {
        runner.withUserConfiguration(OneThread.class, OneThreadBySpring.class)
                .withBean(Letters.class)
                .run(context -> {
                    Letters letters = context.getBean(Letters.class);
                    assertThat(letters.send("first").join()).isEqualTo("first");
                    CompletableFuture<String> second = letters.send("second");
                    ticker.awaitSleeping(1);
                    Threads.until(() -> letters.thread().getState() == Thread.State.WAITING);
                    ticker.advance(Duration.ofMinutes(1));
                    Threads.until(second::isDone);
                    assertThat(second).isCompletedWithValue("second");
                    CompletableFuture<String> rejected = letters.reject("third");
                    Threads.until(rejected::isDone);
                    assertThat(rejected).isCompletedWithValue("no third");
                });
    }

    /** The thread of the executor waits itself, so that no other event is handled before its wait ends. */
    @Test
    void waitsEndBeforeAllElseStopsWhereAnExecutorHandlesEvents() {
        runner.withUserConfiguration(OneThread.class, OneThreadBySpring.class, EventsByExecutor.class)
                .withBean(Letters.class)
                .withBean(FirstToStop.class)
                .run(context -> {
                    Letters letters = context.getBean(Letters.class);
                    FirstToStop first = context.getBean(FirstToStop.class);
                    assertThat(letters.send("first").join()).isEqualTo("first");
                    first.awaited = letters.send("second");
                    ticker.awaitSleeping(1);
                    context.close();
                    assertThat(first.hasEnded).isTrue();
                    assertThat(first.awaited)
                            .failsWithin(Duration.ZERO)
                            .withThrowableThat()
                            .withCauseInstanceOf(RateLimiterClosedException.class);
                });
    }

    /** Whatever tells Spring to make the call on an executor. */
    @ParameterizedTest
    @ValueSource(classes = {OneThreadByAnnotation.class, OneThreadByProcessor.class, OneThreadByAdvice.class})
    void methodThatIsAsynchronousByOtherMeansWaitsOnItsThreadToo(Class<?> application) {
        runner.withUserConfiguration(OneThread.class, application)
                .withBean(Postcards.class)
                .run(context -> {
                    Postcards postcards = context.getBean(Postcards.class);
                    assertThat(postcards.send("first").join()).isEqualTo("first");
                    CompletableFuture<String> second = postcards.send("second");
                    ticker.awaitSleeping(1);
                    Threads.until(() -> postcards.thread().getState() == Thread.State.WAITING);
                    ticker.advance(Duration.ofMinutes(1));
                    Threads.until(second::isDone);
                    assertThat(second).isCompletedWithValue("second");
                });
    }

    @Test
    void limitOfTheClassOfAFactoryBeanDoesNotCountWhatTheContainerAsks() {
        runner.withBean(Labels.class).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(context.getBean(CharSequence.class)).hasToString("label");
            Labels labels = context.getBean(Labels.class);
            labels.print();
            assertThatThrownBy(labels::print).isInstanceOf(RateLimitExceededException.class);
        });
    }

    /** Not even the ticker that the limit needs, which it could not have while the limit is asked about it. */
    @Test
    void limitOfAClassDoesNotCountTheBeansThatTheContainerMakesByIt(CapturedLog output) {
        ContextRunner.limited().withUserConfiguration(Wiring.class).run(context -> {
            assertThat(context).hasNotFailed();
            assertThat(context).hasBean("first").hasBean("second");
            Wiring wiring = context.getBean(Wiring.class);
            wiring.print();
            assertThatThrownBy(wiring::print).isInstanceOf(RateLimitExceededException.class);
            assertThat(output).doesNotContain("limits public methods only");
        });
    }

    @Test
    void refusalOfAnEventListenerReachesThePublisher() {
        runner.withBean(Listener.class).run(context -> {
            context.publishEvent("first");
            assertThatThrownBy(() -> context.publishEvent("second")).isInstanceOf(RateLimitExceededException.class);
            assertThat(context.getBean(Listener.class).events()).isEqualTo(1);
        });
    }

    @Test
    void refusalOfAListenerOrAScheduleWhoseResultComesLaterIsLogged(CapturedLog output) {
        runner.withUserConfiguration(Scheduling.class)
                .withBean(LaterResults.class)
                .run(context -> {
                    context.publishEvent("first");
                    context.publishEvent("second");
                    for (String method : List.of("future", "mono", "run")) {
                        Threads.until(() -> output.toString().contains("'LaterResults." + method + "' exceeded"));
                    }
                    assertThat(context.getBean(Scheduling.class).errors).isEmpty();
                });
    }

    @Test
    void messageWhoseListenerIsRefusedComesAgain() {
        AtomicInteger refused = new AtomicInteger();
        runner.withUserConfiguration(Messages.class)
                .withBean(MessageListener.class)
                .withBean(DecisionObserver.class, () -> decision -> {
                    if (decision.outcome() == Outcome.REJECTED && refused.incrementAndGet() % 2 == 0) {
                        ticker.advance(Duration.ofDays(1));
                    }
                })
                .run(context -> {
                    JmsTemplate jms = new JmsTemplate(context.getBean(ConnectionFactory.class));
                    for (int i = 1; i <= 3; i++) {
                        jms.convertAndSend("orders", "order " + i);
                    }
                    MessageListener listener = context.getBean(MessageListener.class);
                    Threads.until(() -> listener.handled().size() == 3);
                    assertThat(listener.handled()).containsExactlyInAnyOrder("order 1", "order 2", "order 3");
                    assertThat(refused).hasValueGreaterThanOrEqualTo(4);
                });
    }

    @Configuration
    @RateLimited(rate = "1/h")
    static class Wiring {

        @Bean
        public Ticker ticker() {
            return new ManualTicker();
        }

        @Bean
        public StringBuilder first() {
            return new StringBuilder();
        }

        @Bean
        StringBuilder second() {
            return first();
        }

        public void print() {}
    }

    @RateLimited(rate = "1/h")
    static class Labels implements FactoryBean<CharSequence> {

        @Override
        public CharSequence getObject() {
            return "label";
        }

        @Override
        public Class<?> getObjectType() {
            return CharSequence.class;
        }

        public void print() {}
    }

    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    static class Scheduling {

        private final List<Throwable> errors = new CopyOnWriteArrayList<>();

        @Bean
        ThreadPoolTaskScheduler taskScheduler() {
            ThreadPoolTaskScheduler scheduler = new ThreadPoolTaskScheduler();
            scheduler.setErrorHandler(errors::add);
            return scheduler;
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAsync
    static class Asynchronous implements AsyncConfigurer, AsyncUncaughtExceptionHandler {

        private final List<Throwable> errors = new CopyOnWriteArrayList<>();

        @Override
        public AsyncUncaughtExceptionHandler getAsyncUncaughtExceptionHandler() {
            return this;
        }

        @Override
        public void handleUncaughtException(Throwable error, Method method, Object... args) {
            errors.add(error);
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OneThread {

        @Bean
        ThreadPoolTaskExecutor applicationTaskExecutor() {
            ThreadPoolTaskExecutor executor = new ThreadPoolTaskExecutor();
            executor.setMaxPoolSize(1);
            executor.setDaemon(true);
            return executor;
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAsync
    static class OneThreadBySpring {}

    @Configuration(proxyBeanMethods = false)
    static class EventsByExecutor {

        @Bean
        SimpleApplicationEventMulticaster applicationEventMulticaster(ThreadPoolTaskExecutor executor) {
            SimpleApplicationEventMulticaster multicaster = new SimpleApplicationEventMulticaster();
            multicaster.setTaskExecutor(executor);
            return multicaster;
        }
    }

    /** As a web server, which waits for requests. */
    static class FirstToStop implements SmartLifecycle {

        private volatile CompletableFuture<String> awaited = new CompletableFuture<>();
        private volatile boolean hasEnded;
        private volatile boolean isRunning;

        @Override
        public void start() {
            isRunning = true;
        }

        @Override
        public void stop() {
            Threads.until(awaited::isDone);
            hasEnded = true;
            isRunning = false;
        }

        @Override
        public boolean isRunning() {
            return isRunning;
        }

        @Override
        public int getPhase() {
            return Integer.MAX_VALUE;
        }
    }

    @Retention(RetentionPolicy.RUNTIME)
    @interface Background {}

    @Configuration(proxyBeanMethods = false)
    @EnableAsync(annotation = Background.class)
    static class OneThreadByAnnotation {}

    /** As an application does without {@code @EnableAsync}. */
    @Configuration(proxyBeanMethods = false)
    static class OneThreadByProcessor {

        @Bean
        static AsyncAnnotationBeanPostProcessor asynchronous() {
            AsyncAnnotationBeanPostProcessor processor = new AsyncAnnotationBeanPostProcessor();
            processor.setAsyncAnnotationType(Background.class);
            processor.setProxyTargetClass(true);
            return processor;
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class OneThreadByAdvice {

        @Bean
        static Advisor asynchronous(ObjectProvider<ThreadPoolTaskExecutor> executor) {
            NameMatchMethodPointcut pointcut = new NameMatchMethodPointcut();
            pointcut.setClassFilter(Postcards.class::equals);
            pointcut.addMethodName("send");
            DefaultPointcutAdvisor advisor = new DefaultPointcutAdvisor(
                    pointcut,
                    new AsyncExecutionInterceptor(task -> executor.getObject().execute(task)));
            advisor.setOrder(0);
            return advisor;
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableJms
    static class Messages {

        @Bean
        CachingConnectionFactory connectionFactory() {
            return new CachingConnectionFactory(
                    new ActiveMQConnectionFactory("vm://refused-messages?broker.persistent=false&broker.useJmx=false"
                            + "&jms.redeliveryPolicy.initialRedeliveryDelay=1&jms.redeliveryPolicy.redeliveryDelay=1"));
        }

        @Bean
        DefaultJmsListenerContainerFactory jmsListenerContainerFactory(ConnectionFactory connections) {
            DefaultJmsListenerContainerFactory factory = new DefaultJmsListenerContainerFactory();
            factory.setConnectionFactory(connections);
            factory.setSessionTransacted(true);
            return factory;
        }
    }

    static class Job {

        private final AtomicInteger runs = new AtomicInteger();

        public int runs() {
            return runs.get();
        }

        @Scheduled(fixedDelay = 1)
        @RateLimited(rate = "1/d")
        public void run() {
            runs.incrementAndGet();
        }
    }

    static class ReactiveJob {

        @Scheduled(fixedDelay = 1)
        @RateLimited(rate = "fast")
        public Mono<Void> run() {
            return Mono.empty();
        }
    }

    static class Mails {

        @Async
        @RateLimited(rate = "1/d")
        public void send() {}
    }

    static class Letters {

        private volatile Thread thread = Thread.currentThread();

        public Thread thread() {
            return thread;
        }

        @Async
        @RateLimited(rate = "1/m", policy = Policy.WAIT, maxWait = "1m")
        public CompletableFuture<String> send(String text) {
            thread = Thread.currentThread();
            return CompletableFuture.completedFuture(text);
        }

        @Async
        @RateLimited(rate = "0/m", fallback = "instead")
        public CompletableFuture<String> reject(String text) {
            return CompletableFuture.completedFuture(text);
        }

        String instead(String text) {
            return "no " + text;
        }
    }

    static class Postcards {

        private volatile Thread thread = Thread.currentThread();

        public Thread thread() {
            return thread;
        }

        @Background
        @RateLimited(rate = "1/m", policy = Policy.WAIT, maxWait = "1m")
        public CompletableFuture<String> send(String text) {
            thread = Thread.currentThread();
            return CompletableFuture.completedFuture(text);
        }
    }

    static class Listener {

        private final AtomicInteger events = new AtomicInteger();

        public int events() {
            return events.get();
        }

        @EventListener
        @RateLimited(rate = "1/d")
        public void on(String event) {
            events.incrementAndGet();
        }
    }

    static class LaterResults {

        @EventListener
        @RateLimited(rate = "1/d")
        public CompletableFuture<Void> future(String event) {
            return CompletableFuture.completedFuture(null);
        }

        @EventListener
        @RateLimited(rate = "1/d")
        public Mono<Void> mono(String event) {
            return Mono.empty();
        }

        @Scheduled(fixedDelay = 1)
        @RateLimited(rate = "1/d")
        public Mono<Void> run() {
            return Mono.empty();
        }
    }

    static class MessageListener {

        private final List<String> handled = new CopyOnWriteArrayList<>();

        public List<String> handled() {
            return handled;
        }

        @JmsListener(destination = "orders")
        @RateLimited(rate = "1/d")
        public void on(String order) {
            handled.add(order);
        }
    }
}
