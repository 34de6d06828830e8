package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Policy;
import io.ratelimited.core.Threads;
import io.ratelimited.spring.DecisionObserver;
import io.ratelimited.spring.RateLimitCharge;
import io.ratelimited.spring.RateLimitDecision;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.Filter;
import java.io.BufferedOutputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.reactor.netty.NettyServerCustomizer;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.Ordered;
import org.springframework.core.io.buffer.DataBufferUtils;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.http.server.reactive.ServerHttpRequest;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Handlers whose request ends before their result. Spring MVC cancels a reactive type or a future at the timeout of the request
 * only.
 */
@ParameterizedClass
@EnumSource(Kind.class)
@Tag("slow")
class HandlersWithoutClientTest {

    private static RunningServer server;

    @BeforeParameterizedClassInvocation
    static void start(Kind kind) {
        server = kind.start(
                List.of(App.class),
                "server.shutdown=immediate",
                "server.http2.enabled=" + (kind != Kind.JETTY),
                "spring.mvc.async.request-timeout=1h");
    }

    @AfterParameterizedClassInvocation
    static void stop() {
        server.close();
    }

    @Parameter
    Kind kind;

    private final List<Socket> clients = new ArrayList<>();

    @AfterEach
    void nothingIsLeft() throws IOException {
        for (Socket client : clients) {
            client.close();
        }
        Work.BEGUN.drainPermits();
        Work.CANCELLED.drainPermits();
        requests().clear();
        server.context.getBean(Requests.class).completed.drainPermits();
        server.context.getBean(Charged.class).permits.clear();
    }

    private static long free(String limit) {
        return server.context.getBean(RateLimits.class).peek(limit, null).remaining();
    }

    private static BlockingQueue<AsyncContext> requests() {
        return server.context.getBean(Requests.class).suspended;
    }

    private static AsyncContext suspended() throws InterruptedException {
        AsyncContext request = requests().poll(20, TimeUnit.SECONDS);
        assertThat(request).isNotNull();
        return request;
    }

