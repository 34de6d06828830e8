package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Policy;
import io.ratelimited.core.Threads;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.redis.RedisProcess;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.TestLimits;
import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.context.i18n.LocaleContextHolder;
import org.springframework.core.Ordered;
import org.springframework.core.task.TaskDecorator;
import org.springframework.http.HttpStatus;
import org.springframework.stereotype.Component;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.reactive.function.client.ClientResponse;
import org.springframework.web.reactive.function.client.WebClient;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.ServerWebExchangeDecorator;
import org.springframework.web.server.WebFilter;
import org.springframework.web.server.WebFilterChain;
import org.springframework.web.server.WebSession;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/**
 * Where calls go on that were not decided at once, on Redis or after a wait in memory, and what they find there: their
 * request, the contexts of their caller, and a thread that may block if that of the caller may.
 */
@Tag("spring-boot")
@Tag("slow")
class WhereCallsGoOnTest {

    /** A reply may be there before anybody waits for it; not so many times in a row. */
    private static final int REQUESTS = 8;

    private static final String[] LIMITED = {"/mono", "/flux", "/routed", "/service", "/future", "/future/service"};

    private static RedisProcess redis;

    @BeforeAll
    static void startRedis() {
        redis = RedisProcess.start();
    }

    @AfterAll
    static void stopRedis() {
        redis.close();
    }

    private static RunningServer start(RunningServer.Kind kind, Class<?>... more) {
        List<Class<?>> sources = new ArrayList<>(List.of(App.class));
        sources.addAll(List.of(more));
        return kind.start(
                sources,
                "rate-limit.backend=redis",
                "rate-limit.redis.timeout=10s",
                "spring.data.redis.port=" + redis.port(),
                "rate-limit.limits.often.rate=1000000/s",
                "rate-limit.limits.routed.rate=1000000/s",
                "rate-limit.limits.seldom.rate=1/h",
                "rate-limit.limits.paced.rate=4000/s",
                "rate-limit.limits.paced.algorithm=leaky-bucket",
                "rate-limit.limits.paced.backend=memory",
                "rate-limit.limits.paced.max-wait=1m",
                "rate-limit.limits.nested.rate=1000000/s",
                "rate-limit.limits.nested.backend=memory",
                "rate-limit.limits.alone.algorithm=concurrency",
                "rate-limit.limits.alone.max-concurrent=1",
                "rate-limit.clients.partner.hosts=partner.test",
                "rate-limit.clients.partner.limits=often",
                "rate-limit.routes[0].path=/routed",
                "rate-limit.routes[0].limits=routed");
    }

    @Test
    void onWebFluxReactiveCallsOnRedisGoOnOnTheEventLoopOfTheirRequest() {
        try (RunningServer server = start(
                RunningServer.Kind.REACTOR_NETTY, Served.class, SuspendThreads.class, SuspendThreadsService.class)) {
            for (int i = 0; i < REQUESTS; i++) {
                for (String path : new String[] {
                    "/mono",
                    "/flux",
                    "/routed",
                    "/service",
                    "/client",
                    "/session",
                    "/suspend",
                    "/suspend/service",
                    "/flow"
                }) {
                    HttpResponse<String> response = server.get(path);
                    assertThat(thread(response.body()))
                            .as(path)
                            .isEqualTo(response.headers().firstValue("X-Thread").orElseThrow());
                }
            }
        }
    }

