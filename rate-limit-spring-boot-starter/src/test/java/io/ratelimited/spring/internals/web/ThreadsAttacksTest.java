package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Policy;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Threads;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.autoconfigure.RateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.client.ClientRateLimitAutoConfiguration;
import io.ratelimited.spring.autoconfigure.web.servlet.ServletRateLimitAutoConfiguration;
import io.ratelimited.spring.internals.limit.RequestThreads;
import io.ratelimited.spring.internals.limit.Sleeper;
import jakarta.servlet.Filter;
import jakarta.servlet.ServletContext;
import jakarta.websocket.DeploymentException;
import jakarta.websocket.Endpoint;
import jakarta.websocket.EndpointConfig;
import jakarta.websocket.Session;
import jakarta.websocket.server.ServerContainer;
import jakarta.websocket.server.ServerEndpointConfig;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.beans.factory.ObjectProvider;
import org.springframework.beans.factory.SmartInitializingSingleton;
import org.springframework.boot.autoconfigure.AutoConfigurations;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.aop.AopAutoConfiguration;
import org.springframework.boot.test.context.FilteredClassLoader;
import org.springframework.boot.test.context.runner.ApplicationContextRunner;
import org.springframework.boot.test.context.runner.WebApplicationContextRunner;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestTemplate;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** Callers who wait often to take the threads that serve requests, and those who leave while they wait. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class ThreadsAttacksTest {

    private static final AutoConfigurations OURS = AutoConfigurations.of(
            RateLimitAutoConfiguration.class, ServletRateLimitAutoConfiguration.class, AopAutoConfiguration.class);

    private final WebApplicationContextRunner servlet = new WebApplicationContextRunner()
            .withConfiguration(OURS)
            .withPropertyValues("rate-limit.limits.slow.rate=1/m", "rate-limit.limits.slow.policy=wait");

    private void assertMayTakeAtOnce(int expected, String... properties) {
        servlet.withPropertyValues(properties)
                .run(context ->
                        assertThat(context.getBean(RequestThreads.class).half()).isEqualTo(expected));
    }

    @ParameterizedTest
    @CsvSource({
        "100, none=1",
        "25, server.tomcat.threads.max=50",
        "15, server.jetty.threads.max=30",
        "1, server.tomcat.threads.max=1",
        "100, server.tomcat.threads.max=0",
        "2500, server.tomcat.threads.max=5000"
    })
    void callsThatSleepLeaveHalfOfTheThreads(int expected, String property) {
        assertMayTakeAtOnce(expected, property);
    }

    @ParameterizedTest
    @CsvSource({
        "1000, server.tomcat.threads.max=10",
        "150, rate-limit.limits.slow.max-waiting=150",
        "7, rate-limit.defaults.max-waiting=7"
    })
    void howManyMayWaitDoesNotDependOnTheThreads(int expected, String property) {
        servlet.withPropertyValues(property)
                .run(context -> assertThat(
                                TestLimits.of(context).limit("slow").limit().maxWaiting())
                        .isEqualTo(expected));
    }

    @Test
    @EnabledForJreRange(min = JRE.JAVA_21)
    void virtualThreadsAreEnoughForAll() {
        assertMayTakeAtOnce(Integer.MAX_VALUE, "spring.threads.virtual.enabled=true");
    }

    @Test
    void anApplicationWithoutRequestsHasNoThreadsToLeaveFree() {
        new ApplicationContextRunner()
                .withConfiguration(OURS)
                .withPropertyValues("rate-limit.limits.slow.rate=1/m")
                .run(context -> assertThat(context).doesNotHaveBean(RequestThreads.class));
    }

    /** Workers, listeners and batch jobs, also those that have been handed a request. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void workersOfOtherPoolsWaitAsTheirPolicySays(boolean handedRequest) throws Exception {
        int number = 40;
        ManualTicker ticker = new ManualTicker();
        ExecutorService workers = Executors.newFixedThreadPool(number);
        try {
            servlet.withBean(Ticker.class, () -> ticker)
                    .withPropertyValues(
                            "server.tomcat.threads.max=10",
                            "rate-limit.limits.paced.algorithm=leaky-bucket",
                            "rate-limit.limits.paced.rate=1/s",
                            "rate-limit.limits.paced.burst=1000",
                            "rate-limit.limits.paced.max-wait=1h")
                    .run(context -> {
                        TestLimits limits = TestLimits.of(context);
                        List<Future<String>> calls = new ArrayList<>();
                        for (int i = 0; i < number; i++) {
                            calls.add(workers.submit(() -> {
                                if (handedRequest) {
                                    RequestContextHolder.setRequestAttributes(
                                            new ServletRequestAttributes(new MockHttpServletRequest()));
                                }
                                return limits.execute("paced", null, () -> "done");
                            }));
                        }
                        Threads.until(() -> ticker.sleeping()
                                        + calls.stream().filter(Future::isDone).count()
                                == number);
                        ticker.advance(Duration.ofMinutes(1));
                        for (Future<String> call : calls) {
                            assertThat(call.get()).isEqualTo("done");
                        }
                    });
        } finally {
            workers.shutdownNow();
        }
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
                        "Waiting calls can block the threads of other requests: max-waiting of slow allows more than half"
                                + " of the 200 threads to wait. Lower it to 100, or return a CompletableFuture or a reactive"
                                + " type from the methods. [RL-211]");
    }

    /** Of the classes that Spring has, only those that the application calls others by count. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aLimitOfClientsIsReportedIfTheyBlock(boolean block, CapturedOutput output) {
        WebApplicationContextRunner runner = servlet.withConfiguration(
                        AutoConfigurations.of(ClientRateLimitAutoConfiguration.class))
                .withBean(WebClient.Builder.class, WebClient::builder)
                .withPropertyValues(
                        "rate-limit.limits.slow.max-waiting=101",
                        "rate-limit.clients.partner.hosts=partner",
                        "rate-limit.clients.partner.limits=slow")
                .withClassLoader(new FilteredClassLoader("org.springframework.boot.restclient", "okhttp3"));
        (block ? runner.withBean(RestTemplate.class, RestTemplate::new) : runner)
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(output.getAll().contains("Waiting calls can block the threads of other requests"))
                .isEqualTo(block);
    }

    @Test
    void limitsThatLeaveEnoughThreadsAreNot(CapturedOutput output) {
        servlet.withBean(WithoutThread.class)
                .withBean(Sleeping.class)
                .run(context -> assertThat(context).hasNotFailed());
        assertThat(output).doesNotContain("Waiting calls can block the threads of other requests");
    }

    @Test
    void aCallThatNoThreadMaySleepForIsRefusedAndGivesItsPermitsBack() {
        servlet.withPropertyValues("server.tomcat.threads.max=2", "rate-limit.limits.slow.max-wait=10m")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    assertThat(limits.execute("slow", null, () -> "first")).isEqualTo("first");
                    RequestThreads threads = context.getBean(RequestThreads.class);
                    assertThat(threads.tryEnter(0, new Sleeper(List.of(), List.of())))
                            .isTrue();
                    serving(
                            context.getBean("io.ratelimited.rateLimitFieldsFilter", FilterRegistrationBean.class)
                                    .getFilter(),
                            () -> {
                                for (int i = 0; i < 3; i++) {
                                    assertThatThrownBy(() -> limits.execute("slow", null, () -> "second"))
                                            .isInstanceOf(RateLimitExceededException.class);
                                }
                            });
                    assertThat(limits.configured("slow")
                                    .limiter()
                                    .peek(null, 1, Long.MAX_VALUE)
                                    .waitTime())
                            .isLessThanOrEqualTo(Duration.ofMinutes(1));
                });
    }

    /** An executor that the application gives its server, without the property of Spring Boot. */
    @Test
    @EnabledForJreRange(min = JRE.JAVA_21)
    void virtualThreadsThatServeRequestsWaitAsTheirPolicySays() {
        ManualTicker ticker = new ManualTicker();
        servlet.withBean(Ticker.class, () -> ticker)
                .withPropertyValues("server.tomcat.threads.max=2", "rate-limit.limits.slow.max-wait=10m")
                .run(context -> {
                    TestLimits limits = TestLimits.of(context);
                    limits.execute("slow", null, () -> "first");
                    assertThat(context.getBean(RequestThreads.class).tryEnter(0, new Sleeper(List.of(), List.of())))
                            .isTrue();
                    Filter filter = context.getBean(
                                    "io.ratelimited.rateLimitFieldsFilter", FilterRegistrationBean.class)
                            .getFilter();
                    CompletableFuture<String> call = new CompletableFuture<>();
                    startVirtual(() -> {
                        try {
                            serving(filter, () -> call.complete(limits.execute("slow", null, () -> "second")));
                        } catch (Exception ex) {
                            call.completeExceptionally(ex);
                        }
                    });
                    Threads.until(() -> ticker.sleeping() == 1 || call.isDone());
                    ticker.advance(Duration.ofMinutes(1));
                    assertThat(call.get(20, TimeUnit.SECONDS)).isEqualTo("second");
                });
    }

    /** {@code Thread.startVirtualThread}, which the JDK this is compiled for does not have. */
    private static void startVirtual(Runnable task) throws ReflectiveOperationException {
        Thread.class.getMethod("startVirtualThread", Runnable.class).invoke(null, task);
    }

    /** Runs a task in a thread that serves a request. */
    private static void serving(Filter filter, Runnable task) throws Exception {
        filter.doFilter(new MockHttpServletRequest(), new MockHttpServletResponse(), (request, response) -> task.run());
    }

    @ParameterizedTest
    @EnumSource
    void callersThatWaitLeaveThreadsForOthers(RunningServer.Kind kind) {
        int threads = kind == RunningServer.Kind.REACTOR_NETTY ? Schedulers.DEFAULT_BOUNDED_ELASTIC_SIZE : 16;
        int seats = threads / 2;
        int ofOneCaller = seats - seats / 2;
        int calls = threads + 4;
        try (RunningServer server =
                kind.start(List.of(App.class), "server.tomcat.threads.max=16", "server.jetty.threads.max=16")) {
            List<CompletableFuture<HttpResponse<String>>> one = new ArrayList<>();
            for (int i = 0; i < calls; i++) {
                one.add(server.getAsync("/slow?user=attacker"));
            }
            // One goes, half of the seats are taken, and the rest is refused, maybe before those sleep.
            Threads.until(
                    () -> done(one) == calls - ofOneCaller && server.ticker().sleeping() == ofOneCaller);
            assertThat(server.get("/free").statusCode()).isEqualTo(200);
            assertThat(server.get("/slow?user=victim").statusCode()).isEqualTo(200);

            List<CompletableFuture<HttpResponse<String>>> many = new ArrayList<>();
            for (int i = 0; i < calls; i++) {
                many.add(server.getAsync("/slow?user=other" + i % 4));
            }
            Threads.until(() -> done(many) == calls - (seats - ofOneCaller)
                    && server.ticker().sleeping() == seats);
            assertThat(server.get("/free").statusCode()).isEqualTo(200);

            server.ticker().advance(Duration.ofHours(1));
            one.forEach(CompletableFuture::join);
            many.forEach(CompletableFuture::join);
            assertThat(waiting(server)).isZero();
        }
    }

    /** No filter sees the messages of a WebSocket, and some of the threads that read them have never served a request. */
    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "JETTY"})
    void messagesThatWaitLeaveThreadsForOthers(RunningServer.Kind kind) {
        List<WebSocketRoutesTest.Client> clients = new ArrayList<>();
        try (RunningServer server = kind.start(
                List.of(App.class, Sockets.class),
                "server.tomcat.threads.max=16",
                "server.jetty.threads.max=16",
                "rate-limit.limits.messages.rate=1/m",
                "rate-limit.limits.messages.policy=wait",
                "rate-limit.limits.messages.max-wait=1h")) {
            for (int i = 0; i < 20; i++) {
                clients.add(new WebSocketRoutesTest.Client(server));
            }
            clients.forEach(client -> client.socket.sendText("call", true).join());
            // One goes, the eight seats are taken, and the rest is rejected.
            Threads.until(() -> responses(clients) == 12 && server.ticker().sleeping() == 8);
            assertThat(server.get("/free").statusCode()).isEqualTo(200);

            server.ticker().advance(Duration.ofHours(1));
            Threads.until(() -> responses(clients) == 20);
        } finally {
            clients.forEach(WebSocketRoutesTest.Client::close);
        }
    }

    private static int responses(List<WebSocketRoutesTest.Client> clients) {
        return clients.stream().mapToInt(client -> client.received.size()).sum();
    }

    @Test
    void aClientOfNettyThatLeavesWhileItWaitsGivesSeatAndPermitBack() throws Exception {
        try (RunningServer server = RunningServer.Kind.REACTOR_NETTY.start(List.of(ReactiveApi.class))) {
            TestLimits limits = TestLimits.of(server.context);
            assertThat(server.get("/slow").statusCode()).isEqualTo(200);
            Duration before = limits.peek("slow", null).retryAfter();
            try (Socket socket = server.connect()) {
                socket.getOutputStream()
                        .write("GET /slow HTTP/1.1\r\nHost: localhost\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
                Threads.until(() -> waiting(server) == 1);
                assertThat(limits.peek("slow", null).retryAfter()).isNotEqualTo(before);
            }
            Threads.until(() -> waiting(server) == 0);
            Threads.until(() -> server.ticker().sleeping() == 0);
            Threads.until(() -> before.equals(limits.peek("slow", null).retryAfter()));
        }
    }

    /** The thread that rejects the call does not know the request, and its caller's numbers are not those of the limit. */
    @ParameterizedTest
    @EnumSource(names = {"TOMCAT", "REACTOR_NETTY"})
    void aRejectionOfAnotherThreadShowsNoNumbersThatTheCallerDoesNotHave(RunningServer.Kind kind) {
        try (RunningServer server = kind.start(
                List.of(App.class, Plans.class),
                "rate-limit.limits.plan.rate=100/h",
                "rate-limit.limits.plan.tiers.gold.rate=1/h",
                "rate-limit.limits.plain.rate=1/h")) {
            for (String path : List.of("/plan", "/plain")) {
                assertThat(server.get(path).statusCode()).isEqualTo(200);
                HttpResponse<String> rejected = server.get(path);
                assertThat(rejected.statusCode()).isEqualTo(429);
                assertThat(rejected.headers().firstValue("Retry-After")).contains("3600");
                assertThat(rejected.headers().firstValue("RateLimit-Policy").isPresent())
                        .as(path)
                        .isEqualTo(path.equals("/plain"));
            }
        }
    }

    @RestController
    static class Plans {

        private final ObjectProvider<Plans> self;

        Plans(ObjectProvider<Plans> self) {
            this.self = self;
        }

        @GetMapping("/plan")
        CompletableFuture<String> plan() {
            return CompletableFuture.supplyAsync(() -> self.getObject().call("ann", "gold"));
        }

        @GetMapping("/plain")
        CompletableFuture<String> plain() {
            return CompletableFuture.supplyAsync(() -> self.getObject().callPlain("ann"));
        }

        @RateLimited(name = "plan", key = "#who", tier = "#plan")
        public String call(String who, String plan) {
            return "done";
        }

        @RateLimited(name = "plain", key = "#who")
        public String callPlain(String who) {
            return "done";
        }
    }

    private static long done(List<CompletableFuture<HttpResponse<String>>> calls) {
        return calls.stream().filter(CompletableFuture::isDone).count();
    }

    private static int waiting(RunningServer server) {
        return TestLimits.of(server.context).configured("slow").limiter().waiting();
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

    @Configuration(proxyBeanMethods = false)
    static class Sockets {

        @Bean
        SmartInitializingSingleton sockets(ServletContext servlets, RateLimits limits) {
            return () -> {
                try {
                    ((ServerContainer) servlets.getAttribute(ServerContainer.class.getName()))
                            .addEndpoint(ServerEndpointConfig.Builder.create(Messages.class, "/socket")
                                    .configurator(new ServerEndpointConfig.Configurator() {
                                        @Override
                                        public <T> T getEndpointInstance(Class<T> type) {
                                            return type.cast(new Messages(limits));
                                        }
                                    })
                                    .build());
                } catch (DeploymentException ex) {
                    throw new IllegalStateException(ex);
                }
            };
        }
    }

    /** Waits in the thread that reads a message. */
    public static class Messages extends Endpoint {

        private final RateLimits limits;

        Messages(RateLimits limits) {
            this.limits = limits;
        }

        @Override
        public void onOpen(Session session, EndpointConfig config) {
            session.addMessageHandler(
                    String.class, message -> session.getAsyncRemote().sendText(answer()));
        }

        private String answer() {
            try {
                return limits.execute("messages", null, () -> "admitted");
            } catch (RateLimitExceededException ex) {
                return "rejected";
            }
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