    /** The JDK's client would upgrade to HTTP/2. */
    private void get(String path) throws IOException {
        Socket client = server.connect();
        clients.add(client);
        client.getOutputStream()
                .write(("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
    }

    private static void assertHappens(Semaphore event) throws InterruptedException {
        assertThat(event.tryAcquire(20, TimeUnit.SECONDS)).isTrue();
    }

    @ParameterizedTest
    @ValueSource(strings = {"/mono", "/stream", "/list", "/future"})
    void aCallWhoseRequestIsCompletedIsCancelled(String path) throws Exception {
        assumeTrue(kind != Kind.REACTOR_NETTY, "Spring MVC");
        get(path);
        assertHappens(Work.BEGUN);
        assertThat(free(path.substring(1))).isZero();
        suspended().complete();
        Threads.untilAsserted(() -> assertThat(free(path.substring(1))).isEqualTo(1));
        assertHappens(Work.CANCELLED);
    }

    @ParameterizedTest
    @ValueSource(strings = {"/mono", "/stream", "/list", "/future", "/entity-mono", "/entity-stream"})
    void aCallWhoseStreamOfHttp2IsResetIsCancelled(String path) throws Exception {
        assumeTrue(kind != Kind.JETTY, "needs a library for HTTP/2");
        try (Socket client = server.connect()) {
            Http2 connection = new Http2(client);
            connection.get(1, path);
            assertHappens(Work.BEGUN);
            if (kind == Kind.TOMCAT) {
                suspended();
            }
            assertThat(free(path.substring(1))).isZero();
            connection.reset(1);
            Threads.untilAsserted(() -> assertThat(free(path.substring(1))).isEqualTo(1));
            if (!path.startsWith("/entity")) {
                assertHappens(Work.CANCELLED);
            }
        }
    }

    /** Reactor Netty ends the response with the write that fails, and does not always cancel its body. */
    @Test
    void aStreamWhoseConnectionOfHttp2IsClosedIsCancelled() throws Exception {
        assumeTrue(kind == Kind.REACTOR_NETTY, "Reactor Netty");
        for (int i = 0; i < 20; i++) {
            try (Socket client = server.connect()) {
                new Http2(client).get(1, "/begun");
                assertHappens(Work.BEGUN);
            }
            Threads.untilAsserted(() -> assertThat(free("begun")).isEqualTo(1));
        }
    }

    @Test
    void aCallWhoseRequestIsCompletedIsChargedAsCancelled() throws Exception {
        assumeTrue(kind != Kind.REACTOR_NETTY, "Spring MVC");
        get("/charged");
        assertHappens(Work.BEGUN);
        suspended().complete();
        List<Long> charged = server.context.getBean(Charged.class).permits;
        Threads.untilAsserted(() -> assertThat(charged).containsExactly(3L));
    }

    @Test
    void aCallThatWaitsIsNotMadeOnceItsRequestIsCompleted() throws Exception {
        assumeTrue(kind != Kind.REACTOR_NETTY, "Spring MVC");
        get("/waiting");
        assertHappens(Work.BEGUN);
        AsyncContext ofFirst = suspended();
        get("/waiting");
        suspended().complete();
        // The server tells of it from a thread of its own, and the first call lets go whoever waits then.
        assertHappens(server.context.getBean(Requests.class).completed);
        ofFirst.complete();
        Threads.untilAsserted(() -> assertThat(free("queue")).isEqualTo(1));
        assertThat(Work.BEGUN.tryAcquire()).isFalse();
    }

    /** As without a limit. */
    @Test
    void aCallThatNoLimitAppliesToGoesOn() throws Exception {
        assumeTrue(kind != Kind.REACTOR_NETTY, "Spring MVC");
        get("/exempt");
        assertHappens(Work.BEGUN);
        AsyncContext request = suspended();
        request.complete();
        assertHappens(server.context.getBean(Requests.class).completed);
        assertThat(Work.CANCELLED.tryAcquire()).isFalse();
    }

    /** A handler may begin work that nobody waits for. */
    @Test
    void aCallThatAHandlerSubscribesToItselfGoesOn() throws Exception {
        assumeTrue(kind != Kind.REACTOR_NETTY, "Spring MVC");
        get("/detached");
        assertHappens(Work.BEGUN);
        assertHappens(Work.BEGUN);
        suspended().complete();
        Threads.untilAsserted(() -> assertThat(free("handler")).isEqualTo(1));
        assertHappens(Work.CANCELLED);
        assertThat(free("detached")).isZero();
        assertThat(Work.CANCELLED.tryAcquire()).isFalse();
    }

    /** Reactor Netty does not notice a client that disconnects before it has sent its body, unless the handler reads that. */
    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aCallThatDoesNotReadItsBodyEndsByItsOwnTimeout(boolean reset) throws Exception {
        assumeTrue(kind == Kind.REACTOR_NETTY, "Reactor Netty");
        try (Socket client = server.connect()) {
            client.getOutputStream()
                    .write("GET /timed HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"
                            .getBytes(StandardCharsets.US_ASCII));
            assertHappens(Work.BEGUN);
            client.setSoLinger(reset, 0);
        }
        Threads.untilAsserted(() -> assertThat(free("timed")).isEqualTo(1));
    }

    @Test
    void aCallThatReadsABodyThatDoesNotComeEndsByTheTimeoutOfRequests() throws Exception {
        assumeTrue(kind == Kind.REACTOR_NETTY, "Reactor Netty");
        try (Socket client = server.connect()) {
            client.getOutputStream()
                    .write("POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nbegun"
                            .getBytes(StandardCharsets.US_ASCII));
            assertHappens(Work.BEGUN);
            Threads.untilAsserted(() -> assertThat(free("body")).isEqualTo(1));
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Requests.class, Charged.class, Service.class, Api.class})
    static class App {

        @Bean
        NettyServerCustomizer requestTimeout() {
            return server -> server.requestTimeout(Duration.ofSeconds(1));
        }
    }

    /** Requests that go on after their first dispatch. */
    static final class Requests {

        private final BlockingQueue<AsyncContext> suspended = new LinkedBlockingQueue<>();
        private final Semaphore completed = new Semaphore(0);

        @Bean
        static FilterRegistrationBean<Filter> suspending(Requests requests) {
            FilterRegistrationBean<Filter> filter = new FilterRegistrationBean<>((request, response, chain) -> {
                chain.doFilter(request, response);
                if (request.isAsyncStarted()) {
                    AsyncContext context = request.getAsyncContext();
                    context.addListener(requests.new Completion()); // the last one of the request
                    requests.suspended.add(context);
                }
            });
            filter.setAsyncSupported(true);
            filter.setOrder(Ordered.HIGHEST_PRECEDENCE);
            return filter;
        }

        private final class Completion implements AsyncListener {

            @Override
            public void onComplete(AsyncEvent event) {
                completed.release();
            }

            @Override
            public void onTimeout(AsyncEvent event) {}

            @Override
            public void onError(AsyncEvent event) {}

            @Override
            public void onStartAsync(AsyncEvent event) {}
        }
    }

    /** What calls were charged with. */
    static final class Charged implements DecisionObserver {

        private final List<Long> permits = new CopyOnWriteArrayList<>();

        @Override
        public void onDecision(RateLimitDecision decision) {}

        @Override
        public void onCharge(RateLimitCharge charge) {
            permits.add(charge.charged());
        }
    }

    /** What never ends by itself. */
    private static final class Work {

        private static final Semaphore BEGUN = new Semaphore(0);
        private static final Semaphore CANCELLED = new Semaphore(0);

        private Work() {}

        private static <T> Mono<T> mono() {
            return Mono.<T>never().doOnSubscribe(reader -> BEGUN.release()).doOnCancel(CANCELLED::release);
        }
    }

    static class Service {

        @RateLimited(name = "detached", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public Mono<String> detached() {
            return Work.mono();
        }
    }

    @RestController
    static class Api {

        private final Service service;

        Api(Service service) {
            this.service = service;
        }

        @GetMapping("/mono")
        @RateLimited(name = "mono", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public Mono<String> mono() {
            return Work.mono();
        }

        @GetMapping(path = "/stream", produces = MediaType.TEXT_EVENT_STREAM_VALUE)
        @RateLimited(name = "stream", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public Flux<String> stream() {
            return Work.<String>mono().flux();
        }

        @GetMapping(path = "/begun", produces = MediaType.TEXT_EVENT_STREAM_VALUE)
        @RateLimited(name = "begun", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public Flux<String> begun() {
            return Flux.just("first").concatWith(Work.mono());
        }

        @GetMapping(path = "/list", produces = MediaType.APPLICATION_JSON_VALUE)
        @RateLimited(name = "list", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public Flux<Integer> list() {
            return Work.<Integer>mono().flux();
        }

        @GetMapping("/future")
        @RateLimited(name = "future", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public CompletableFuture<String> future() {
            Work.BEGUN.release();
            CompletableFuture<String> future = new CompletableFuture<>();
            future.whenComplete((value, failure) -> Work.CANCELLED.release());
            return future;
        }

        @GetMapping("/entity-mono")
        @RateLimited(name = "entity-mono", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public ResponseEntity<Mono<String>> entityMono() {
            return ResponseEntity.ok(Work.mono());
        }

        @GetMapping("/entity-stream")
        @RateLimited(name = "entity-stream", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public ResponseEntity<Flux<String>> entityStream() {
            return ResponseEntity.ok()
                    .contentType(MediaType.TEXT_EVENT_STREAM)
                    .body(Work.<String>mono().flux());
        }

        @GetMapping("/exempt")
        @RateLimited(name = "exempt", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1, when = "false")
        public Mono<String> exempt() {
            return Work.mono();
        }

        @GetMapping("/timed")
        @RateLimited(name = "timed", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public Mono<String> timed() {
            return Work.<String>mono().timeout(Duration.ofSeconds(1));
        }

        @PostMapping("/body")
        @RateLimited(name = "body", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public Mono<Void> body(ServerHttpRequest request) {
            return request.getBody()
                    .doOnSubscribe(reader -> Work.BEGUN.release())
                    .map(DataBufferUtils::release)
                    .then();
        }

        @GetMapping("/charged")
        @RateLimited(name = "charged", rate = "1000/h", permits = "10", charge = "#cancelled ? 3 : 5")
        public Mono<String> charged() {
            return Work.mono();
        }

        @GetMapping("/waiting")
        @RateLimited(
                name = "queue",
                algorithm = Algorithm.CONCURRENCY,
                maxConcurrent = 1,
                policy = Policy.WAIT,
                maxWait = "1h")
        public Mono<String> waiting() {
            return Work.mono();
        }

        @GetMapping("/detached")
        @RateLimited(name = "handler", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public Mono<String> detached() {
            service.detached().subscribe();
            return Work.mono();
        }
    }

    /** Frames of HTTP/2 by a client that knows that its server speaks it. */
    private static final class Http2 {

        private final DataOutputStream out;

        private Http2(Socket client) throws IOException {
            // Tomcat knows this by the first bytes that it reads.
            out = new DataOutputStream(new BufferedOutputStream(client.getOutputStream()));
            out.writeBytes("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
            send(4, 0, 0, new byte[0]);
        }

        private void send(int type, int flags, int stream, byte[] payload) throws IOException {
            out.writeInt(payload.length << 8 | type);
            out.writeByte(flags);
            out.writeInt(stream);
            out.write(payload);
            out.flush();
        }

        /** The numbers are places in the static table of RFC 7541, A: GET, http, :path, :authority. */
        private void get(int stream, String path) throws IOException {
            ByteArrayOutputStream fields = new ByteArrayOutputStream();
            fields.write(0x82);
            fields.write(0x86);
            fields.write(4);
            fields.write(path.length());
            fields.writeBytes(path.getBytes(StandardCharsets.US_ASCII));
            fields.write(1);
            fields.write(1);
            fields.write('x');
            send(1, 5, stream, fields.toByteArray());
        }

        private void reset(int stream) throws IOException {
            send(3, 0, stream, new byte[] {0, 0, 0, 8});
        }
    }
}
