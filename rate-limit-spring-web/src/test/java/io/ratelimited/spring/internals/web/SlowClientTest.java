package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.overload.FoundLimit;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.TestLimits;
import io.ratelimited.spring.internals.web.reactive.RateLimitWebFilter;
import io.ratelimited.spring.internals.web.servlet.RateLimitFilter;
import jakarta.servlet.AsyncContext;
import jakarta.servlet.FilterChain;
import jakarta.servlet.ReadListener;
import jakarta.servlet.ServletException;
import jakarta.servlet.ServletInputStream;
import jakarta.servlet.ServletOutputStream;
import jakarta.servlet.WriteListener;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletRequestWrapper;
import jakarta.servlet.http.HttpServletResponse;
import jakarta.servlet.http.HttpServletResponseWrapper;
import jakarta.servlet.http.Part;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.PrintWriter;
import java.io.Reader;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.reactivestreams.Subscription;
import org.springframework.context.ApplicationContext;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.core.io.buffer.DataBufferUtils;
import org.springframework.core.io.buffer.DefaultDataBufferFactory;
import org.springframework.http.server.reactive.ServerHttpResponse;
import org.springframework.mock.http.server.reactive.MockServerHttpRequest;
import org.springframework.mock.http.server.reactive.MockServerHttpResponse;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;
import org.springframework.mock.web.server.MockServerWebExchange;
import org.springframework.util.MultiValueMap;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.ServerWebExchangeDecorator;
import org.springframework.web.server.WebFilterChain;
import reactor.core.Disposable;
import reactor.core.publisher.BaseSubscriber;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;
import reactor.core.publisher.Sinks;

/** On a route the time of a slow client is not that of the service: neither for its bytes, nor until it takes ours. */
class SlowClientTest {

    private static final Duration SERVICE = Duration.ofMillis(20);
    private static final Duration CLIENT = Duration.ofSeconds(2);

    private static final String[] PROPERTIES = {
        "rate-limit.limits.service.algorithm=adaptive", "rate-limit.limits.service.late-after=1s"
    };

    private final ManualTicker ticker = new ManualTicker();

    private static FoundLimit found(ApplicationContext context) {
        return Objects.requireNonNull(
                TestLimits.of(context).configured("service").limiter().foundLimit());
    }

    private void assertOnlyTheServiceCounts(ApplicationContext context) {
        assertThat(found(context).baseTime()).isEqualTo(SERVICE);
        assertThat(found(context).inFlight()).isZero();
        assertThat(found(context).limit()).isEqualTo(1000);
    }

    // Servlets.

    /** What code of a servlet does with a request whose client is slow. */
    private enum Servlet {
        STREAM {
            @Override
            void serve(Slow client, HttpServletRequest request, HttpServletResponse response) throws IOException {
                assertThat(request.getInputStream()).isSameAs(request.getInputStream());
                assertThat(request.getInputStream().read()).isEqualTo('b');
                assertThat(new String(request.getInputStream().readAllBytes(), StandardCharsets.US_ASCII))
                        .isEqualTo("ody");
                client.work();
                response.getOutputStream().write("answer".getBytes(StandardCharsets.US_ASCII));
                response.getOutputStream().write('.');
                response.getOutputStream().flush();
            }
        },
        READER_AND_WRITER {
            @Override
            void serve(Slow client, HttpServletRequest request, HttpServletResponse response) throws IOException {
                assertThat(request.getReader()).isSameAs(request.getReader());
                assertThat(request.getReader().readLine()).isEqualTo("body");
                client.work();
                PrintWriter writer = response.getWriter();
                assertThat(writer).isSameAs(response.getWriter());
                writer.print("answ");
                writer.write(new char[] {'e', 'r', '.'});
                assertThat(writer.checkError()).isFalse();
            }
        },
        RESET_AND_FLUSH {
            @Override
            void serve(Slow client, HttpServletRequest request, HttpServletResponse response) throws IOException {
                assertThat(request.getInputStream().readAllBytes()).hasSize(4);
                response.getWriter().print("a page that is thrown away");
                response.reset();
                client.work();
                response.getOutputStream().print("answer.");
                response.flushBuffer();
            }
        },
        FORM {
            @Override
            void serve(Slow client, HttpServletRequest request, HttpServletResponse response) throws IOException {
                assertThat(request.getParameter("name")).isEqualTo("value");
                assertThat(request.getParameterValues("name")).containsExactly("value");
                assertThat(request.getParameterMap()).containsOnlyKeys("name");
                assertThat(Collections.list(request.getParameterNames())).containsExactly("name");
                client.work();
                response.getOutputStream().print("answer.");
            }
        },
        PARTS {
            @Override
            void serve(Slow client, HttpServletRequest request, HttpServletResponse response)
                    throws IOException, ServletException {
                assertThat(request.getParts()).isEmpty();
                assertThat(request.getPart("name")).isNull();
                client.work();
                response.getOutputStream().print("answer.");
            }
        };

