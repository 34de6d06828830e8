package io.ratelimited.spring.internals.web;

import static io.ratelimited.spring.internals.web.RunningServer.states;
import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.core.Threads;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.security.Principal;
import java.time.Duration;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.test.system.CapturedOutput;
import org.springframework.boot.test.system.OutputCaptureExtension;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.annotation.Order;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.core.task.SimpleAsyncTaskExecutor;
import org.springframework.http.ResponseEntity;
import org.springframework.http.client.ReactorResourceFactory;
import org.springframework.security.authentication.TestingAuthenticationToken;
import org.springframework.security.core.context.ReactiveSecurityContextHolder;
import org.springframework.stereotype.Service;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestHeader;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.reactive.config.BlockingExecutionConfigurer;
import org.springframework.web.reactive.config.WebFluxConfigurer;
import org.springframework.web.reactive.function.server.RouterFunction;
import org.springframework.web.reactive.function.server.RouterFunctions;
import org.springframework.web.reactive.function.server.ServerResponse;
import org.springframework.web.server.WebFilter;
import org.springframework.web.server.WebSession;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;
import reactor.core.scheduler.Schedulers;
import reactor.netty.resources.LoopResources;

/** WebFlux methods that return plain values, on a server with one event loop and without any property. */
@ExtendWith(OutputCaptureExtension.class)
@Tag("slow")
class PlainReactiveCallsTest {

    private static RunningServer server;

    @BeforeAll
    static void start() {
        server = RunningServer.Kind.REACTOR_NETTY.start(
                List.of(App.class),
                "rate-limit.limits.plan.rate=1/m",
                "rate-limit.limits.by-hand.rate=1/m",
                "rate-limit.limits.routed.rate=1/m",
                "rate-limit.routes[0].path=/routed",
                "rate-limit.routes[0].limits=routed",
                "rate-limit.routes[0].key=principal",
                "rate-limit.limits.routed-waiting.rate=1/m",
                "rate-limit.limits.routed-waiting.policy=wait",
                "rate-limit.limits.routed-waiting.max-wait=5m",
                "rate-limit.routes[1].path=/after/wait/routed",
                "rate-limit.routes[1].limits=routed-waiting",
                "rate-limit.limits.by-hand-waiting.rate=1/m",
                "rate-limit.limits.by-hand-waiting.policy=wait",
                "rate-limit.limits.by-hand-waiting.max-wait=5m");
    }

    @AfterAll
    static void stop() {
        server.close();
    }

    /** An hour later every budget is whole again. */
    @AfterEach
    void nextHour() {
        server.ticker().advance(Duration.ofHours(1));
    }

    @Test
    void theFirstShapeOfTheReadmeIsLimited() {
        HttpResponse<String> admitted = server.get("/quotes/ACME");
        HttpResponse<String> refused = server.get("/quotes/ACME");

        assertThat(admitted.statusCode()).isEqualTo(200);
        assertThat(admitted.body()).isEqualTo("ACME 42.00");
        assertThat(states(admitted)).containsOnlyKeys("quotes");
        assertThat(refused.statusCode()).isEqualTo(429);
        assertThat(refused.headers().firstValue("Retry-After")).contains("60");
        assertThat(states(refused)).containsOnlyKeys("quotes");
    }

    @Test
    void aHandlerFunctionThatHasReadItsBodyKnowsItsRequest() {
        for (String user : List.of("ann", "bob")) {
            HttpResponse<String> admitted = post("/nested/7/of-body", "order ", user);
            HttpResponse<String> refused = post("/nested/7/of-body", "order ", user);

            assertThat(admitted.body()).isEqualTo("order 7 served");
            assertThat(states(admitted)).containsOnlyKeys("service");
            assertThat(refused.statusCode()).isEqualTo(429);
        }
    }

    private static HttpResponse<String> post(String path, String body, String user) {
        HttpRequest request = HttpRequest.newBuilder(server.uri(path))
                .header("User", user)
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build();
        return RunningServer.client()
                .sendAsync(request, HttpResponse.BodyHandlers.ofString())
                .orTimeout(20, TimeUnit.SECONDS)
                .join();
    }

