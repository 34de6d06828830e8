package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Threads;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.overload.RecordingBackend;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.Socket;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
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
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.client.RestClient;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;
import org.springframework.web.reactive.function.client.WebClient;
import org.springframework.web.server.ResponseStatusException;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.scheduler.Schedulers;

/** What clients see of a service that has too much to do, and what its limit on a route learns of their requests. */
@ParameterizedClass
@EnumSource(Kind.class)
@Tag("slow")
class OverloadTest {

    private static RunningServer server;

    @BeforeParameterizedClassInvocation
    static void start(Kind kind) {
        server = kind.start(
                List.of(App.class),
                "rate-limit.http.status=430",
                "rate-limit.limits.busy.algorithm=adaptive",
                "rate-limit.limits.busy.max-concurrent=1",
                "rate-limit.limits.routed.algorithm=adaptive",
                "rate-limit.limits.routed.max-concurrent=1",
                "rate-limit.limits.ends.algorithm=adaptive",
                "rate-limit.limits.ends.backend=recording",
                "rate-limit.limits.flight.algorithm=concurrency",
                "rate-limit.limits.flight.max-concurrent=1",
                "rate-limit.limits.spent.rate=1/h",
                "rate-limit.clients.partner.hosts=partner.example",
                "rate-limit.clients.partner.limits=spent",
                "rate-limit.limits.ranked.algorithm=concurrency",
                "rate-limit.limits.ranked.max-concurrent=2",
                "rate-limit.limits.ranked.priorities=critical,batch",
                "rate-limit.limits.ranked.priority=@classes.of(header('Key'))",
                "rate-limit.routes[0].path=/routed",
                "rate-limit.routes[0].limits=routed",
                "rate-limit.routes[1].path=/ends/**",
                "rate-limit.routes[1].limits=ends",
                "rate-limit.routes[2].path=/ranked",
                "rate-limit.routes[2].limits=ranked");
    }

    @AfterParameterizedClassInvocation
    static void stop() {
        server.close();
    }

    @Parameter
    Kind kind;

    @AfterEach
    void forgetTheEnds() {
        backend().ends.clear();
    }

    private static App app() {
        return server.context.getBean(App.class);
    }

    private static RecordingBackend backend() {
        return server.context.getBean(RecordingBackend.class);
    }

    /** Asks while the only place of a limit is taken. */
    private static HttpResponse<String> whileBusy(String limit, String path, String... headers) {
        return server.context.getBean(RateLimits.class).execute(limit, null, () -> server.get(path, headers));
    }

    @ParameterizedTest
    @ValueSource(strings = {"busy", "routed"})
    void aServiceThatHasTooMuchToDoIsUnavailable(String limit) {
        HttpResponse<String> refusal = whileBusy(limit, "/" + limit);

        assertThat(refusal.statusCode()).isEqualTo(503);
        assertThat(refusal.headers().firstValue("Content-Type")).hasValue("application/problem+json");
        assertThat(refusal.headers().firstValue("Cache-Control")).hasValue("no-store");
        assertThat(refusal.headers().firstValue("Retry-After").orElse("")).matches("[123]");
        assertThat(refusal.headers().map().keySet())
                .noneMatch(name -> name.toLowerCase(Locale.ROOT).startsWith("ratelimit"));
        String seconds = refusal.headers().firstValue("Retry-After").orElseThrow();
        assertThat(refusal.body())
                .contains(
                        "\"type\":\"https://iana.org/assignments/http-problem-types#temporary-reduced-capacity\"",
                        "\"title\":\"Request cannot be satisfied due to temporary server capacity constraints\"",
                        "\"status\":503",
                        "The service is overloaded (rate limit '" + limit + "'); retry after " + seconds + " s.")
                .doesNotContain("quota", "violated");
        HttpResponse<String> answer = server.get("/" + limit);
        assertThat(answer.statusCode()).isEqualTo(200);
        assertThat(answer.headers().map().keySet())
                .noneMatch(name -> name.toLowerCase(Locale.ROOT).startsWith("ratelimit"));
    }

    @Test
    void clientsAreToldDifferentTimes() {
        Set<String> seconds = new HashSet<>();
        // The chance that sixty refusals have one time is 1 : 3^59.
        for (int i = 0; i < 60; i++) {
            seconds.add(whileBusy("busy", "/busy")
                    .headers()
                    .firstValue("Retry-After")
                    .orElseThrow());
        }
        assertThat(seconds).hasSizeGreaterThan(1).isSubsetOf("1", "2", "3");
    }

    @Test
    void thePageOfABrowserHasTheSameStatus() {
        HttpResponse<String> page = whileBusy("busy", "/busy", "Accept", "text/html");
        assertThat(page.statusCode()).isEqualTo(503);
        assertThat(page.headers().firstValue("Retry-After").orElse("")).matches("[123]");
        assertThat(page.body()).contains("<html");
    }

