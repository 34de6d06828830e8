package io.ratelimited.spring;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicInteger;
import org.awaitility.Awaitility;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.event.EventListener;
import org.springframework.core.annotation.Order;
import org.springframework.scheduling.annotation.Async;
import org.springframework.scheduling.annotation.EnableAsync;
import org.springframework.scheduling.annotation.EnableScheduling;
import org.springframework.scheduling.annotation.Scheduled;
import reactor.core.publisher.Mono;

/** A refused call that Spring makes itself is skipped, with one line in the log; one that a bean makes is thrown. */
@ExtendWith(OutputCaptureExtension.class)
final class UnattendedCallsTest {

    private final ManualTicker ticker = new ManualTicker();
    private final AtomicInteger refused = new AtomicInteger();

    private final ApplicationContextRunner runner = Contexts.runner(ticker)
            .withBean(DecisionObserver.class, () -> (limit, outcome, key, waited, decision) -> {
                if (outcome == Outcome.REJECTED) {
                    refused.incrementAndGet();
                }
            });

    @Test
    void refusedRunsOfAScheduleAreSkipped(CapturedOutput output) {
        runner.withUserConfiguration(Scheduling.class).withBean(Job.class).run(context -> {
            awaitRefusals(3);
            assertThat(context.getBean(Job.class).runs()).isEqualTo(1);
            assertThat(output)
                    .containsOnlyOnce("Rate limit 'Job.run': 1 call of UnattendedCallsTest.Job.run skipped")
                    .doesNotContain("Unexpected error");
            ticker.advance(Duration.ofMinutes(1));
            Awaitility.await().until(() -> output.getOut().contains(" calls of UnattendedCallsTest.Job.run skipped"));
            assertThatThrownBy(() -> context.getBean(Job.class).run()).isInstanceOf(RateLimitExceededException.class);
        });
    }

    @Test
    void refusedRunsOfAReactiveScheduleAreSkipped(CapturedOutput output) {
        runner.withUserConfiguration(Scheduling.class)
                .withBean(ReactiveJob.class)
                .run(context -> {
                    awaitRefusals(3);
                    ReactiveJob job = context.getBean(ReactiveJob.class);
                    assertThat(job.runs()).isEqualTo(1);
                    assertThat(output)
                            .containsOnlyOnce(
                                    "Rate limit 'ReactiveJob.run': 1 call of UnattendedCallsTest.ReactiveJob.run skipped")
                            .doesNotContain("Unexpected error");
                    Mono<Void> call = job.run();
                    assertThatThrownBy(call::block).isInstanceOf(RateLimitExceededException.class);
                });
    }

    @Test
    void refusedEventsOfListenersWithALaterResultAreSkipped(CapturedOutput output) {
        runner.withBean(LaterListener.class).run(context -> {
            for (int i = 0; i < 3; i++) {
                context.publishEvent("event");
            }
            assertThat(refused).hasValue(4);
            assertThat(output)
                    .containsOnlyOnce("1 call of UnattendedCallsTest.LaterListener.mono skipped")
                    .containsOnlyOnce("1 call of UnattendedCallsTest.LaterListener.future skipped")
                    .doesNotContain("Unexpected error");
            LaterListener listener = context.getBean(LaterListener.class);
            assertThatThrownBy(listener.mono("called")::block).isInstanceOf(RateLimitExceededException.class);
            assertThat(listener.future("called")).isCompletedExceptionally();
        });
    }

    @Test
    void asynchronousListenerThatIsCalledByABeanFails() {
        runner.withUserConfiguration(Asynchronous.class)
                .withBean(AsynchronousListener.class)
                .run(context -> {
                    AsynchronousListener listener = context.getBean(AsynchronousListener.class);
                    listener.on("called").join();
                    assertThatThrownBy(listener.on("called")::join)
                            .hasCauseInstanceOf(RateLimitExceededException.class);
                });
    }

    @Test
    void refusedCallsOfAsynchronousMethodsWithoutAResultAreSkipped(CapturedOutput output) {
        runner.withUserConfiguration(Asynchronous.class).withBean(Mails.class).run(context -> {
            for (int i = 0; i < 4; i++) {
                context.getBean(Mails.class).send();
            }
            awaitRefusals(3);
            Awaitility.await().until(() -> output.getOut().contains("skipped"));
            assertThat(output)
                    .containsOnlyOnce("Rate limit 'Mails.send': 1 call of UnattendedCallsTest.Mails.send skipped")
                    .doesNotContain("Unexpected exception");
        });
    }

    @Test
    void refusedEventsAreSkippedByTheirListenerAndReachTheOthers(CapturedOutput output) {
        runner.withBean(Listener.class).withBean(OtherListener.class).run(context -> {
            for (int i = 0; i < 3; i++) {
                context.publishEvent("event");
            }
            assertThat(context.getBean(OtherListener.class).events()).isEqualTo(3);
            assertThat(refused).hasValue(2);
            assertThat(output)
                    .containsOnlyOnce("Rate limit 'Listener.on': 1 call of UnattendedCallsTest.Listener.on skipped");
            Listener listener = context.getBean(Listener.class);
            assertThatThrownBy(() -> listener.on("called")).isInstanceOf(RateLimitExceededException.class);
        });
    }

    @Test
    void asynchronousMethodThatIsCalledAsAnyOtherThrows() {
        runner.withBean(Mails.class).run(context -> {
            Mails mails = context.getBean(Mails.class);
            mails.send();
            assertThatThrownBy(mails::send).isInstanceOf(RateLimitExceededException.class);
        });
    }

    private void awaitRefusals(int least) {
        Awaitility.await().until(() -> refused.get() >= least);
    }

    @Configuration(proxyBeanMethods = false)
    @EnableScheduling
    static class Scheduling {}

    @Configuration(proxyBeanMethods = false)
    @EnableAsync
    static class Asynchronous {}

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

    static class Mails {

        @Async
        @RateLimited(rate = "1/d")
        public void send() {}
    }

    static class Listener {

        @EventListener
        @Order(1)
        @RateLimited(rate = "1/d")
        public void on(String event) {}
    }

    static class ReactiveJob {

        private final AtomicInteger runs = new AtomicInteger();

        public int runs() {
            return runs.get();
        }

        @Scheduled(fixedDelay = 1)
        @RateLimited(rate = "1/d")
        public Mono<Void> run() {
            return Mono.fromRunnable(runs::incrementAndGet);
        }
    }

    static class LaterListener {

        @EventListener
        @RateLimited(rate = "1/d")
        public Mono<Void> mono(String event) {
            return Mono.empty();
        }

        @EventListener
        @RateLimited(rate = "1/d")
        public CompletableFuture<Void> future(String event) {
            return CompletableFuture.completedFuture(null);
        }
    }

    static class AsynchronousListener {

        @Async
        @EventListener
        @RateLimited(rate = "1/d")
        public CompletableFuture<Void> on(String event) {
            return CompletableFuture.completedFuture(null);
        }
    }

    static class OtherListener {

        private final AtomicInteger events = new AtomicInteger();

        public int events() {
            return events.get();
        }

        @EventListener
        @Order(2)
        public void on(String event) {
            events.incrementAndGet();
        }
    }
}