    @ParameterizedTest
    @CsvSource({
        "GET, /future, future",
        "GET, /blocking, blocking",
        "GET, /assembled, service",
        "GET, /function, service",
        "GET, /session, session-user",
        "GET, /execute, by-hand",
        "GET, /filtered, by-hand",
        "POST, /body, body",
        "POST, /body/assembled, service",
        "POST, /body/blocking, blocking-body"
    })
    void aPlainCallKnowsItsRequest(String method, String path, String limit) {
        HttpResponse<String> admitted = server.send(method, path, "User", "ann");
        HttpResponse<String> refused = server.send(method, path, "User", "ann");
        HttpResponse<String> other = server.send(method, path, "User", "bob");

        assertThat(admitted.statusCode()).isEqualTo(200);
        assertThat(states(admitted)).containsOnlyKeys(limit);
        assertThat(refused.statusCode()).isEqualTo(429);
        assertThat(refused.headers().firstValue("Retry-After")).contains("60");
        assertThat(other.statusCode()).isEqualTo(200);
    }

    @Test
    void aPlainCallOnAnotherThreadThatReadsItsRequestFailsAndTheLogSaysWhatToSet(CapturedOutput output) {
        assertThat(server.get("/elastic", "User", "ann").statusCode()).isEqualTo(500);
        assertThat(output)
                .contains("add io.micrometer:context-propagation with spring.reactor.context-propagation: auto");
    }

    @ParameterizedTest
    @ValueSource(strings = {"/after/wait", "/after/wait/subscribed", "/after/wait/routed"})
    void aPlainCallBehindAWaitKnowsItsRequest(String path) {
        assertThat(server.get(path, "User", "ann").statusCode()).isEqualTo(200);
        CompletableFuture<HttpResponse<String>> waiting =
                CompletableFuture.supplyAsync(() -> server.get(path, "User", "bob"));
        awaitSleeping(1);
        server.ticker().advance(Duration.ofMinutes(1));

        assertThat(waiting.join().statusCode()).isEqualTo(200);
        assertThat(states(waiting.join())).containsKey("service");
        assertThat(server.get("/assembled", "User", "bob").statusCode()).isEqualTo(429);
    }

    @Test
    void aClientThatLeavesWakesUpTheThreadThatSleepsForIt() throws IOException {
        assertThat(server.send("POST", "/waits/body").statusCode()).isEqualTo(200);
        try (HalfRequest left = new HalfRequest("/waits/body", "ann")) {
            left.send("lf");
            awaitSleeping(1);
        }
        awaitSleeping(0);

        // Its permit comes back: nobody else has to wait for longer than the first minute.
        server.ticker().advance(Duration.ofMinutes(1));
        RateLimits limits = server.context.getBean(RateLimits.class);
        while (limits.peek("waits-body", null).remaining() != 1) {
            Thread.onSpinWait();
        }
    }

    private static void awaitSleeping(int calls) {
        while (server.ticker().sleeping() != calls) {
            Thread.onSpinWait();
        }
    }

    @Test
    void aBodyOfManyBuffersArrivesWhole() throws IOException, InterruptedException {
        byte[] body = new byte[1 << 20];
        new Random(1).nextBytes(body);
        int port = server.context.getEnvironment().getRequiredProperty("local.server.port", Integer.class);
        for (String path : List.of("/body/echo", "/body/echo/waits")) {
            HttpRequest request = HttpRequest.newBuilder(URI.create("http://localhost:" + port + path))
                    .header("Content-Type", "application/octet-stream")
                    .POST(HttpRequest.BodyPublishers.ofByteArray(body))
                    .build();
            assertThat(HttpClient.newHttpClient()
                            .send(request, HttpResponse.BodyHandlers.ofByteArray())
                            .body())
                    .isEqualTo(body);
        }
    }

    @ParameterizedTest
    @CsvSource({"/body, body", "/body/assembled, service", "/body/blocking, blocking-body"})
    void requestsThatTakeTurnsOnOneEventLoopAreNotMixedUp(String path, String limit) throws IOException {
        try (HalfRequest ann = new HalfRequest(path, "ann");
                HalfRequest bob = new HalfRequest(path, "bob")) {
            assertThat(bob.finish()).startsWith("HTTP/1.1 200").contains("\"" + limit + "\";r=0");
            assertThat(ann.finish()).startsWith("HTTP/1.1 200").contains("\"" + limit + "\";r=0");
        }
        assertThat(server.send("POST", path, "User", "ann").statusCode()).isEqualTo(429);
        assertThat(server.send("POST", path, "User", "cid").statusCode()).isEqualTo(200);
    }

    /** What a request sends into a stream that others read runs on its thread: only a reactive type knows who reads. */
    @ParameterizedTest
    @CsvSource({"plain, bob", "reactive, ann"})
    void aCallInAStreamThatAnotherRequestFeedsIsOfTheSenderUnlessItIsReactive(String call, String charged) {
        annReadsWhatBobSends(server, call);
        for (String user : List.of("ann", "bob")) {
            assertThat(server.get("/function", "User", user).statusCode())
                    .as(user)
                    .isEqualTo(user.equals(charged) ? 429 : 200);
        }
    }