        abstract void serve(Slow client, HttpServletRequest request, HttpServletResponse response)
                throws IOException, ServletException;
    }

    /** A client that takes two seconds for whatever the server asks of it. */
    private static final class Slow extends HttpServletRequestWrapper {

        private final ManualTicker ticker;
        private final MockHttpServletRequest mock;
        private final MockHttpServletResponse answer = new MockHttpServletResponse();

        private Slow(ManualTicker ticker) {
            super(new MockHttpServletRequest("POST", "/reports"));
            this.ticker = ticker;
            this.mock = (MockHttpServletRequest) getRequest();
            mock.setContent("body".getBytes(StandardCharsets.US_ASCII));
            mock.addParameter("name", "value");
            mock.setAsyncSupported(true);
        }

        private void waits() {
            ticker.advance(CLIENT);
        }

        private void work() {
            ticker.advance(SERVICE);
        }

        @Override
        public ServletInputStream getInputStream() throws IOException {
            ServletInputStream body = super.getInputStream();
            return new ServletInputStream() {
                @Override
                public int read() throws IOException {
                    waits();
                    return body.read();
                }

                @Override
                public int read(byte[] into, int from, int length) throws IOException {
                    waits();
                    return body.read(into, from, length);
                }

                @Override
                public boolean isFinished() {
                    return body.isFinished();
                }

                @Override
                public boolean isReady() {
                    return true;
                }

                @Override
                public void setReadListener(ReadListener listener) {
                    throw new UnsupportedOperationException();
                }
            };
        }

        @Override
        public BufferedReader getReader() throws IOException {
            Reader body = super.getReader();
            return new BufferedReader(new Reader() {
                @Override
                public int read(char[] into, int from, int length) throws IOException {
                    waits();
                    return body.read(into, from, length);
                }

                @Override
                public void close() throws IOException {
                    body.close();
                }
            });
        }

        @Override
        public String getParameter(String name) {
            waits();
            return super.getParameter(name);
        }

        @Override
        public Map<String, String[]> getParameterMap() {
            waits();
            return super.getParameterMap();
        }

        @Override
        public Enumeration<String> getParameterNames() {
            waits();
            return super.getParameterNames();
        }

        @Override
        public String[] getParameterValues(String name) {
            waits();
            return super.getParameterValues(name);
        }

        @Override
        public Collection<Part> getParts() throws IOException, ServletException {
            waits();
            return super.getParts();
        }

        @Override
        public Part getPart(String name) throws IOException, ServletException {
            waits();
            return super.getPart(name);
        }

        private HttpServletResponse response() {
            return new HttpServletResponseWrapper(answer) {
                @Override
                public ServletOutputStream getOutputStream() throws IOException {
                    ServletOutputStream body = super.getOutputStream();
                    return new ServletOutputStream() {
                        @Override
                        public void write(int one) throws IOException {
                            waits();
                            body.write(one);
                        }

                        @Override
                        public void write(byte[] from, int offset, int length) throws IOException {
                            waits();
                            body.write(from, offset, length);
                        }

                        @Override
                        public void flush() throws IOException {
                            waits();
                            body.flush();
                        }

                        @Override
                        public boolean isReady() {
                            return true;
                        }

                        @Override
                        public void setWriteListener(WriteListener listener) {
                            throw new UnsupportedOperationException();
                        }
                    };
                }

                @Override
                public PrintWriter getWriter() throws IOException {
                    PrintWriter body = super.getWriter();
                    return new PrintWriter(new Writer() {
                        @Override
                        public void write(char[] from, int offset, int length) {
                            waits();
                            body.write(from, offset, length);
                        }

                        @Override
                        public void flush() {
                            waits();
                            body.flush();
                        }

                        @Override
                        public void close() {
                            body.close();
                        }
                    });
                }

                @Override
                public void flushBuffer() throws IOException {
                    waits();
                    super.flushBuffer();
                }
            };
        }
    }

