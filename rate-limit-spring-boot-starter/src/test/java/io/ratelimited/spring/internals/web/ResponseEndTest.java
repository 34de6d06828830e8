package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.ratelimited.core.Algorithm;
import io.ratelimited.core.Threads;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimited;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import jakarta.servlet.AsyncEvent;
import jakarta.servlet.AsyncListener;
import jakarta.servlet.Filter;
import jakarta.servlet.FilterChain;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.io.IOException;
import java.net.Socket;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
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
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.http.ResponseEntity;
import org.springframework.mock.web.MockAsyncContext;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.context.request.RequestContextHolder;
import org.springframework.web.context.request.ServletRequestAttributes;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.context.request.async.WebAsyncTask;
import org.springframework.web.servlet.AsyncHandlerInterceptor;
import org.springframework.web.servlet.config.annotation.InterceptorRegistry;
import org.springframework.web.servlet.config.annotation.WebMvcConfigurer;
import org.springframework.web.servlet.mvc.method.annotation.ResponseBodyEmitter;
import org.springframework.web.servlet.mvc.method.annotation.SseEmitter;
import org.springframework.web.servlet.mvc.method.annotation.StreamingResponseBody;

/** A place of CONCURRENCY is held until the response has ended where Spring MVC goes on after the handler method. */
@ParameterizedClass
@EnumSource(names = {"TOMCAT", "JETTY"})
@Tag("slow")
class ResponseEndTest {

    private static RunningServer server;

    @BeforeParameterizedClassInvocation
    static void start(Kind kind) {
        server = kind.start(List.of(App.class), "server.shutdown=immediate");
    }

    @AfterParameterizedClassInvocation
    static void stop() {
        server.close();
    }

    @Parameter
    Kind kind;