    static void annReadsWhatBobSends(RunningServer server, String call) {
        CompletableFuture<HttpResponse<String>> reader =
                CompletableFuture.supplyAsync(() -> server.get("/shared/" + call, "User", "ann"));
        Threads.until(() -> server.context.getBean(Shared.class).sink.currentSubscriberCount() == 1);
        assertThat(server.get("/shared/send", "User", "bob").body()).isEqualTo("sent");
        assertThat(reader.orTimeout(20, TimeUnit.SECONDS).join().body()).isEqualTo("served");
    }

    @ParameterizedTest
    @ValueSource(strings = {"/me", "/me/mono", "/me/future"})
    void aPrincipalThatALaterFilterSetsIsTheKey(String path) {
        for (String header : List.of("User", "Context-User")) {
            assertThat(server.get(path, header, header + "ann").statusCode()).isEqualTo(200);
            assertThat(server.get(path, header, header + "ann").statusCode()).isEqualTo(429);
            assertThat(server.get(path, header, header + "bob").statusCode()).isEqualTo(200);
        }
        assertThat(server.get(path).statusCode()).isEqualTo(200);
        assertThat(server.get(path).statusCode()).isEqualTo(429);
    }

    @Test
    void aRouteThatAskedForThePrincipalTooEarlyIsReportedOnce(CapturedOutput output) {
        server.get("/routed", "User", "ann");
        server.ticker().advance(Duration.ofHours(1));
        server.get("/routed", "User", "bob");

        assertThat(output.getAll().split("before a later filter set the principal", -1))
                .hasSize(2);
    }

    @ParameterizedTest
    @CsvSource({"GET, /waits", "POST, /waits/body"})
    void aPlainHandlerMethodWaitsWhereNoOtherRequestIsHeldUp(String method, String path) {
        assertThat(server.send(method, path).statusCode()).isEqualTo(200);
        CompletableFuture<HttpResponse<String>> waiting =
                CompletableFuture.supplyAsync(() -> server.send(method, path));
        awaitSleeping(1);

        assertThat(server.get("/open").statusCode()).isEqualTo(200);
        assertThat(waiting).isNotDone();

        server.ticker().advance(Duration.ofMinutes(1));
        assertThat(waiting.join().statusCode()).isEqualTo(200);
        assertThat(states(waiting.join())).hasSize(1);
    }

    @ParameterizedTest
    @CsvSource({
        "/below/waits, below-waits",
        "/below/queue, below-queue",
        "/below/places, below-places",
        "/below/two, below-two",
        "/below/execute, by-hand-waiting"
    })
    void aCallThatWouldSleepOnAnEventLoopIsRefusedAndTheLogSaysWhy(String path, String limit, CapturedOutput output) {
        assertThat(server.get(path).body()).isEqualTo("done");

        HttpResponse<String> refused = server.get(path);
        HttpResponse<String> again = server.get(path);

        assertThat(refused.statusCode()).isEqualTo(429);
        assertThat(again.statusCode()).isEqualTo(429);
        assertThat(server.ticker().sleeping()).isZero();
        assertThat(output.getAll().split("Rate limit '" + limit + "' .*must not block", -1))
                .hasSize(2);
        assertThat(output).contains("Return a Mono");
    }

    /** A request whose body has not come yet. */
    private static final class HalfRequest implements AutoCloseable {

        private final Socket socket;

        HalfRequest(String path, String user) throws IOException {
            int port = server.context.getEnvironment().getRequiredProperty("local.server.port", Integer.class);
            socket = new Socket("localhost", port);
            send("POST " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nUser: " + user
                    + "\r\nContent-Type: text/plain\r\nContent-Length: 4\r\n\r\nha");
        }

        String finish() throws IOException {
            send("lf");
            try (InputStream in = socket.getInputStream()) {
                return new String(in.readAllBytes(), StandardCharsets.US_ASCII);
            }
        }

        private void send(String text) throws IOException {
            OutputStream out = socket.getOutputStream();
            out.write(text.getBytes(StandardCharsets.US_ASCII));
            out.flush();
        }

        @Override
        public void close() throws IOException {
            socket.close();
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Api.class, Plain.class, Shared.class})
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Bean
        ReactorResourceFactory oneEventLoop() {
            ReactorResourceFactory resources = new ReactorResourceFactory();
            resources.setUseGlobalResources(false);
            resources.setLoopResourcesSupplier(() -> LoopResources.create("one", 1, true));
            return resources;
        }