    @Test
    void theStatusOfThePropertiesIsThatOfOtherLimits() {
        assertThat(whileBusy("flight", "/flight").statusCode()).isEqualTo(430);
    }

    @ParameterizedTest
    @CsvSource({"answer, ANSWERED", "missing, FAILED", "broken, FAILED", "busy, OVERLOADED", "timeout, OVERLOADED"})
    void aRouteLearnsHowARequestHasEnded(String path, String end) {
        server.get("/ends/" + path);
        Threads.until(() -> !backend().ends.isEmpty());
        assertThat(backend().ends).containsExactly(end);
    }

    /** Whoever answers it: the application may map the rejection to a status that means overload elsewhere. */
    @ParameterizedTest
    @CsvSource({
        "spent, 430",
        "caught/503, 503",
        "caught/504, 504",
        "mapped, 503",
        "mapped-method, 503",
        "mapped-stage, 503",
        "mapped-outgoing, 503",
        "mapped-outgoing-reactive, 503",
        "mapped-elsewhere, 503",
        "caught-outgoing, 503",
        "caught-outgoing-reactive, 503",
        "caught/200, 200"
    })
    void aRejectionByALimitOfTheApplicationIsNoOverloadWhateverItsStatus(String path, int status) {
        server.get("/ends/spent");
        Threads.until(() -> !backend().ends.isEmpty());
        backend().ends.clear();
        assertThat(server.get("/ends/" + path).statusCode()).isEqualTo(status);
        Threads.until(() -> !backend().ends.isEmpty());
        assertThat(backend().ends).containsExactly(status < 400 ? "ANSWERED" : "FAILED");
    }

    /** Its call has been made where nobody knows the request. WebFlux tells nobody what a handler method throws at once. */
    @Test
    void aRejectionThatComesFromAnotherThreadIsNoOverload() {
        Assumptions.assumeTrue(kind != Kind.REACTOR_NETTY);
        server.get("/ends/spent");
        Threads.until(() -> !backend().ends.isEmpty());
        backend().ends.clear();
        assertThat(server.get("/ends/mapped-joined").statusCode()).isEqualTo(503);
        Threads.until(() -> !backend().ends.isEmpty());
        assertThat(backend().ends).containsExactly("FAILED");
    }

    @Test
    void anOverloadAfterARejectionThatAFallbackAnswersIsOne() {
        server.get("/ends/spent");
        Threads.until(() -> !backend().ends.isEmpty());
        backend().ends.clear();
        assertThat(server.get("/ends/backup").statusCode()).isEqualTo(503);
        Threads.until(() -> !backend().ends.isEmpty());
        assertThat(backend().ends).containsExactly("OVERLOADED");
    }

    /** Its streams are measured on the way. */
    @Test
    void whatARouteReadsAndWritesIsWhole() throws Exception {
        String large = "0123456789".repeat(20_000);
        assertThat(post("/ends/echo", "text/plain", large)).isEqualTo(large);
        assertThat(post("/ends/form", "application/x-www-form-urlencoded", "name=value"))
                .isEqualTo("value");
        assertThat(post(
                        "/ends/form",
                        "multipart/form-data;boundary=x",
                        "--x\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nvalue\r\n--x--\r\n"))
                .isEqualTo("value");
        assertThat(post("/ends/parts", "text/plain", "")).isEqualTo("ab".repeat(20_000));
        Threads.until(() -> backend().ends.size() == 4);
        assertThat(backend().ends).containsOnly("ANSWERED");
    }

    /** Jetty fails where an empty body is asked for its readiness that is read by blocking. */
    @Test
    void buffersAreReadAndWritten() throws Exception {
        Assumptions.assumeTrue(kind != Kind.REACTOR_NETTY);
        for (String body : List.of("body", "")) {
            assertThat(post("/ends/buffers", "text/plain", body)).isEqualTo(body);
        }
        Threads.until(() -> backend().ends.size() == 2);
        assertThat(backend().ends).containsOnly("ANSWERED");
    }

    private static String post(String path, String type, String body) throws Exception {
        return RunningServer.client()
                .send(
                        HttpRequest.newBuilder(server.uri(path))
                                .header("Content-Type", type)
                                .POST(BodyPublishers.ofString(body))
                                .build(),
                        BodyHandlers.ofString())
                .body();
    }

    @Test
    void aRouteCountsARequestUntilItsResponseHasEnded() throws Exception {
        CompletableFuture<HttpResponse<String>> waiting = server.getAsync("/ends/held");
        assertThat(app().arrived.tryAcquire(20, TimeUnit.SECONDS)).isTrue();
        assertThat(backend().ends).isEmpty();
        app().go.release();
        assertThat(waiting.get(20, TimeUnit.SECONDS).body()).isEqualTo("held");
        Threads.until(() -> backend().ends.equals(List.of("ANSWERED")));
    }

