package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimiter;
import io.ratelimited.core.Reservation;
import io.ratelimited.core.Threads;
import io.ratelimited.core.memory.InMemoryRateLimiter;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.backend.LimiterFactory;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import jakarta.servlet.DispatcherType;
import jakarta.servlet.Filter;
import jakarta.servlet.ServletException;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.net.Socket;
import java.net.URI;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.AfterParameterizedClassInvocation;
import org.junit.jupiter.params.BeforeParameterizedClassInvocation;
import org.junit.jupiter.params.Parameter;
import org.junit.jupiter.params.ParameterizedClass;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.autoconfigure.condition.ConditionalOnWebApplication;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.Ordered;
import org.springframework.core.io.FileSystemResource;
import org.springframework.core.io.Resource;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.core.io.buffer.DefaultDataBufferFactory;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.WebFilter;
import org.springframework.web.servlet.mvc.method.annotation.ResponseBodyEmitter;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** When and that the places come back which routes hold for calls in flight. */
@ParameterizedClass
@EnumSource(Kind.class)
@Tag("slow")
class PlacesOfRoutesTest {

    private static final Pattern LENGTH = Pattern.compile("(?i)content-length: (\\d+)");

    /** Bytes of a body that fits in no buffer. */
    private static final int LARGE = 32 << 20;

    @TempDir
    private static Path files;

    private static RunningServer server;

    @BeforeParameterizedClassInvocation
    static void start(Kind kind) throws IOException {
        Files.writeString(files.resolve("small"), "hello");
        try (RandomAccessFile large =
                new RandomAccessFile(files.resolve("large").toFile(), "rw")) {
            large.setLength(LARGE);
        }
        server = kind.start(
                List.of(App.class),
                "server.shutdown=immediate",
                "rate-limit.limits.failing.algorithm=concurrency",
                "rate-limit.limits.failing.max-concurrent=9",
                "rate-limit.limits.failing.backend=failing",
                "rate-limit.limits.place.algorithm=concurrency",
                "rate-limit.limits.place.max-concurrent=1",
                "rate-limit.routes[0].path=/several/**",
                "rate-limit.routes[0].limits=failing,place",
                "rate-limit.limits.seat.algorithm=concurrency",
                "rate-limit.limits.seat.max-concurrent=1",
                "rate-limit.limits.adapting.algorithm=adaptive",
                "rate-limit.limits.adapting.min-concurrent=1",
                "rate-limit.limits.adapting.max-concurrent=1",
                "rate-limit.routes[1].path=/next/**",
                "rate-limit.routes[1].limits=seat",
                "rate-limit.routes[2].path=/adapting/**",
                "rate-limit.routes[2].limits=adapting");
    }

    @AfterParameterizedClassInvocation
    static void stop() {
        server.close();
    }

    @Parameter
    Kind kind;

    private static long free(String limit) {
        return server.context.getBean(RateLimits.class).peek(limit, null).remaining();
    }

    @ParameterizedTest
    @ValueSource(strings = {"/several/plain", "/several/mono"})
    void aPlaceComesBackAlthoughAnotherLimitOfItsRouteFails(String path) {
        assertThat(server.get(path).statusCode()).isEqualTo(200);
        Threads.untilAsserted(() -> assertThat(free("place")).isEqualTo(1));
    }