        @Bean
        WebFluxConfigurer blockingMethods() {
            return new WebFluxConfigurer() {
                @Override
                public void configureBlockingExecution(BlockingExecutionConfigurer configurer) {
                    configurer
                            .setExecutor(new SimpleAsyncTaskExecutor("blocking-"))
                            .setControllerMethodPredicate(
                                    method -> method.getMethod().getName().startsWith("blocking"));
                }
            };
        }

        /** Sets the principal behind our filter: on the exchange, or in the security context. */
        @Bean
        @Order(0)
        WebFilter login() {
            return (exchange, chain) -> {
                String user = exchange.getRequest().getHeaders().getFirst("User");
                if (user != null) {
                    Principal principal = () -> user;
                    return chain.filter(exchange.mutate()
                            .principal(Mono.fromFuture(() -> CompletableFuture.supplyAsync(() -> principal)))
                            .build());
                }
                String contextUser = exchange.getRequest().getHeaders().getFirst("Context-User");
                return contextUser == null
                        ? chain.filter(exchange)
                        : chain.filter(exchange)
                                .contextWrite(ReactiveSecurityContextHolder.withAuthentication(
                                        new TestingAuthenticationToken(contextUser, "")));
            };
        }

        @Bean
        @Order(1)
        WebFilter limited(RateLimits limits) {
            return (exchange, chain) -> {
                String user = exchange.getRequest().getHeaders().getFirst("User");
                return exchange.getRequest().getPath().value().equals("/filtered")
                        ? limits.execute("by-hand", user, () -> chain.filter(exchange))
                        : chain.filter(exchange);
            };
        }