    private interface Served {
        void by(ApplicationContext context, RateLimitFilter filter) throws Exception;
    }

    private void servlets(Served served) {
        RouteFilters.limited(ticker, PROPERTIES)
                .run(context -> served.by(context, RouteFilters.servlet(context, "service")));
    }

    @ParameterizedTest
    @EnumSource
    void aServletThatWaitsForItsClientIsNotSlow(Servlet servlet) {
        servlets((context, filter) -> {
            for (int i = 0; i < 20; i++) {
                Slow client = new Slow(ticker);
                filter.doFilter(
                        client,
                        client.response(),
                        (request, response) ->
                                servlet.serve(client, (HttpServletRequest) request, (HttpServletResponse) response));
                assertThat(client.answer.getContentAsString()).isEqualTo("answer.");
            }
            assertOnlyTheServiceCounts(context);
        });
    }

    /** A stream of which nothing can be read or written until its listener is told. */
    private static final class NotReady {

        private ReadListener reads;
        private WriteListener writes;
        private boolean ready;

        private final ServletInputStream in = new ServletInputStream() {
            @Override
            public int read() {
                return -1;
            }

            @Override
            public boolean isFinished() {
                return ready;
            }

            @Override
            public boolean isReady() {
                return ready;
            }

            @Override
            public void setReadListener(ReadListener listener) {
                reads = listener;
            }
        };

        private final ServletOutputStream out = new ServletOutputStream() {
            @Override
            public void write(int one) {}

            @Override
            public boolean isReady() {
                return ready;
            }

            @Override
            public void setWriteListener(WriteListener listener) {
                writes = listener;
            }
        };
    }

    @Test
    void aServletThatReadsAndWritesWithoutBlockingIsNotSlowEither() {
        servlets((context, filter) -> {
            for (int i = 0; i < 20; i++) {
                NotReady streams = new NotReady();
                MockHttpServletRequest mock = new MockHttpServletRequest("POST", "/reports");
                mock.setAsyncSupported(true);
                HttpServletRequest client = new HttpServletRequestWrapper(mock) {
                    @Override
                    public ServletInputStream getInputStream() {
                        return streams.in;
                    }
                };
                HttpServletResponse answer = new HttpServletResponseWrapper(new MockHttpServletResponse()) {
                    @Override
                    public ServletOutputStream getOutputStream() {
                        return streams.out;
                    }
                };
                List<AsyncContext> started = new ArrayList<>();
                FilterChain chain = (request, response) -> {
                    AsyncContext async = request.startAsync();
                    started.add(async);
                    ServletInputStream body = request.getInputStream();
                    ServletOutputStream out = response.getOutputStream();
                    body.setReadListener(new ReadListener() {
                        @Override
                        public void onDataAvailable() throws IOException {
                            assertThat(body.isReady()).isTrue();
                            assertThat(body.read()).isNegative();
                        }

                        @Override
                        public void onAllDataRead() {
                            ticker.advance(SERVICE);
                            streams.ready = false;
                            out.setWriteListener(new WriteListener() {
                                @Override
                                public void onWritePossible() throws IOException {
                                    if (out.isReady()) {
                                        out.write('a');
                                        async.complete();
                                    }
                                }

                                @Override
                                public void onError(Throwable failure) {
                                    async.complete();
                                }
                            });
                        }

                        @Override
                        public void onError(Throwable failure) {
                            async.complete();
                        }
                    });
                };
                filter.doFilter(client, answer, chain);
                ticker.advance(CLIENT);
                streams.ready = true;
                streams.reads.onDataAvailable();
                streams.reads.onAllDataRead();
                ticker.advance(CLIENT);
                streams.writes.onWritePossible();
                assertThat(found(context).inFlight()).isOne();
                ticker.advance(CLIENT);
                streams.ready = true;
                if (i % 2 == 0) {
                    streams.writes.onWritePossible();
                } else {
                    streams.writes.onError(new IOException("gone"));
                }
                assertThat(found(context).inFlight()).isZero();
            }
            assertOnlyTheServiceCounts(context);
        });
    }