    /** The thread of the first request is held when its response has been sent, until the second one has been answered. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "/next/plain",
                "/next/mono",
                "/next/callable",
                "/next/closed",
                "/next/redirect",
                "/next/file/small",
                "/next/parts",
                "/adapting/plain"
            })
    void aClientThatHasTheWholeResponseMayCallAgain(String path) throws Exception {
        boolean ofServlets =
                List.of("/next/callable", "/next/closed", "/next/redirect").contains(path);
        assumeTrue(!ofServlets || kind != Kind.REACTOR_NETTY, "Spring MVC");
        assumeTrue(!path.equals("/next/parts") || kind == Kind.REACTOR_NETTY, "WebFlux");
        assumeTrue(!path.equals("/next/redirect") || kind == Kind.JETTY, "Tomcat sends a redirect at the end");
        Held held = server.context.getBean(Held.class);
        held.path = path;
        HttpResponse<String> first = server.get(path);
        assertThat(first.statusCode()).isLessThan(400);
        held.assertWhileItIsHeld(
                () -> assertThat(server.get(path + "?second").statusCode()).isEqualTo(first.statusCode()));
        String limit = path.startsWith("/next") ? "seat" : "adapting";
        Threads.untilAsserted(() -> assertThat(free(limit)).isEqualTo(1));
    }

    /** So a route limits concurrent downloads. */
    @ParameterizedTest
    @ValueSource(strings = {"/next/large", "/next/file/large"})
    void aClientThatReadsAWholeBodySlowlyKeepsItsPlace(String path) throws Exception {
        assumeTrue(
                kind != Kind.REACTOR_NETTY || !path.equals("/next/large"),
                "a response of one value has ended as soon as it starts");
        try (Socket client = server.connect()) {
            client.getOutputStream()
                    .write(("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
            client.getInputStream().readNBytes(10_000);
            assertThat(free("seat")).isZero();
            client.getInputStream().readNBytes(LARGE - 10_000);
            Threads.untilAsserted(() -> assertThat(free("seat")).isEqualTo(1));
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"/next/plain", "/next/several", "/next/none"})
    void callsInSequenceAreNeverRejected(String path) throws Exception {
        try (Socket one = server.connect();
                Socket other = server.connect()) {
            for (int i = 0; i < 200; i++) {
                assertThat(answer(i % 2 == 0 ? one : other, path)).startsWith("HTTP/1.1 20");
            }
        }
    }

    /** The client has the whole response, but its handler works on. */
    @ParameterizedTest
    @CsvSource({"HEAD, 200", "GET, 204", "GET, 304"})
    void aHandlerThatSendsAHeadKeepsItsPlaceWhileItWorks(String method, int status) throws Exception {
        assumeTrue(kind != Kind.REACTOR_NETTY, "Spring MVC");
        Held held = server.context.getBean(Held.class);
        assertThat(server.send(method, "/next/flushed?status=" + status).statusCode())
                .isEqualTo(status);
        held.assertWhileItIsHeld(() -> assertThat(free("seat")).isZero());
        Threads.untilAsserted(() -> assertThat(free("seat")).isEqualTo(1));
    }

    /** Servers ignore the length that an included part has, and its redirects. */
    @ParameterizedTest
    @CsvSource({"/part, <part>", "/redirecting, <>"})
    void aPageThatIncludesAnotherKeepsItsPlaceWhileItsHandlerWorks(String part, String page) throws Exception {
        assumeTrue(kind != Kind.REACTOR_NETTY, "Spring MVC");
        Held held = server.context.getBean(Held.class);
        CompletableFuture<HttpResponse<String>> response = server.getAsync("/next/page?part=" + part);
        held.assertWhileItIsHeld(() -> assertThat(free("seat")).isZero());
        assertThat(response.get(20, TimeUnit.SECONDS).body()).isEqualTo(page);
        Threads.untilAsserted(() -> assertThat(free("seat")).isEqualTo(1));
    }

    @Test
    void aBodyOfKnownLengthKeepsItsPlaceUntilItsLastPart() throws Exception {
        assumeTrue(kind == Kind.REACTOR_NETTY, "WebFlux");
        Held held = server.context.getBean(Held.class);
        CompletableFuture<HttpResponse<String>> response = server.getAsync("/next/held-parts");
        held.assertWhileItIsHeld(() -> assertThat(free("seat")).isZero());
        assertThat(response.get(20, TimeUnit.SECONDS).body()).isEqualTo("hello");
        Threads.untilAsserted(() -> assertThat(free("seat")).isEqualTo(1));
    }

    /** Nobody can read its body, but that is nothing to its handler. */
    @Test
    void aRequestWhoseBodyIsMalformedKeepsItsPlaceUntilItsResultIsThere() throws Exception {
        assumeTrue(kind == Kind.JETTY, "Tomcat ends such a request when its first dispatch returns");
        Held held = server.context.getBean(Held.class);
        try (Socket client = server.connect()) {
            client.getOutputStream()
                    .write("POST /next/job HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\nbegun"
                            .getBytes(StandardCharsets.US_ASCII));
            assertThat(held.suspended.tryAcquire(20, TimeUnit.SECONDS)).isTrue();
            held.assertWhileItIsHeld(() -> assertThat(free("seat")).isZero());
        }
        Threads.untilAsserted(() -> assertThat(free("seat")).isEqualTo(1));
    }

    /** A limit of the method ends as one of the route does. */
    @ParameterizedTest
    @ValueSource(strings = {"/stream", "/emitter"})
    void aStreamOfKnownLengthEndsWithItsLastByte(String path) throws Exception {
        assumeTrue(kind != Kind.REACTOR_NETTY, "Spring MVC");
        Held held = server.context.getBean(Held.class);
        assertThat(server.get(path).body()).isEqualTo("hello");
        held.assertWhileItIsHeld(() -> assertThat(free("streams")).isEqualTo(1));
    }

    /** Sends a request and reads the response to it, not a byte more. */
    private static String answer(Socket client, String path) throws IOException {
        client.getOutputStream()
                .write(("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n").getBytes(StandardCharsets.US_ASCII));
        InputStream in = client.getInputStream();
        StringBuilder answer = new StringBuilder();
        while (answer.indexOf("\r\n\r\n") < 0) {
            answer.append((char) in.read());
        }
        Matcher length = LENGTH.matcher(answer);
        if (length.find()) {
            in.readNBytes(Integer.parseInt(length.group(1)));
        } else if (!answer.toString().startsWith("HTTP/1.1 204")) {
            while (answer.indexOf("\r\n0\r\n\r\n") < 0) {
                answer.append((char) in.read());
            }
        }
        return answer.toString();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Failing.class, Held.class, Api.class, Servlets.class, Reactive.class})
    static class App {

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }
    }