        @Bean
        RouterFunction<ServerResponse> functional(Plain plain) {
            return RouterFunctions.route()
                    .GET("/function", request -> ServerResponse.ok().bodyValue(plain.service()))
                    .path(
                            "/nested",
                            nested -> nested.POST(
                                    "/{id}/of-body",
                                    request -> request.bodyToMono(String.class)
                                            .map(body -> body + request.pathVariable("id") + " " + plain.service())
                                            .flatMap(ServerResponse.ok()::bodyValue)))
                    .build();
        }
    }

    static class Shared {

        final Sinks.Many<String> sink = Sinks.many().multicast().directBestEffort();
    }

    @Service
    static class Plain {

        @RateLimited(name = "service", rate = "1/m", key = "header('User')")
        public String service() {
            return "served";
        }

        @RateLimited(name = "service", rate = "1/m", key = "header('User')")
        public Mono<String> reactiveService() {
            return Mono.just("served");
        }

        @RateLimited(name = "below-waits", rate = "1/m", policy = Policy.WAIT, maxWait = "5m")
        public String waits() {
            return "done";
        }

        @RateLimited(name = "below-queue", algorithm = Algorithm.LEAKY_BUCKET, rate = "1/m", burst = 5, maxWait = "5m")
        public String queue() {
            return "done";
        }

        @RateLimited(
                name = "below-places",
                algorithm = Algorithm.CONCURRENCY,
                maxConcurrent = 1,
                policy = Policy.WAIT,
                maxWait = "5m")
        public String places(Runnable inside) {
            inside.run();
            return "done";
        }

        @RateLimited(name = "below-many", rate = "100/m")
        @RateLimited(name = "below-two", rate = "1/m", policy = Policy.WAIT, maxWait = "5m")
        public String two() {
            return "done";
        }
    }

    @RestController
    static class Api {

        private final Plain plain;
        private final RateLimits limits;
        private final AtomicBoolean calledPlaces = new AtomicBoolean();
        private final Sinks.Many<String> shared;

        Api(Plain plain, RateLimits limits, Shared shared) {
            this.shared = shared.sink;
            this.plain = plain;
            this.limits = limits;
        }

        @GetMapping("/routed")
        Mono<String> routed() {
            return Mono.just("routed");
        }

        @GetMapping("/open")
        Mono<String> open() {
            return Mono.just("open");
        }

        @GetMapping("/quotes/{symbol}")
        @RateLimited(name = "quotes", rate = "1/m", key = "clientIp")
        String quote(@PathVariable String symbol) {
            return symbol + " 42.00";
        }

        @GetMapping("/future")
        @RateLimited(name = "future", rate = "1/m", key = "header('User')")
        CompletableFuture<String> future() {
            return CompletableFuture.completedFuture("later");
        }

        @GetMapping("/blocking")
        @RateLimited(name = "blocking", rate = "1/m", key = "header('User')")
        String blocking() {
            return Thread.currentThread().getName();
        }

        @PostMapping("/body/blocking")
        @RateLimited(name = "blocking-body", rate = "1/m", key = "header('User')")
        String blockingBody(@RequestBody(required = false) String body) {
            return Thread.currentThread().getName();
        }

        @GetMapping("/assembled")
        Mono<String> assembled() {
            return Mono.just(plain.service());
        }

        @PostMapping("/body/assembled")
        Mono<String> assembledOfBody(@RequestBody(required = false) String body) {
            return Mono.just(plain.service());
        }

        @GetMapping("/after/wait")
        @RateLimited(name = "after-wait", rate = "1/m", policy = Policy.WAIT, maxWait = "5m")
        Mono<String> afterWait() {
            return Mono.just(plain.service());
        }

        @GetMapping("/after/wait/subscribed")
        @RateLimited(name = "after-wait-subscribed", rate = "1/m", policy = Policy.WAIT, maxWait = "5m")
        Mono<String> subscribedAfterWait() {
            return Mono.fromCallable(plain::service);
        }

        @GetMapping("/after/wait/routed")
        Mono<String> routedAfterWait() {
            return Mono.just(plain.service());
        }

        @PostMapping("/body/echo")
        @RateLimited(name = "echo", rate = "1/m")
        Flux<DataBuffer> echo(@RequestBody Flux<DataBuffer> body) {
            return body;
        }

        @PostMapping("/body/echo/waits")
        @RateLimited(name = "echo-waits", rate = "1/m", policy = Policy.WAIT, maxWait = "5m")
        ResponseEntity<Flux<DataBuffer>> echoWaits(@RequestBody Flux<DataBuffer> body) {
            return ResponseEntity.ok(body);
        }

        @GetMapping("/elastic")
        Mono<String> elastic() {
            return Mono.fromCallable(plain::service).subscribeOn(Schedulers.boundedElastic());
        }

        @GetMapping("/shared/plain")
        Mono<String> sharedPlain() {
            return shared.asFlux().next().map(sent -> plain.service());
        }

        @GetMapping("/shared/reactive")
        Mono<String> sharedReactive() {
            return shared.asFlux().next().flatMap(sent -> plain.reactiveService());
        }

        @GetMapping("/shared/send")
        String send() {
            shared.tryEmitNext("sent").orThrow();
            return "sent";
        }

        @GetMapping("/session")
        @RateLimited(name = "session-user", rate = "1/m", key = "header('User')")
        String session(WebSession session) {
            return session.getId();
        }

        @GetMapping("/execute")
        String execute(@RequestHeader("User") String user) {
            return limits.execute("by-hand", user, () -> "executed");
        }

        @GetMapping("/filtered")
        Mono<String> filtered() {
            return Mono.just("filtered");
        }

        @PostMapping("/body")
        @RateLimited(name = "body", rate = "1/m", key = "header('User')")
        String body(@RequestBody(required = false) String body) {
            return "body";
        }

        @GetMapping("/me")
        @RateLimited(name = "me", rate = "1/m", key = "principal")
        String me() {
            return "me";
        }

        @GetMapping("/me/mono")
        @RateLimited(name = "me-mono", rate = "1/m", key = "principal")
        Mono<String> meAsMono() {
            return Mono.just("me");
        }

        @GetMapping("/me/future")
        @RateLimited(name = "me-future", rate = "1/m", key = "principal")
        CompletableFuture<String> meAsFuture() {
            return CompletableFuture.completedFuture("me");
        }

        @GetMapping("/waits")
        @RateLimited(name = "waits", rate = "1/m", policy = Policy.WAIT, maxWait = "5m")
        String waits() {
            return "waited";
        }

        @PostMapping("/waits/body")
        @RateLimited(name = "waits-body", rate = "1/m", policy = Policy.WAIT, maxWait = "5m")
        String waitsForBody(@RequestBody(required = false) String body) {
            return "waited";
        }

        @GetMapping("/below/waits")
        String belowWaits() {
            return plain.waits();
        }

        @GetMapping("/below/queue")
        String belowQueue() {
            return plain.queue();
        }

        /** All but the first call make another one from within, which finds the only place taken. */
        @GetMapping("/below/places")
        String belowPlaces() {
            boolean first = calledPlaces.compareAndSet(false, true);
            return plain.places(first ? () -> {} : () -> plain.places(() -> {}));
        }

        @GetMapping("/below/two")
        Mono<String> belowTwo() {
            return Mono.just("two").map(ignored -> plain.two());
        }

        @GetMapping("/below/execute")
        String belowExecute() {
            return limits.execute("by-hand-waiting", null, () -> "done");
        }
    }
}