    /** While a slow client sends its body, others are served; forty slow ones at a time. */
    @Test
    void slowUploadsToServletsTakeNothingFromOthers() {
        servlets((context, filter) -> {
            int[] served = new int[1];
            FilterChain quick = (request, response) -> {
                ticker.advance(SERVICE);
                served[0]++;
            };
            for (int i = 0; i < 50; i++) {
                filter.doFilter(new MockHttpServletRequest("GET", "/page"), new MockHttpServletResponse(), quick);
            }
            for (int round = 0; round < 10; round++) {
                upload(filter, quick, 40);
            }
            assertThat(served[0]).isEqualTo(50 + 10 * 40 * 4);
            assertThat(found(context).refused()).containsExactly(0L);
            assertOnlyTheServiceCounts(context);
        });
    }

    private void upload(RateLimitFilter filter, FilterChain quick, int more) throws IOException, ServletException {
        if (more == 0) {
            return;
        }
        HttpServletRequest client = new HttpServletRequestWrapper(new MockHttpServletRequest("POST", "/upload")) {
            @Override
            public ServletInputStream getInputStream() {
                return new ServletInputStream() {
                    @Override
                    public int read() throws IOException {
                        try {
                            for (int i = 0; i < 4; i++) {
                                filter.doFilter(
                                        new MockHttpServletRequest("GET", "/page"),
                                        new MockHttpServletResponse(),
                                        quick);
                            }
                            upload(filter, quick, more - 1);
                        } catch (ServletException ex) {
                            throw new IOException(ex);
                        }
                        return -1;
                    }

                    @Override
                    public boolean isFinished() {
                        return false;
                    }

                    @Override
                    public boolean isReady() {
                        return true;
                    }

                    @Override
                    public void setReadListener(ReadListener listener) {}
                };
            }
        };
        filter.doFilter(client, new MockHttpServletResponse(), (request, response) -> {
            assertThat(request.getInputStream().read()).isNegative();
            ticker.advance(SERVICE);
        });
    }

    // WebFlux.

    private interface Filtered {
        void by(ApplicationContext context, RateLimitWebFilter filter) throws Exception;
    }

    private void webFlux(Filtered filtered) {
        RouteFilters.limited(ticker, PROPERTIES)
                .run(context -> filtered.by(context, RouteFilters.reactive(context, "service")));
    }

    private static DataBuffer buffer() {
        return DefaultDataBufferFactory.sharedInstance.wrap("part".getBytes(StandardCharsets.US_ASCII));
    }

    /** A client that sends when the test says so. */
    private static final class Uploading {

        private final Sinks.Many<DataBuffer> body = Sinks.many().unicast().onBackpressureBuffer();
        private final Sinks.Empty<Void> written = Sinks.empty();
        private final List<BaseSubscriber<DataBuffer>> servers = new ArrayList<>();

        /** A server that asks for one part at a time, and has written when the test says so. */
        private MockServerHttpResponse response() {
            MockServerHttpResponse response = new MockServerHttpResponse();
            response.setWriteHandler(parts -> {
                BaseSubscriber<DataBuffer> server = new BaseSubscriber<>() {
                    @Override
                    protected void hookOnSubscribe(Subscription subscription) {
                        request(1);
                    }
                };
                servers.add(server);
                parts.subscribe(server);
                return written.asMono();
            });
            return response;
        }
    }

    private Disposable exchange(RateLimitWebFilter filter, ServerWebExchange exchange, WebFilterChain chain) {
        return filter.filter(exchange, chain).subscribe();
    }

    private static ServerWebExchange with(MockServerHttpRequest request, MockServerHttpResponse response) {
        return new ServerWebExchangeDecorator(MockServerWebExchange.from(request)) {
            @Override
            public ServerHttpResponse getResponse() {
                return response;
            }
        };
    }

    private WebFilterChain answering(Function<Mono<Void>, Flux<DataBuffer>> answer) {
        return exchange -> exchange.getResponse()
                .writeWith(answer.apply(exchange.getRequest()
                        .getBody()
                        .doOnNext(DataBufferUtils::release)
                        .then(Mono.fromRunnable(() -> ticker.advance(SERVICE)))));
    }