    /** Holds a request whose response has been sent. */
    static final class Held {

        private final Semaphore reached = new Semaphore(0);
        /** Of one test: a request that its client leaves may not pass it. */
        private volatile CountDownLatch gate = new CountDownLatch(1);
        /** Requests that go on after their first dispatch. */
        private final Semaphore suspended = new Semaphore(0);

        private volatile String path = "";

        private boolean holds(String path, @Nullable String query) {
            return path.equals(this.path) && query == null;
        }

        private void assertWhileItIsHeld(Runnable assertion) throws InterruptedException {
            try {
                assertThat(reached.tryAcquire(20, TimeUnit.SECONDS)).isTrue();
                assertion.run();
            } finally {
                path = "";
                gate.countDown();
                gate = new CountDownLatch(1);
            }
        }

        private void hold() {
            CountDownLatch opened = gate;
            reached.release();
            try {
                assertThat(opened.await(20, TimeUnit.SECONDS)).isTrue();
            } catch (InterruptedException ex) {
                throw new IllegalStateException(ex);
            }
        }
    }

    @RestController
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    static class Servlets {

        @Bean
        static FilterRegistrationBean<Filter> holding(Held held) {
            FilterRegistrationBean<Filter> holding = new FilterRegistrationBean<>((request, response, chain) -> {
                chain.doFilter(request, response);
                HttpServletRequest http = (HttpServletRequest) request;
                if (!request.isAsyncStarted() && held.holds(http.getRequestURI(), http.getQueryString())) {
                    response.flushBuffer();
                    held.hold();
                }
            });
            holding.setAsyncSupported(true);
            holding.setDispatcherTypes(DispatcherType.REQUEST, DispatcherType.ASYNC);
            return holding;
        }

        private final Held held;

        Servlets(Held held) {
            this.held = held;
        }

        /** Around the filters of limits. */
        @Bean
        static FilterRegistrationBean<Filter> suspended(Held held) {
            FilterRegistrationBean<Filter> suspended = new FilterRegistrationBean<>((request, response, chain) -> {
                chain.doFilter(request, response);
                if (request.isAsyncStarted()) {
                    held.suspended.release();
                }
            });
            suspended.setAsyncSupported(true);
            suspended.setOrder(Ordered.HIGHEST_PRECEDENCE);
            suspended.addUrlPatterns("/next/job");
            return suspended;
        }

        @PostMapping("/next/job")
        public Callable<String> job(HttpServletRequest request) {
            assertThatThrownBy(() -> request.getInputStream().readAllBytes()).isInstanceOf(IOException.class);
            return () -> {
                held.hold();
                return "done";
            };
        }

        @GetMapping("/next/flushed")
        public void flushed(@RequestParam("status") int status, HttpServletResponse response) throws IOException {
            response.setStatus(status);
            response.flushBuffer();
            held.hold();
        }

        @GetMapping("/next/page")
        public void page(@RequestParam("part") String part, HttpServletRequest request, HttpServletResponse response)
                throws IOException, ServletException {
            response.getOutputStream().print("<");
            request.getRequestDispatcher(part).include(request, response);
            held.hold();
            response.getOutputStream().print(">");
        }

        @GetMapping("/part")
        public void part(HttpServletResponse response) throws IOException {
            response.setContentLength(4);
            response.getOutputStream().print("part");
        }

        @GetMapping("/redirecting")
        public void redirecting(HttpServletResponse response) throws IOException {
            response.sendRedirect("/next/plain");
        }

        @GetMapping("/stream")
        @RateLimited(name = "streams", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 1)
        public ResponseEntity<StreamingResponseBody> stream() {
            return ResponseEntity.ok().contentLength(5).body(body -> {
                body.write("hello".getBytes(StandardCharsets.US_ASCII));
                body.flush();
                held.hold();
            });
        }

        @GetMapping("/emitter")
        @RateLimited("streams")
        public ResponseEntity<ResponseBodyEmitter> emitter() {
            ResponseBodyEmitter emitter = new ResponseBodyEmitter();
            Threads.start(() -> {
                emitter.send("hello");
                held.hold();
                emitter.complete();
                return true;
            });
            return ResponseEntity.ok().contentLength(5).body(emitter);
        }

        @GetMapping("/next/callable")
        public Callable<String> callable() {
            return () -> "hello";
        }

        @GetMapping("/next/closed")
        public void closed(HttpServletResponse response) throws IOException {
            try (OutputStream body = response.getOutputStream()) {
                body.write("hello".getBytes(StandardCharsets.US_ASCII));
                body.flush();
            }
        }

        @GetMapping("/next/redirect")
        public void redirect(HttpServletResponse response) throws IOException {
            response.sendRedirect("/next/plain");
        }
    }