    @Test
    void onWebFluxCallsThatMayBlockGoOnOnAThreadThatMay() {
        try (RunningServer server = start(RunningServer.Kind.REACTOR_NETTY)) {
            for (String path : new String[] {"/mono/elastic", "/future", "/future/service"}) {
                for (int i = 0; i < REQUESTS; i++) {
                    // That of the caller, when the reply came before anybody waited for it.
                    assertThat(server.get(path).body())
                            .as(path)
                            .matches("(rate-limit-callbacks|task-\\d+|boundedElastic-\\d+"
                                    + (path.startsWith("/future") ? "|reactor-http.*)" : ")"));
                }
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"TOMCAT", "JETTY"})
    void onServletsCallsOnRedisGoOnOnAThreadThatMayBlock(RunningServer.Kind kind) {
        try (RunningServer server = start(kind, SuspendThreads.class, SuspendThreadsService.class)) {
            List<String> paths = new ArrayList<>(List.of(LIMITED));
            paths.addAll(List.of("/suspend", "/suspend/service", "/flow"));
            for (int i = 0; i < REQUESTS; i++) {
                for (String path : paths) {
                    assertThat(thread(server.get(path).body()))
                            .as(path)
                            .matches("(rate-limit-callbacks|task-\\d+|http-nio.*|qtp.*)");
                }
            }
        }
    }

    @ParameterizedTest
    @CsvSource({"REACTOR_NETTY", "TOMCAT", "JETTY"})
    void aCallThatGoesOnHasItsRequest(RunningServer.Kind kind) {
        try (RunningServer server = start(kind)) {
            for (String path : new String[] {"/mono/nested", "/future/nested"}) {
                for (int i = 0; i < REQUESTS; i++) {
                    assertThat(server.get(path).body()).as(path).isEqualTo("127.0.0.1");
                }
            }
        }
    }

    @Test
    void aCallThatGoesOnHasTheContextsOfItsCaller() {
        try (RunningServer server = start(RunningServer.Kind.TOMCAT, Tenants.class)) {
            for (String path : new String[] {"/mono/context", "/future/context"}) {
                for (int i = 0; i < REQUESTS; i++) {
                    assertThat(server.get(path + "?tenant=t" + i, "Accept-Language", "cy")
                                    .body())
                            .isEqualTo("t" + i + " cy " + path);
                }
            }
        }
    }

    @Test
    void aDecoratorThatFailsEndsTheCallAndGivesItsPermitBack() {
        try (RunningServer server = start(RunningServer.Kind.TOMCAT, FailingDecorator.class)) {
            for (String path : new String[] {"/alone/mono", "/alone/future"}) {
                for (int i = 0; i < REQUESTS; i++) {
                    // 200 if the reply came before anybody waited for it.
                    assertThat(server.get(path).statusCode()).as(path).isIn(200, 500);
                }
                TestLimits limits = TestLimits.of(server.context);
                assertThat(limits.execute("alone", null, () -> "free")).isEqualTo("free");
            }
        }
    }

    @ParameterizedTest
    @CsvSource({
        "REACTOR_NETTY, /wait/mono, reactor-http-.*",
        "REACTOR_NETTY, /wait/future, task-\\d+",
        "TOMCAT, /wait/mono, rate-limit-callbacks",
        "TOMCAT, /wait/future, task-\\d+"
    })
    void aCallThatHasWaitedInMemoryGoesOnWhereItWouldOnRedis(RunningServer.Kind kind, String path, String thread) {
        try (RunningServer server = kind.start(List.of(Waiting.class))) {
            server.get(path);
            TestLimits limits = TestLimits.of(server.context);
            String body = "";
            for (int i = 0; i < REQUESTS && !body.matches(thread + " 127.0.0.1"); i++) {
                CompletableFuture<HttpResponse<String>> waiting = server.getAsync(path);
                Threads.until(() -> limits.configured("slow").limiter().waiting() == 1);
                server.ticker().advance(Duration.ofMinutes(1));
                body = waiting.join().body();
                // That of the request, when the minute was over before anything was attached to the wait.
                assertThat(body).matches("(" + thread + "|reactor-http-.*|http-nio-.*) 127.0.0.1");
            }
            assertThat(body).matches(thread + " 127.0.0.1");
        }
    }

    /** Blocking calls of a pool whose threads all wait for such calls must not need a thread of that pool. */
    @Test
    void aThreadThatMayBlockMayWaitForAReactiveCall() {
        try (RunningServer server = start(RunningServer.Kind.TOMCAT)) {
            for (int i = 0; i < REQUESTS; i++) {
                assertThat(server.get("/blocking").body()).isNotEmpty();
            }
        }
    }

    /** A limit that others have reads the principal, and one on Redis the session. */
    @ParameterizedTest
    @CsvSource({"/free", "/mono/blocking", "/session"})
    void onWebFluxWhatAFilterMovesToThreadsThatMayBlockStaysThere(String path) {
        try (RunningServer server = start(RunningServer.Kind.REACTOR_NETTY, Served.class, Moved.class)) {
            for (int i = 0; i < REQUESTS; i++) {
                assertThat(server.get(path).body())
                        .doesNotStartWith("reactor-http-")
                        .doesNotContain("lettuce");
            }
        }
    }

    @Test
    void noConnectionThatIsKeptOpenHangs() throws Exception {
        int connections = 16;
        ExecutorService clients = Executors.newFixedThreadPool(connections);
        try (RunningServer server = start(RunningServer.Kind.REACTOR_NETTY)) {
            for (String paths : new String[] {
                "/mono",
                "/mono,/seldom",
                "/mono,/free",
                "/routed,/free",
                "/mono,/routed,/service,/seldom,/free",
                "/often/wait,/free",
                "/plain/wait,/free",
                "/plain,/plain/seldom,/free",
                "/future,/future/seldom,/mono/future,/free",
                "/often/wait,/free,/mono,/seldom,/routed,/service"
            }) {
                List<Future<Integer>> answered = new ArrayList<>();
                for (int i = 0; i < connections; i++) {
                    int seed = i;
                    answered.add(clients.submit(() -> send(server, paths.split(","), new Random(seed))));
                }
                for (Future<Integer> one : answered) {
                    assertThat(one.get()).as(paths).isEqualTo(KeptOpen.REQUESTS);
                }
            }
        } finally {
            clients.shutdownNow();
        }
    }

    private static int send(RunningServer server, String[] paths, Random random) throws IOException {
        try (KeptOpen connection = new KeptOpen(server.connect())) {
            for (int i = 0; i < KeptOpen.REQUESTS; i++) {
                assertThat(connection.get(paths[random.nextInt(paths.length)])).isIn(200, 429);
            }
        }
        return KeptOpen.REQUESTS;
    }

    /** A connection that sends one request after the other. */
    private record KeptOpen(Socket socket, InputStream in) implements AutoCloseable {

        private static final int REQUESTS = 40;
        /** Longer than any answer of a server that gives one. */
        private static final int PATIENCE_MILLIS = 60_000;

        KeptOpen(Socket socket) throws IOException {
            this(socket, new BufferedInputStream(socket.getInputStream()));
            socket.setTcpNoDelay(true);
            socket.setSoTimeout(PATIENCE_MILLIS);
        }

        /** Returns the status. */
        int get(String path) throws IOException {
            socket.getOutputStream()
                    .write(("GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
                            .getBytes(StandardCharsets.US_ASCII));
            int status = Integer.parseInt(line().split(" ")[1]);
            int length = 0;
            for (String line = line(); !line.isEmpty(); line = line()) {
                if (line.toLowerCase(Locale.ROOT).startsWith("content-length:")) {
                    length = Integer.parseInt(
                            line.substring("content-length:".length()).strip());
                }
            }
            assertThat(in.readNBytes(length)).hasSize(length);
            return status;
        }

        private String line() throws IOException {
            StringBuilder line = new StringBuilder();
            for (int c = in.read(); c != '\n'; c = in.read()) {
                assertThat(c).as("the connection was closed").isNotNegative();
                if (c != '\r') {
                    line.append((char) c);
                }
            }
            return line.toString();
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }

    private static String thread() {
        return Thread.currentThread().getName();
    }

    /** The name of a thread. Where assertions are enabled, Kotlin adds that of the coroutine. */
    private static String thread(String name) {
        return name.replaceAll(" @coroutine#\\d+$", "");
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Api.class, Service.class, Nested.class})
    static class App {}

    @RestController
    static class Api {

        private final Service service;
        private final Nested nested;
        private final WebClient client;

        Api(Service service, Nested nested, WebClient.Builder client) {
            this.service = service;
            this.nested = nested;
            this.client = client.exchangeFunction(request -> Mono.just(
                            ClientResponse.create(HttpStatus.OK).body(thread()).build()))
                    .build();
        }

        @GetMapping("/free")
        Mono<String> free() {
            return Mono.fromCallable(WhereCallsGoOnTest::thread);
        }

        @GetMapping("/seldom")
        @RateLimited("seldom")
        Mono<String> seldom() {
            return Mono.fromCallable(WhereCallsGoOnTest::thread);
        }

        @GetMapping("/mono")
        @RateLimited("often")
        Mono<String> mono() {
            return Mono.just(thread());
        }

        @GetMapping("/flux")
        @RateLimited("often")
        Flux<String> flux() {
            return Flux.just(thread());
        }

        @GetMapping("/future")
        @RateLimited("often")
        CompletableFuture<String> future() {
            return CompletableFuture.completedFuture(thread());
        }

        @GetMapping("/routed")
        Mono<String> routed() {
            return Mono.just(thread());
        }

        @GetMapping("/service")
        Mono<String> service() {
            return service.mono();
        }

        @GetMapping("/future/service")
        CompletableFuture<String> futureOfService() {
            return service.future();
        }

        @GetMapping("/mono/elastic")
        Mono<String> elastic() {
            return Mono.defer(service::mono).subscribeOn(Schedulers.boundedElastic());
        }

        @GetMapping("/blocking")
        @Nullable
        String blocking() {
            return service.mono().block();
        }

        @GetMapping("/mono/nested")
        @RateLimited("often")
        Mono<String> monoWithNested() {
            return Mono.just(nested.call());
        }

        @GetMapping("/future/nested")
        @RateLimited("often")
        CompletableFuture<String> futureWithNested() {
            return CompletableFuture.completedFuture(nested.call());
        }

        @GetMapping("/session")
        @RateLimited(name = "session", rate = "1000000/s", key = "session")
        Mono<String> session() {
            return Mono.just(thread());
        }

        /** A call to others, which ends where it is made. */
        @GetMapping("/client")
        Mono<String> client() {
            return client.get().uri("http://partner.test/").retrieve().bodyToMono(String.class);
        }

        @GetMapping("/alone/mono")
        @RateLimited("alone")
        Mono<String> aloneMono() {
            return Mono.just(thread());
        }

        @GetMapping("/alone/future")
        @RateLimited("alone")
        CompletableFuture<String> aloneFuture() {
            return CompletableFuture.completedFuture(thread());
        }

        @GetMapping("/mono/context")
        CompletableFuture<String> monoWithContext(String tenant) {
            Tenants.CURRENT.set(tenant);
            try {
                return service.monoWithContext().toFuture();
            } finally {
                Tenants.CURRENT.remove();
            }
        }

        @GetMapping("/future/context")
        CompletableFuture<String> futureWithContext(String tenant) {
            Tenants.CURRENT.set(tenant);
            try {
                return service.futureWithContext();
            } finally {
                Tenants.CURRENT.remove();
            }
        }

        @GetMapping("/mono/blocking")
        Mono<String> monoOfBlocking() {
            return Mono.fromSupplier(() -> service.mono().block());
        }

        @GetMapping("/plain")
        @RateLimited("often")
        String plain() {
            return thread();
        }

        @GetMapping("/plain/seldom")
        @RateLimited("seldom")
        String plainSeldom() {
            return thread();
        }

        @GetMapping("/future/seldom")
        @RateLimited("seldom")
        CompletableFuture<String> futureSeldom() {
            return CompletableFuture.completedFuture(thread());
        }

        @GetMapping("/mono/future")
        Mono<String> monoOfFuture() {
            return Mono.fromFuture(service.future());
        }

        @GetMapping("/plain/wait")
        @RateLimited("paced")
        String plainPaced() {
            return thread();
        }

        @GetMapping("/often/wait")
        @RateLimited("paced")
        Mono<String> paced() {
            return Mono.just(thread());
        }
    }

    @Component
    static class Service {

        @RateLimited("often")
        public Mono<String> mono() {
            return Mono.just(thread());
        }

        @RateLimited("often")
        public CompletableFuture<String> future() {
            return CompletableFuture.completedFuture(thread());
        }

        @RateLimited("often")
        public Mono<String> monoWithContext() {
            return Mono.just(Tenants.context());
        }

        @RateLimited("often")
        public CompletableFuture<String> futureWithContext() {
            return CompletableFuture.completedFuture(Tenants.context());
        }
    }

    @Component
    static class Nested {

        /** Reads its request. */
        @RateLimited(name = "nested", rate = "1000000/s", key = "clientIp")
        public String call() {
            return "127.0.0.1";
        }
    }

    /** A context of the application that only its decorator hands on. */
    @Configuration(proxyBeanMethods = false)
    static class Tenants implements TaskDecorator {

        static final ThreadLocal<String> CURRENT = new ThreadLocal<>();

        static String context() {
            return CURRENT.get() + " " + LocaleContextHolder.getLocale().getLanguage() + " "
                    + RequestContextHolder.currentRequestAttributes()
                            .getAttribute("org.springframework.web.servlet.HandlerMapping.bestMatchingPattern", 0);
        }

        @Override
        public Runnable decorate(Runnable task) {
            String tenant = CURRENT.get();
            return () -> {
                CURRENT.set(tenant);
                try {
                    task.run();
                } finally {
                    CURRENT.remove();
                }
            };
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class FailingDecorator implements TaskDecorator {

        @Override
        public Runnable decorate(Runnable task) {
            throw new IllegalStateException("no tenant");
        }
    }

    /** Moves requests to threads that may block. */
    @Configuration(proxyBeanMethods = false)
    static class Moved implements WebFilter {

        @Override
        public Mono<Void> filter(ServerWebExchange exchange, WebFilterChain chain) {
            return chain.filter(exchange).subscribeOn(Schedulers.boundedElastic());
        }
    }

    /** Tells which thread the server serves a request on. */
    @Configuration(proxyBeanMethods = false)
    static class Served implements WebFilter, Ordered {

        @Override
        public int getOrder() {
            return HIGHEST_PRECEDENCE;
        }

        @Override
        public Mono<Void> filter(ServerWebExchange exchange, WebFilterChain chain) {
            exchange.getResponse().getHeaders().set("X-Thread", thread());
            return chain.filter(new ServerWebExchangeDecorator(exchange) {

                /** As one that is read from Redis. */
                @Override
                public Mono<WebSession> getSession() {
                    return super.getSession().publishOn(Schedulers.parallel());
                }
            });
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Nested.class)
    @RestController
    static class Waiting {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        private final Nested nested;

        Waiting(Nested nested) {
            this.nested = nested;
        }

        @GetMapping("/wait/mono")
        @RateLimited(name = "slow", rate = "1/m", policy = Policy.WAIT, maxWait = "1h")
        Mono<String> mono() {
            return Mono.just(thread() + " " + nested.call());
        }

        @GetMapping("/wait/future")
        @RateLimited(name = "slow", rate = "1/m", policy = Policy.WAIT, maxWait = "1h")
        CompletableFuture<String> future() {
            return CompletableFuture.completedFuture(thread() + " " + nested.call());
        }
    }
}
