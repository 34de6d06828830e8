package io.ratelimited.spring.web;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.autoconfigure.DisabledRateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.servlet.ServletRateLimitAutoConfiguration;
import io.ratelimited.spring.limit.RequestThreads;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.function.BooleanSupplier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Mono;

/** Callers who wait often to take the threads that serve requests, and those who leave while they wait. */
@ExtendWith(OutputCaptureExtension.class)
class ThreadsAttacksTest {

    private static final AutoConfigurations OURS = AutoConfigurations.of(
            DisabledRateLimitAutoConfiguration.class,
            RateLimitAutoConfiguration.class,
            ServletRateLimitAutoConfiguration.class,
            AopAutoConfiguration.class);

    private final WebApplicationContextRunner servlet = new WebApplicationContextRunner()
            .withConfiguration(OURS)
            .withPropertyValues("rate-limit.limits.slow.rate=1/m", "rate-limit.limits.slow.policy=wait");

    private void assertMaxWaiting(int expected, String... properties) {
        servlet.withPropertyValues(properties)
                .run(context -> assertThat(context.getBean(RateLimits.class)
                                .get("slow")
                                .limit()
                                .maxWaiting())
                        .isEqualTo(expected));
    }

    @ParameterizedTest
    @CsvSource({
        "100, none=1",
        "25, server.tomcat.threads.max=50",
        "15, server.jetty.threads.max=30",
        "1, server.tomcat.threads.max=1",
        "100, server.tomcat.threads.max=0",
        "1000, server.tomcat.threads.max=5000",
        "150, rate-limit.limits.slow.max-waiting=150",
        "7, rate-limit.defaults.max-waiting=7"
    })
    void callsThatSleepLeaveHalfOfTheThreadsUnlessAPropertySaysOtherwise(int expected, String property) {
        assertMaxWaiting(expected, property);
    }

    @Test
    @EnabledForJreRange(min = JRE.JAVA_21)
    void virtualThreadsAreEnoughForAll() {
        assertMaxWaiting(1000, "spring.threads.virtual.enabled=true");
    }

    @Test
    void anApplicationWithoutRequestsHasNoThreadsToLeaveFree() {
        new ApplicationContextRunner()
                .withConfiguration(OURS)
                .withPropertyValues("rate-limit.limits.slow.rate=1/m")
                .run(context -> assertThat(context.getBean(RateLimits.class)
                                .get("slow")
                                .limit()
                                .maxWaiting())
                        .isEqualTo(1000));
    }

    static class Sleeping {

        @RateLimited(name = "sleeping", rate = "1/m", policy = Policy.WAIT)
        public void call() {}
    }

    static class WithoutThread {

        @RateLimited(name = "future", rate = "1/m", policy = Policy.WAIT)
        public CompletableFuture<String> call() {
            return CompletableFuture.completedFuture("done");
        }
    }

    @Test
    void aLimitThatMayTakeMoreThanHalfOfTheThreadsIsReported(CapturedOutput output) {
        servlet.withBean(Sleeping.class)
                .withPropertyValues("rate-limit.limits.slow.max-waiting=101")
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(output)
                .containsOnlyOnce(
                        "Calls that wait can take the threads of all requests: max-waiting of slow lets more than half"
                                + " of the 200 threads sleep. Lower it to 100, return a CompletableFuture or a reactive type from the"
                                + " methods, or use virtual threads (spring.threads.virtual.enabled).");
    }

    @Test
    void limitsThatLeaveEnoughThreadsAreNot(CapturedOutput output) {
        servlet.withBean(WithoutThread.class)
                .withBean(Sleeping.class)
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(output).doesNotContain("Calls that wait can take");
    }

    @Test
    void aCallThatNoThreadMaySleepForIsRefusedAndGivesItsPermitsBack() {
        servlet.withPropertyValues("server.tomcat.threads.max=2", "rate-limit.limits.slow.max-wait=10m")
                .run(context -> {
                    RateLimits limits = context.getBean(RateLimits.class);
                    assertThat(limits.execute("slow", null, () -> "first")).isEqualTo("first");
                    RequestThreads threads = context.getBean(RequestThreads.class);
                    assertThat(threads.tryEnter(0)).isTrue();
                    for (int i = 0; i < 3; i++) {
                        assertThatThrownBy(() -> limits.execute("slow", null, () -> "second"))
                                .isInstanceOf(RateLimitExceededException.class);
                    }
                    assertThat(limits.get("slow")
                                    .limiter()
                                    .peek(null, 1, Long.MAX_VALUE)
                                    .waitTime())
                            .isLessThanOrEqualTo(Duration.ofMinutes(1));
                });
    }

    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "JETTY"})
    void callersThatWaitLeaveThreadsForOthers(RunningServer.Kind kind) {
        try (RunningServer server =
                kind.start(List.of(App.class), "server.tomcat.threads.max=16", "server.jetty.threads.max=16")) {
            List<CompletableFuture<HttpResponse<String>>> one = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                one.add(server.getAsync("/slow?user=attacker"));
            }
            // One goes, half of the eight seats are taken, and the rest is refused.
            until(() -> one.stream().filter(CompletableFuture::isDone).count() == 16);
            assertThat(server.ticker().sleeping()).isEqualTo(4);
            assertThat(server.get("/free").statusCode()).isEqualTo(200);

            List<CompletableFuture<HttpResponse<String>>> many = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                many.add(server.getAsync("/slow?user=other" + i % 4));
            }
            until(() -> many.stream().filter(CompletableFuture::isDone).count() == 16);
            assertThat(server.ticker().sleeping()).isEqualTo(8);
            assertThat(server.get("/free").statusCode()).isEqualTo(200);

            server.ticker().advance(Duration.ofHours(1));
            one.forEach(CompletableFuture::join);
            many.forEach(CompletableFuture::join);
            assertThat(waiting(server)).isZero();
        }
    }

    @Test
    void aClientOfNettyThatLeavesWhileItWaitsGivesSeatAndPermitBack() throws Exception {
        try (RunningServer server = RunningServer.Kind.REACTOR_NETTY.start(List.of(ReactiveApi.class))) {
            RateLimits limits = server.context.getBean(RateLimits.class);
            assertThat(server.get("/slow").statusCode()).isEqualTo(200);
            Duration before = limits.peek("slow", null).retryAfter();
            try (Socket socket = server.connect()) {
                socket.getOutputStream()
                        .write("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
                until(() -> waiting(server) == 1);
                assertThat(limits.peek("slow", null).retryAfter()).isNotEqualTo(before);
            }
            until(() -> waiting(server) == 0);
            until(() -> server.ticker().sleeping() == 0);
            until(() -> before.equals(limits.peek("slow", null).retryAfter()));
        }
    }

    private static int waiting(RunningServer server) {
        return server.context.getBean(RateLimits.class).get("slow").limiter().waiting();
    }

    private static void until(BooleanSupplier condition) {
        while (!condition.getAsBoolean()) {
            Thread.onSpinWait();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Api.class)
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    @RestController
    static class Api {

        @GetMapping("/slow")
        @RateLimited(name = "slow", rate = "1/m", key = "#user", policy = Policy.WAIT, maxWait = "1h")
        String slow(String user) {
            return "slow";
        }

        @GetMapping("/free")
        String free() {
            return "free";
        }
    }

    @RestController
    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    static class ReactiveApi {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @GetMapping("/slow")
        @RateLimited(name = "slow", rate = "1/m", policy = Policy.WAIT, maxWait = "1h")
        Mono<String> slow() {
            return Mono.just("slow");
        }
    }
}