    @RestController
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.REACTIVE)
    static class Reactive {

        private final Held held;

        Reactive(Held held) {
            this.held = held;
        }

        @Bean
        static WebFilter holding(Held held) {
            return (exchange, chain) -> chain.filter(exchange).then(Mono.defer(() -> {
                URI uri = exchange.getRequest().getURI();
                return held.holds(uri.getPath(), uri.getQuery())
                        ? Mono.<Void>fromRunnable(held::hold).subscribeOn(Schedulers.boundedElastic())
                        : Mono.empty();
            }));
        }

        @GetMapping("/next/parts")
        public ResponseEntity<Flux<DataBuffer>> parts() {
            return ResponseEntity.ok().contentLength(5).body(Flux.just(buffer("hel"), buffer("lo")));
        }

        @GetMapping("/next/held-parts")
        public ResponseEntity<Flux<DataBuffer>> heldParts() {
            Mono<DataBuffer> last = Mono.fromCallable(() -> {
                        held.hold();
                        return buffer("lo");
                    })
                    .subscribeOn(Schedulers.boundedElastic());
            return ResponseEntity.ok().contentLength(5).body(Flux.concat(Mono.just(buffer("hel")), last));
        }

        private static DataBuffer buffer(String part) {
            return DefaultDataBufferFactory.sharedInstance.wrap(part.getBytes(StandardCharsets.US_ASCII));
        }
    }

    /** Limits whose backend fails when a call has ended. */
    static final class Failing implements LimiterFactory {

        private final ManualTicker ticker;

        Failing(ManualTicker ticker) {
            this.ticker = ticker;
        }

        @Override
        public String backend() {
            return "failing";
        }

        @Override
        public RateLimiter create(Limit limit, String tier, Map<String, String> properties) {
            return failing(RateLimiter.class, new InMemoryRateLimiter(limit, ticker, 100));
        }

        private static <T> T failing(Class<T> type, T target) {
            return type.cast(Proxy.newProxyInstance(
                    type.getClassLoader(), new Class<?>[] {type}, (proxy, method, args) -> {
                        if (method.getName().equals("release")) {
                            throw new IllegalStateException("as the test wants");
                        }
                        Object result;
                        try {
                            result = method.invoke(target, args);
                        } catch (InvocationTargetException ex) {
                            throw ex.getCause();
                        }
                        return result instanceof Reservation reservation
                                ? failing(Reservation.class, reservation)
                                : method.getName().equals("reserveAsync")
                                        ? ((CompletionStage<?>) result)
                                                .thenApply(
                                                        reserved -> failing(Reservation.class, (Reservation) reserved))
                                        : result;
                    }));
        }
    }

    @RestController
    static class Api {

        @GetMapping("/several/plain")
        public String plain() {
            return "hello";
        }

        @GetMapping({"/next/plain", "/adapting/plain"})
        public String next() {
            return "hello";
        }

        @GetMapping("/next/several")
        public Flux<String> several() {
            return Flux.just("hel", "lo");
        }

        @GetMapping("/next/none")
        public ResponseEntity<Void> none() {
            return ResponseEntity.noContent().build();
        }

        @GetMapping("/next/large")
        public byte[] large() {
            return new byte[LARGE];
        }

        @GetMapping("/next/file/{name}")
        public Resource file(@PathVariable("name") String name) {
            return new FileSystemResource(files.resolve(name));
        }

        @GetMapping("/next/mono")
        public Mono<String> later() {
            return Mono.just("hello");
        }

        @GetMapping("/several/mono")
        public Mono<String> mono() {
            return Mono.just("hello");
        }
    }
}