    @Test
    void anExchangeThatWaitsForItsClientIsNotSlow() {
        webFlux((context, filter) -> {
            for (int i = 0; i < 20; i++) {
                Uploading client = new Uploading();
                exchange(
                        filter,
                        with(MockServerHttpRequest.post("/reports").body(client.body.asFlux()), client.response()),
                        answering(read -> read.thenMany(Flux.just(buffer(), buffer()))));
                assertThat(found(context).inFlight()).isOne();
                for (int part = 0; part < 3; part++) {
                    ticker.advance(CLIENT);
                    client.body.tryEmitNext(buffer()).orThrow();
                }
                ticker.advance(CLIENT);
                client.body.tryEmitComplete().orThrow();
                ticker.advance(CLIENT);
                client.servers.get(0).request(1);
                ticker.advance(CLIENT);
                client.written.tryEmitEmpty().orThrow();
                assertThat(found(context).inFlight()).isZero();
            }
            assertOnlyTheServiceCounts(context);
        });
    }

    @Test
    void aBodyOfOneValueThatIsWrittenSlowlyIsNotSlow() {
        webFlux((context, filter) -> {
            for (int i = 0; i < 20; i++) {
                Uploading client = new Uploading();
                exchange(filter, with(MockServerHttpRequest.get("/reports").build(), client.response()), exchange -> {
                    // As a session is stored: work of the service.
                    exchange.getResponse().beforeCommit(() -> Mono.fromRunnable(() -> ticker.advance(SERVICE)));
                    return exchange.getResponse().writeWith(Mono.fromSupplier(SlowClientTest::buffer));
                });
                ticker.advance(CLIENT);
                client.written.tryEmitEmpty().orThrow();
            }
            assertOnlyTheServiceCounts(context);
        });
    }

    @Test
    void whatIsStoredBeforeTheFirstPartOfAnAnswerIsWorkOfTheService() {
        webFlux((context, filter) -> {
            for (int i = 0; i < 20; i++) {
                Uploading client = new Uploading();
                Sinks.Empty<Void> stored = Sinks.empty();
                exchange(filter, with(MockServerHttpRequest.get("/reports").build(), client.response()), exchange -> {
                    exchange.getResponse().beforeCommit(stored::asMono);
                    return exchange.getResponse().writeWith(Flux.just(buffer(), buffer()));
                });
                ticker.advance(SERVICE);
                stored.tryEmitEmpty().orThrow();
                ticker.advance(CLIENT);
                client.servers.get(0).request(2);
                ticker.advance(CLIENT);
                client.written.tryEmitEmpty().orThrow();
            }
            assertOnlyTheServiceCounts(context);
        });
    }

    @Test
    void whatIsDoneWithAPartOfTheBodyIsWorkOfTheService() {
        webFlux((context, filter) -> {
            for (int i = 0; i < 20; i++) {
                Uploading client = new Uploading();
                client.written.tryEmitEmpty().orThrow();
                exchange(
                        filter,
                        with(MockServerHttpRequest.post("/reports").body(client.body.asFlux()), client.response()),
                        exchange -> Mono.create(end -> exchange.getRequest()
                                .getBody()
                                .subscribe(new BaseSubscriber<>() {
                                    @Override
                                    protected void hookOnSubscribe(Subscription subscription) {
                                        request(1);
                                    }

                                    @Override
                                    protected void hookOnNext(DataBuffer part) {
                                        request(1);
                                        ticker.advance(SERVICE.dividedBy(2));
                                    }

                                    @Override
                                    protected void hookOnComplete() {
                                        end.success();
                                    }
                                })));
                for (int part = 0; part < 2; part++) {
                    ticker.advance(CLIENT);
                    client.body.tryEmitNext(buffer()).orThrow();
                }
                ticker.advance(CLIENT);
                client.body.tryEmitComplete().orThrow();
            }
            assertOnlyTheServiceCounts(context);
        });
    }