    /** A servlet container learns of it when it writes. Reactor Netty completes a stream whose client has gone. */
    @Test
    void aClientThatHasGoneSaysNothingOfTheLoad() throws Exception {
        String path = kind == Kind.REACTOR_NETTY ? "never" : "stream";
        try (Socket socket = server.connect()) {
            socket.getOutputStream()
                    .write(("GET /ends/" + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n")
                            .getBytes(StandardCharsets.US_ASCII));
            assertThat(app().arrived.tryAcquire(20, TimeUnit.SECONDS)).isTrue();
        }
        Threads.until(() -> !backend().ends.isEmpty());
        assertThat(backend().ends).containsExactly("CANCELLED");
    }

    /** The failure of Jetty has a timeout as its cause. */
    @Test
    void aClientThatReadsTooSlowlySaysNothingOfTheLoad() {
        Assumptions.assumeTrue(kind != Kind.REACTOR_NETTY);
        HttpServletResponse slow = new HttpServletResponseWrapper(new MockHttpServletResponse()) {
            @Override
            public void flushBuffer() throws IOException {
                throw new IOException(new TimeoutException("idle"));
            }
        };
        FilterChain handler =
                (request, response) -> server.context.getBean(RateLimits.class).execute("ends", null, () -> {
                    try {
                        response.flushBuffer();
                        return "sent";
                    } catch (IOException ex) {
                        throw new UncheckedIOException(ex);
                    }
                });
        Filter fields = server.context
                .getBean("io.ratelimited.rateLimitFieldsFilter", FilterRegistrationBean.class)
                .getFilter();
        Filter routes = server.context.getBean("io.ratelimited.rateLimitBeforeSecurityFilter", Filter.class);
        MockHttpServletRequest slowly = new MockHttpServletRequest("GET", "/ends/slow");
        RequestContextHolder.setRequestAttributes(new ServletRequestAttributes(slowly, slow));
        try {
            assertThatThrownBy(() -> fields.doFilter(
                            slowly, slow, (request, response) -> routes.doFilter(request, response, handler)))
                    .isInstanceOf(UncheckedIOException.class);
        } finally {
            RequestContextHolder.resetRequestAttributes();
        }
        assertThat(backend().ends).containsExactly("CANCELLED", "CANCELLED");
    }

    @Test
    void aRouteReadsTheClassOfARequest() {
        RateLimits limits = server.context.getBean(RateLimits.class);
        limits.execute("ranked", null, () -> {
            assertThat(server.get("/ranked").statusCode()).isEqualTo(430);
            assertThat(server.get("/ranked", "Key", "someone").statusCode()).isEqualTo(430);
            assertThat(server.get("/ranked", "Key", "partner").statusCode()).isEqualTo(200);
            return "done";
        });
        // The place of the partner comes back when its response has ended, which may be after the answer has arrived.
        Threads.until(() -> limits.peek("ranked", null).remaining() == 2);
        assertThat(server.get("/ranked").statusCode()).isEqualTo(200);
    }

    static class Classes {

        public String of(String key) {
            return "partner".equals(key) ? "critical" : "batch";
        }
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import({Api.class, Buffers.class, Mapping.class, Backup.class})
    static class App {

        final Semaphore arrived = new Semaphore(0);
        final Semaphore go = new Semaphore(0);

        @Bean
        RecordingBackend recordingBackend() {
            return new RecordingBackend();
        }

        @Bean
        Classes classes() {
            return new Classes();
        }

        @Bean
        RestClient.Builder blockingPartner() {
            return RestClient.builder();
        }

        @Bean
        WebClient.Builder reactivePartner() {
            return WebClient.builder();
        }
    }

    @RestController
    static class Api {

        private final App app;
        private final RateLimits limits;
        private final Backup backup;

        Api(App app, RateLimits limits, Backup backup) {
            this.app = app;
            this.limits = limits;
            this.backup = backup;
        }

        @GetMapping("/busy")
        @RateLimited(name = "busy", algorithm = Algorithm.ADAPTIVE)
        String busy() {
            return "done";
        }

        @GetMapping("/flight")
        @RateLimited("flight")
        String flight() {
            return "done";
        }

        @GetMapping({"/routed", "/ranked"})
        String routed() {
            return "done";
        }

        @GetMapping("/ends/held")
        CompletableFuture<String> held() {
            app.arrived.release();
            return CompletableFuture.supplyAsync(() -> {
                app.go.acquireUninterruptibly();
                return "held";
            });
        }

        @GetMapping(path = "/ends/stream", produces = "text/event-stream")
        Flux<String> stream() {
            app.arrived.release();
            return Flux.interval(Duration.ofMillis(5)).onBackpressureDrop().map(number -> "part " + number);
        }

        @GetMapping("/ends/never")
        Mono<String> never() {
            app.arrived.release();
            return Mono.never();
        }

        @GetMapping("/ends/{how}")
        ResponseEntity<String> end(@PathVariable("how") String how) throws TimeoutException {
            return switch (how) {
                case "answer" -> ResponseEntity.ok("done");
                case "busy" ->
                    ResponseEntity.status(HttpStatus.SERVICE_UNAVAILABLE).body("busy");
                case "backup" ->
                    ResponseEntity.status(HttpStatus.SERVICE_UNAVAILABLE).body(backup.spent());
                case "broken" -> throw new IllegalStateException("broken");
                case "timeout" -> throw new TimeoutException("slow");
                case "spent" -> ResponseEntity.ok(limits.execute("spent", null, () -> "spent"));
                default -> throw new ResponseStatusException(HttpStatus.NOT_FOUND);
            };
        }
    }

    @RestController
    @ConditionalOnWebApplication(type = ConditionalOnWebApplication.Type.SERVLET)
    static class Buffers {

        @PostMapping("/ends/buffers")
        void buffers(HttpServletRequest request, HttpServletResponse response) throws IOException {
            ByteBuffer body = ByteBuffer.allocate(100);
            int read = request.getInputStream().read(body);
            response.getOutputStream().write(ByteBuffer.wrap(body.array(), 0, Math.max(0, read)));
        }
    }

    static class Backup {

        @RateLimited(name = "spent", fallback = "backup")
        public String spent() {
            return "spent";
        }

        String backup() {
            return "backup";
        }
    }

    /** Answers rejections itself, with the status of an overload. */
    @RestController
    static class Mapping {

        private static final String PARTNER = "http://partner.example/";

        private final RateLimits limits;
        private final RestClient restClient;
        private final WebClient webClient;

        Mapping(RateLimits limits, RestClient.Builder restClient, WebClient.Builder webClient) {
            this.limits = limits;
            this.restClient = restClient.build();
            this.webClient = webClient.build();
        }

        @GetMapping("/ends/mapped")
        String mapped() {
            return limits.execute("spent", null, () -> "spent");
        }

        @GetMapping("/ends/mapped-method")
        @RateLimited("spent")
        String mappedMethod() {
            return "spent";
        }

        @GetMapping("/ends/mapped-stage")
        CompletableFuture<String> mappedStage() {
            return limits.executeAsync("spent", null, () -> CompletableFuture.completedFuture("spent"));
        }

        @GetMapping("/ends/mapped-outgoing")
        String mappedOutgoing() {
            return restClient.get().uri(PARTNER).retrieve().body(String.class);
        }

        @GetMapping("/ends/mapped-outgoing-reactive")
        Mono<String> mappedReactiveOutgoing() {
            return webClient.get().uri(PARTNER).retrieve().bodyToMono(String.class);
        }

        @GetMapping("/ends/caught-outgoing")
        ResponseEntity<String> caughtOutgoing() {
            try {
                return ResponseEntity.ok(mappedOutgoing());
            } catch (RateLimitExceededException ex) {
                return later(ex);
            }
        }

        @GetMapping("/ends/caught-outgoing-reactive")
        Mono<ResponseEntity<String>> caughtReactiveOutgoing() {
            return mappedReactiveOutgoing()
                    .map(ResponseEntity::ok)
                    .onErrorResume(RateLimitExceededException.class, ex -> Mono.just(later(ex)));
        }

        @GetMapping("/ends/mapped-elsewhere")
        Mono<String> mappedElsewhere() {
            return Mono.fromCallable(this::mapped).subscribeOn(Schedulers.boundedElastic());
        }

        @GetMapping("/ends/mapped-joined")
        String mappedJoined() {
            return CompletableFuture.supplyAsync(this::mapped).join();
        }

        @GetMapping("/ends/caught/{status}")
        ResponseEntity<String> caught(@PathVariable("status") int status) {
            try {
                return ResponseEntity.ok(limits.execute("spent", null, () -> "spent"));
            } catch (RateLimitExceededException ex) {
                return ResponseEntity.status(status).body("later");
            }
        }

        @ExceptionHandler
        ResponseEntity<String> later(RateLimitExceededException rejection) {
            return ResponseEntity.status(HttpStatus.SERVICE_UNAVAILABLE).body("later");
        }

        @PostMapping("/ends/echo")
        String echo(@RequestBody String body) {
            return body;
        }

        @PostMapping("/ends/form")
        String form(Form form) {
            return form.name();
        }

        record Form(String name) {}

        @PostMapping("/ends/parts")
        Flux<String> parts() {
            return Flux.range(0, 20_000).map(number -> "ab");
        }
    }
}