    @AfterEach
    void everyPlaceIsFree() {
        Threads.until(() -> free() == 2);
        app().returned.drainPermits();
        app().work.drainPermits();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "callable",
                "task",
                "deferred",
                "stream",
                "emitter",
                "events",
                "entity",
                "future",
                "future-stream"
            })
    void aPlaceIsHeldUntilTheResponseHasEnded(String path) throws Exception {
        int stages = path.equals("future-stream") ? 2 : 1;
        CompletableFuture<HttpResponse<String>> response = server.getAsync("/" + path);
        returned(stages);
        assertThat(free()).isEqualTo(1);
        CompletableFuture<HttpResponse<String>> second = server.getAsync("/" + path);
        returned(stages);
        assertThat(free()).isZero();
        assertThat(server.get("/callable").statusCode()).isEqualTo(429);

        app().work.release(2);

        for (CompletableFuture<HttpResponse<String>> each : List.of(response, second)) {
            HttpResponse<String> ended = each.get(20, TimeUnit.SECONDS);
            assertThat(ended.statusCode()).isEqualTo(200);
            assertThat(ended.body()).contains("done");
        }
        Threads.until(() -> free() == 2);
    }

    @Test
    void aPlaceIsFreeAfterAFailure() {
        assertThat(server.get("/failing").statusCode()).isEqualTo(500);
        Threads.until(() -> free() == 2);
    }

    /** Jetty aborts such a response without a word to the listeners of its asynchronous processing. */
    @ParameterizedTest
    @ValueSource(strings = {"broken-stream", "broken-events"})
    void aPlaceIsFreeAfterAFailureOfAResponseThatHasBegun(String path) throws Exception {
        CompletableFuture<HttpResponse<String>> response = server.getAsync("/" + path);
        returned(1);
        app().work.release();
        Threads.until(response::isDone);
        Threads.until(() -> free() == 2);
    }

    @Test
    void aPlaceIsFreeAfterAnErrorThatTheServerReports() throws Exception {
        MockAsyncContext processing = processing();
        for (AsyncListener listener : processing.getListeners()) {
            listener.onError(new AsyncEvent(processing, new IOException("the client is gone")));
        }
        assertThat(free()).isEqualTo(2);
    }

    @Test
    void aPlaceIsHeldUntilTheLastOfSeveralDispatchesHasEnded() throws Exception {
        MockAsyncContext processing = processing();
        MockAsyncContext second = new MockAsyncContext(processing.getRequest(), processing.getResponse());
        for (AsyncListener listener : processing.getListeners()) {
            listener.onStartAsync(new AsyncEvent(second));
        }
        assertThat(free()).isEqualTo(1);
        second.complete();
        assertThat(free()).isEqualTo(2);
    }

    /** That of a request whose handler method holds a place; the first dispatch has ended. */
    private static MockAsyncContext processing() throws Exception {
        MockHttpServletRequest request = new MockHttpServletRequest("GET", "/callable");
        request.setAsyncSupported(true);
        MockHttpServletResponse response = new MockHttpServletResponse();
        RequestContextHolder.setRequestAttributes(new ServletRequestAttributes(request, response));
        try {
            FilterChain chain = (first, answer) -> {
                server.context.getBean(Api.class).callable();
                first.startAsync();
            };
            server.context
                    .getBean("io.ratelimited.rateLimitFilter", Filter.class)
                    .doFilter(request, response, chain);
        } finally {
            RequestContextHolder.resetRequestAttributes();
        }
        assertThat(free()).isEqualTo(1);
        return (MockAsyncContext) request.getAsyncContext();
    }

    @Test
    void aPlaceIsFreeWhenTheResultIsNotAwaited() {
        server.get("/unawaited");
        Threads.until(() -> free() == 2);
    }

    @Test
    void aPlaceIsFreeAfterATimeout() {
        assertThat(server.get("/timeout").statusCode()).isEqualTo(503);
        Threads.until(() -> free() == 2);
    }

    @Test
    void aPlaceIsFreeAfterTheClientIsGone() throws Exception {
        assumeTrue(kind == Kind.TOMCAT, "Jetty sees that a client is gone when the request times out, after 30 s");
        try (Socket client = server.connect()) {
            client.getOutputStream()
                    .write("GET /events HTTP/1.1\r\nHost: x\r\n\r\n".getBytes(StandardCharsets.US_ASCII));
            client.getOutputStream().flush();
            returned(1);
            assertThat(free()).isEqualTo(1);
            client.setSoLinger(true, 0);
        }
        Threads.until(() -> {
            try {
                app().emitter().send("are you there?");
            } catch (IOException | IllegalStateException ex) {
                // The server has noticed.
            }
            return free() == 2;
        });
        // Until the work of that response has it: it would take it from the next test.
        app().work.release();
        Threads.until(() -> app().work.availablePermits() == 0);
    }

    /** A handler method has returned, and its response goes on. */
    private static void returned(int times) throws InterruptedException {
        assertThat(app().returned.tryAcquire(times, 20, TimeUnit.SECONDS)).isTrue();
    }

    private static App app() {
        return server.context.getBean(App.class);
    }

    private static long free() {
        return server.context.getBean(RateLimits.class).peek("places", null).remaining();
    }

    @Configuration(proxyBeanMethods = false)
    @EnableAutoConfiguration
    @Import(Api.class)
    static class App implements WebMvcConfigurer, AsyncHandlerInterceptor {

        final Semaphore returned = new Semaphore(0);
        final Semaphore work = new Semaphore(0);
        final BlockingQueue<SseEmitter> emitters = new LinkedBlockingQueue<>();

        SseEmitter emitter() {
            return emitters.element();
        }

        @Bean
        ManualTicker ticker() {
            return new ManualTicker();
        }

        @Override
        public void addInterceptors(InterceptorRegistry registry) {
            registry.addInterceptor(this);
        }

        @Override
        public void afterConcurrentHandlingStarted(
                HttpServletRequest request, HttpServletResponse response, Object handler) {
            returned.release();
        }

        String work() throws InterruptedException {
            assertThat(work.tryAcquire(20, TimeUnit.SECONDS)).isTrue();
            return "done";
        }
    }

    @RestController
    static class Api {

        private final App app;

        Api(App app) {
            this.app = app;
        }

        @GetMapping("/callable")
        @RateLimited(name = "places", algorithm = Algorithm.CONCURRENCY, maxConcurrent = 2)
        Callable<String> callable() {
            return app::work;
        }

        @GetMapping("/task")
        @RateLimited("places")
        WebAsyncTask<String> task() {
            return new WebAsyncTask<>(app::work);
        }

        @GetMapping("/deferred")
        @RateLimited("places")
        DeferredResult<String> deferred() {
            DeferredResult<String> result = new DeferredResult<>();
            later(() -> result.setResult(app.work()));
            return result;
        }

        @GetMapping("/stream")
        @RateLimited("places")
        StreamingResponseBody stream() {
            return out -> {
                try {
                    out.write(app.work().getBytes(StandardCharsets.US_ASCII));
                } catch (InterruptedException ex) {
                    throw new IllegalStateException(ex);
                }
            };
        }

        @GetMapping("/entity")
        @RateLimited("places")
        ResponseEntity<StreamingResponseBody> entity() {
            return ResponseEntity.ok(stream());
        }

        @GetMapping("/emitter")
        @RateLimited("places")
        ResponseBodyEmitter emitter() {
            return follow(new ResponseBodyEmitter());
        }

        @GetMapping("/events")
        @RateLimited("places")
        SseEmitter events() {
            SseEmitter emitter = new SseEmitter();
            app.emitters.clear();
            app.emitters.add(emitter);
            return follow(emitter);
        }

        @GetMapping("/future")
        @RateLimited("places")
        CompletableFuture<String> future() {
            CompletableFuture<String> future = new CompletableFuture<>();
            later(() -> future.complete(app.work()));
            return future;
        }

        @GetMapping("/future-stream")
        @RateLimited("places")
        CompletableFuture<ResponseEntity<StreamingResponseBody>> futureStream() {
            return CompletableFuture.completedFuture(entity());
        }

        @GetMapping("/failing")
        @RateLimited("places")
        Callable<String> failing() {
            return () -> {
                throw new IllegalStateException("as the test wants");
            };
        }

        /** A body like any other to Spring MVC. */
        @GetMapping("/unawaited")
        @RateLimited("places")
        ResponseEntity<Callable<String>> unawaited() {
            return ResponseEntity.ok(() -> "never called");
        }

        @GetMapping("/broken-stream")
        @RateLimited("places")
        StreamingResponseBody brokenStream() {
            return out -> {
                stream().writeTo(out);
                out.flush();
                throw new IllegalStateException("as the test wants");
            };
        }

        @GetMapping("/broken-events")
        @RateLimited("places")
        SseEmitter brokenEvents() {
            SseEmitter emitter = new SseEmitter();
            later(() -> {
                emitter.send(app.work());
                emitter.completeWithError(new IllegalStateException("as the test wants"));
                return true;
            });
            return emitter;
        }

        /** Not shorter: Jetty loses a timeout that has passed before Jetty has noted its timer. */
        @GetMapping("/timeout")
        @RateLimited("places")
        DeferredResult<String> timeout() {
            return new DeferredResult<>(250L);
        }

        private <T extends ResponseBodyEmitter> T follow(T emitter) {
            later(() -> {
                emitter.send(app.work());
                emitter.complete();
                return true;
            });
            return emitter;
        }

        private static void later(Callable<Boolean> task) {
            Thread thread = new Thread(() -> {
                try {
                    task.call();
                } catch (Exception ex) {
                    // The client is gone.
                }
            });
            thread.setDaemon(true);
            thread.start();
        }
    }
}