    @Test
    void aStreamWaitsForItsClientOnlyWhileThatTakesNothing() {
        webFlux((context, filter) -> {
            for (int i = 0; i < 20; i++) {
                Uploading client = new Uploading();
                Sinks.Many<DataBuffer> answer = Sinks.many().unicast().onBackpressureBuffer();
                exchange(
                        filter,
                        with(MockServerHttpRequest.get("/reports").build(), client.response()),
                        exchange -> exchange.getResponse()
                                .writeAndFlushWith(answer.asFlux().map(Mono::just)));
                // The server has asked for a part: the service is slow, not the client.
                ticker.advance(SERVICE.dividedBy(2));
                answer.tryEmitNext(buffer()).orThrow();
                answer.tryEmitNext(buffer()).orThrow();
                ticker.advance(CLIENT);
                client.servers.get(0).request(2);
                ticker.advance(SERVICE.dividedBy(2));
                answer.tryEmitComplete().orThrow();
                ticker.advance(CLIENT);
                client.written.tryEmitEmpty().orThrow();
            }
            assertOnlyTheServiceCounts(context);
        });
    }

    @Test
    void aFormWaitsForTheClientToo() {
        webFlux((context, filter) -> {
            for (int i = 0; i < 20; i++) {
                Uploading client = new Uploading();
                Sinks.Empty<MultiValueMap<String, String>> form = Sinks.empty();
                ServerWebExchange sending =
                        new ServerWebExchangeDecorator(
                                with(MockServerHttpRequest.post("/f").build(), client.response())) {
                            @Override
                            public Mono<MultiValueMap<String, String>> getFormData() {
                                return form.asMono();
                            }
                        };
                exchange(
                        filter,
                        sending,
                        exchange -> exchange.getFormData()
                                .then(Mono.fromRunnable(() -> ticker.advance(SERVICE)))
                                .then(exchange.getResponse().writeWith(Mono.fromSupplier(SlowClientTest::buffer))));
                ticker.advance(CLIENT);
                form.tryEmitEmpty().orThrow();
                ticker.advance(CLIENT);
                client.written.tryEmitEmpty().orThrow();
            }
            assertOnlyTheServiceCounts(context);
        });
    }

    /** An upload whose client has gone ends while it waits. */
    @Test
    void aClientThatGoesAwayWhileItIsWaitedForTakesNothing() {
        webFlux((context, filter) -> {
            for (int i = 0; i < 20; i++) {
                Uploading client = new Uploading();
                Disposable exchange = exchange(
                        filter,
                        with(MockServerHttpRequest.post("/reports").body(client.body.asFlux()), client.response()),
                        answering(read -> read.thenMany(Flux.just(buffer()))));
                ticker.advance(CLIENT);
                exchange.dispose();
                assertThat(found(context).inFlight()).isZero();
            }
            assertThat(found(context).limit()).isEqualTo(1000);
        });
    }

    /** A client that sends a part each half second, three hundred of them at a time. */
    @Test
    void slowUploadsToWebFluxTakeNothingFromOthers() {
        webFlux((context, filter) -> {
            WebFilterChain quick = exchange -> {
                ticker.advance(SERVICE);
                return exchange.getResponse().setComplete();
            };
            WebFilterChain upload = answering(read -> read.thenMany(Flux.empty()));
            others(filter, quick, 50);
            for (int round = 0; round < 4; round++) {
                List<Uploading> clients = new ArrayList<>();
                for (int i = 0; i < 300; i++) {
                    Uploading client = new Uploading();
                    client.written.tryEmitEmpty().orThrow();
                    clients.add(client);
                    exchange(
                            filter,
                            with(MockServerHttpRequest.post("/upload").body(client.body.asFlux()), client.response()),
                            upload);
                    others(filter, quick, 1);
                }
                for (int part = 0; part < 5; part++) {
                    clients.forEach(client -> client.body.tryEmitNext(buffer()).orThrow());
                    others(filter, quick, 25);
                }
                clients.forEach(client -> client.body.tryEmitComplete().orThrow());
            }
            assertThat(found(context).refused()).containsExactly(0L);
            assertThat(found(context).inFlight()).isZero();
            assertOnlyTheServiceCounts(context);
        });
    }

    private void others(RateLimitWebFilter filter, WebFilterChain quick, int number) {
        for (int i = 0; i < number; i++) {
            exchange(filter, MockServerWebExchange.from(MockServerHttpRequest.get("/page")), quick);
        }
    }
}
