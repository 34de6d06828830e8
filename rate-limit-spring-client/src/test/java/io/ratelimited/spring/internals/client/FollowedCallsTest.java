package io.ratelimited.spring.internals.client;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import java.io.Closeable;
import java.io.IOException;
import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.EnumSource;
import org.springframework.core.io.buffer.DataBuffer;
import org.springframework.core.io.buffer.DataBufferWrapper;
import org.springframework.core.io.buffer.DefaultDataBufferFactory;
import org.springframework.core.io.buffer.PooledDataBuffer;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpMethod;
import org.springframework.http.HttpRequest;
import org.springframework.http.HttpStatusCode;
import org.springframework.http.client.ClientHttpRequest;
import org.springframework.http.client.ClientHttpRequestFactory;
import org.springframework.http.client.ClientHttpRequestInterceptor;
import org.springframework.http.client.ClientHttpResponse;
import org.springframework.http.client.reactive.ClientHttpConnector;
import org.springframework.http.client.support.HttpRequestWrapper;
import org.springframework.mock.http.client.MockClientHttpRequest;
import org.springframework.mock.http.client.MockClientHttpResponse;
import org.springframework.web.client.RestClient;
import org.springframework.web.reactive.function.BodyInserter;
import org.springframework.web.reactive.function.BodyInserters;
import org.springframework.web.reactive.function.client.ClientRequest;
import org.springframework.web.reactive.function.client.ExchangeFilterFunction;
import org.springframework.web.reactive.function.client.WebClient;
import reactor.core.Disposable;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Limited calls whose responses are redirects, on both stacks, over an HTTP library that is only a list of responses. */
class FollowedCallsTest {

    private static final int REJECTED = -1;
    private static final String PARTNER = "https://partner.example";
    private static final String FOREIGN = "https://foreign.example";

    private enum Stack {
        BLOCKING,
        REACTIVE
    }

    /** What the library has sent: {@code still POST https://partner.example/a 'body' [names of fields]}. */
    private final List<String> sent = new ArrayList<>();

    private final Map<String, String[]> answers = new HashMap<>();
    private final ManualTicker ticker = new ManualTicker();
    private int open;
    private int closed;
    private WebClient webClient;

    /** @param fields of the response: name, value, name, value … */
    private void answer(String url, int status, String... fields) {
        String[] answer = new String[fields.length + 1];
        answer[0] = String.valueOf(status);
        System.arraycopy(fields, 0, answer, 1, fields.length);
        answers.put(url, answer);
    }

    private String[] answer(String library, HttpMethod method, URI uri, HttpHeaders headers, String body)
            throws IOException {
        assertThat(open).as("responses that are still open").isZero();
        sent.add(library + " " + method + " " + uri + " '" + body + "' "
                + headers.headerNames().stream()
                        .map(String::toLowerCase)
                        .sorted()
                        .toList());
        String[] answer = answers.getOrDefault(uri.toString(), new String[] {"200"});
        if (answer[0].equals("0")) {
            throw new IOException("broken");
        }
        return answer;
    }

    private static HttpHeaders fields(String... answer) {
        HttpHeaders headers = new HttpHeaders();
        for (int i = 1; i < answer.length; i += 2) {
            headers.add(answer[i], answer[i + 1]);
        }
        return headers;
    }

    private ClientHttpRequestFactory factory(String library) {
        abstract class Factory implements ClientHttpRequestFactory, Closeable {}
        return new Factory() {

            @Override
            public void close() {
                closed++;
            }

            @Override
            public ClientHttpRequest createRequest(URI uri, HttpMethod method) {
                return new MockClientHttpRequest(method, uri) {

                    @Override
                    protected ClientHttpResponse executeInternal() throws IOException {
                        String[] answer = answer(library, method, uri, getHeaders(), getBodyAsString());
                        open++;
                        MockClientHttpResponse response =
                                new MockClientHttpResponse(
                                        new byte[0], HttpStatusCode.valueOf(Integer.parseInt(answer[0]))) {

                                    @Override
                                    public void close() {
                                        open--;
                                    }
                                };
                        response.getHeaders().putAll(fields(answer));
                        return response;
                    }
                };
            }
        };
    }

    private ClientHttpConnector connector(String library) {
        abstract class Connector implements ClientHttpConnector, Closeable {}
        return new Connector() {

            @Override
            public void close() {
                closed++;
            }

            @Override
            public Mono<org.springframework.http.client.reactive.ClientHttpResponse> connect(
                    HttpMethod method,
                    URI uri,
                    Function<? super org.springframework.http.client.reactive.ClientHttpRequest, Mono<Void>> writer) {
                var request = new org.springframework.mock.http.client.reactive.MockClientHttpRequest(method, uri);
                return writer.apply(request)
                        .then(Mono.defer(request::getBodyAsString).defaultIfEmpty(""))
                        .flatMap(body -> {
                            HttpHeaders headers = new HttpHeaders(request.getHeaders());
                            if (!request.getCookies().isEmpty()) {
                                headers.add("Cookie", "x");
                            }
                            String[] answer;
                            try {
                                answer = answer(library, method, uri, headers, body);
                            } catch (IOException ex) {
                                return Mono.error(ex);
                            }
                            if (answer[0].equals("1")) {
                                return Mono.never();
                            }
                            var response = new org.springframework.mock.http.client.reactive.MockClientHttpResponse(
                                    Integer.parseInt(answer[0]));
                            response.getHeaders().putAll(fields(answer));
                            open++;
                            DataBuffer text = DefaultDataBufferFactory.sharedInstance.wrap(new byte[9]);
                            response.setBody(Flux.just(text).doOnComplete(() -> open = 0));
                            return Mono.just(response);
                        });
            }
        };
    }

    private interface Calls {

        /** Makes a call and returns its status, or {@link #REJECTED}. */
        int make(HttpMethod method, String url);

        default int get(String path) {
            return make(HttpMethod.GET, PARTNER + path);
        }
    }

    private void with(Stack stack, Consumer<Calls> calls, String... properties) {
        List<String> all = new ArrayList<>(List.of(
                "rate-limit.clients.partner.hosts=partner.example,*.partner.example,orders",
                "rate-limit.clients.partner.policy=reject",
                "rate-limit.clients.other.hosts=other.example",
                "rate-limit.clients.other.policy=reject"));
        all.addAll(List.of(properties));
        LimitedClientsContext.runner(ticker, all.toArray(String[]::new)).run(context -> {
            LimitedClients clients = context.getBean(LimitedClients.class);
            calls.accept(stack == Stack.BLOCKING ? blocking(clients) : reactive(clients));
        });
    }

    /** What the application has put behind the limits. */
    private ClientHttpRequestInterceptor inner = (request, body, execution) -> execution.execute(request, body);

    private RestClient restClient(LimitedClients clients) {
        return RestClient.builder()
                .requestFactory(new FollowingRequestFactory(factory("usual"), () -> factory("still"), () -> clients))
                .requestInterceptor(new BlockingClientInterceptor(() -> clients))
                .requestInterceptor((request, body, execution) -> inner.intercept(request, body, execution))
                .build();
    }

    private Calls blocking(LimitedClients clients) {
        RestClient client = restClient(clients);
        return (method, url) -> {
            RestClient.RequestBodySpec request =
                    client.method(method).uri(url).header("Authorization", "x").header("Cookie", "x");
            if (method.equals(HttpMethod.POST)) {
                request.body("body");
            }
            try {
                return request.exchange(
                        (sentRequest, response) -> response.getStatusCode().value());
            } catch (RateLimitExceededException ex) {
                return REJECTED;
            }
        };
    }

    private ExchangeFilterFunction innerFilter = (request, next) -> next.exchange(request);

    private WebClient webClient(LimitedClients clients) {
        return WebClient.builder()
                .clientConnector(new FollowingConnector(connector("usual"), () -> connector("still"), () -> clients))
                .filter(new ReactiveClientFilter(() -> clients))
                .filter((request, next) -> innerFilter.filter(request, next))
                .build();
    }

    private Calls reactive(LimitedClients clients) {
        webClient = webClient(clients);
        return (method, url) -> {
            WebClient.RequestBodySpec request = webClient
                    .method(method)
                    .uri(url)
                    .header("Authorization", "x")
                    .cookie("a", "x");
            if (method.equals(HttpMethod.POST)) {
                request.bodyValue("body");
            }
            return request.exchangeToMono(response -> response.releaseBody()
                            .thenReturn(response.statusCode().value()))
                    .onErrorReturn(RateLimitExceededException.class, REJECTED)
                    .block();
        };
    }

    @ParameterizedTest
    @EnumSource
    void callsThatAreNotLimitedAreLeftToTheLibrary(Stack stack) {
        answer(FOREIGN + "/a", 302, "Location", PARTNER + "/b");
        with(stack, calls -> {
            assertThat(calls.make(HttpMethod.GET, FOREIGN + "/a")).isEqualTo(302);
            assertThat(sent).singleElement().asString().startsWith("usual GET " + FOREIGN + "/a");
        });
    }

    @ParameterizedTest
    @EnumSource
    void aBodyIsSentAgainWhereTheMethodStaysAndNowhereElse(Stack stack) {
        answer(PARTNER + "/again", 307, "Location", "/redirected");
        answer(PARTNER + "/redirected", 302, "Location", "/then?x");
        with(stack, calls -> {
            assertThat(calls.make(HttpMethod.POST, PARTNER + "/again")).isEqualTo(200);
            assertThat(sent).hasSize(3);
            assertThat(sent.get(0)).startsWith("still POST " + PARTNER + "/again 'body' ");
            assertThat(sent.get(1)).isEqualTo(sent.get(0).replace("/again", "/redirected"));
            assertThat(sent.get(2))
                    .startsWith("still GET " + PARTNER + "/then?x '' [")
                    .contains("authorization", "cookie")
                    .doesNotContain("content-");
        });
    }

    @Test
    void aBodyThatCanBeReadOnceIsOnlyReadAgainToBeSentAgain() {
        answer(PARTNER + "/done", 303, "Location", "/result");
        answer(PARTNER + "/again", 307, "Location", "/result");
        with(Stack.REACTIVE, calls -> {
            List<Integer> read = new ArrayList<>();
            Flux<String> once = Flux.defer(() -> {
                read.add(1);
                return read.size() > 1 ? Flux.error(new IllegalStateException("read again")) : Flux.just("body");
            });
            assertThat(post("/done", BodyInserters.fromPublisher(once, String.class)))
                    .isEqualTo(200);
            assertThat(read).hasSize(1);
            assertThat(sent).element(1).asString().startsWith("still GET " + PARTNER + "/result '' ");
            read.clear();
            assertThatThrownBy(() -> post("/again", BodyInserters.fromPublisher(once, String.class)))
                    .hasMessage("read again");
        });
    }

    /** One that was made for the request, and one that does not come. */
    @Test
    void aValueThatIsNotSentIsReleasedAndNotWaitedFor() {
        answer(PARTNER + "/done", 303, "Location", "/result");
        with(Stack.REACTIVE, calls -> {
            List<Pooled> buffers = new ArrayList<>();
            assertThat(post("/done", (request, context) -> {
                        Pooled buffer = new Pooled();
                        buffers.add(buffer);
                        return request.writeWith(Mono.just(buffer));
                    }))
                    .isEqualTo(200);
            assertThat(buffers).hasSize(2);
            assertThat(buffers.get(1).isAllocated()).isFalse();

            List<Integer> made = new ArrayList<>();
            assertThat(post("/done", (request, context) -> {
                        made.add(1);
                        return request.writeWith(made.size() > 1 ? Mono.never() : Mono.empty());
                    }))
                    .isEqualTo(200);
        });
    }

    private static final class Pooled extends DataBufferWrapper implements PooledDataBuffer {

        private boolean allocated = true;

        private Pooled() {
            super(DefaultDataBufferFactory.sharedInstance.wrap(new byte[4]));
        }

        @Override
        public boolean isAllocated() {
            return allocated;
        }

        @Override
        public PooledDataBuffer retain() {
            throw new UnsupportedOperationException();
        }

        @Override
        public PooledDataBuffer touch(Object hint) {
            return this;
        }

        @Override
        public boolean release() {
            allocated = false;
            return true;
        }
    }

    private int post(
            String path, BodyInserter<?, ? super org.springframework.http.client.reactive.ClientHttpRequest> body) {
        return webClient
                .post()
                .uri(PARTNER + path)
                .body(body)
                .exchangeToMono(response ->
                        response.releaseBody().thenReturn(response.statusCode().value()))
                .block(Duration.ofSeconds(20));
    }

    @ParameterizedTest
    @EnumSource
    void anotherHostGetsNoCredentials(Stack stack) {
        answer(PARTNER + "/a", 308, "Location", FOREIGN + "/b");
        answer(FOREIGN + "/b", 302, "Location", PARTNER + "/c");
        with(stack, calls -> {
            assertThat(calls.make(HttpMethod.POST, PARTNER + "/a")).isEqualTo(200);
            assertThat(sent).hasSize(3);
            assertThat(sent.get(0)).contains("authorization", "cookie");
            assertThat(sent.get(1))
                    .startsWith("still POST " + FOREIGN + "/b 'body' ")
                    .contains("content-type")
                    .doesNotContain("authorization", "cookie");
            assertThat(sent.get(2))
                    .startsWith("still GET " + PARTNER + "/c '' ")
                    .doesNotContain("authorization");
        });
    }

    @ParameterizedTest
    @EnumSource
    void onlyAHostOfTheClientIsBelieved(Stack stack) {
        answer(PARTNER + "/away", 302, "Location", FOREIGN + "/x");
        answer(PARTNER + "/other", 302, "Location", "https://other.example/x");
        answer(PARTNER + "/back", 302, "Location", FOREIGN + "/back");
        answer(FOREIGN + "/back", 302, "Location", "https://eu.partner.example/x");
        for (String host : new String[] {FOREIGN, "https://other.example", "https://eu.partner.example"}) {
            answer(host + "/x", 429, "Retry-After", "30");
        }
        with(stack, calls -> {
            assertThat(calls.get("/away")).isEqualTo(429);
            assertThat(calls.get("/other")).isEqualTo(429);
            assertThat(calls.make(HttpMethod.GET, "https://other.example/"))
                    .as("a client is not called by calls of another")
                    .isEqualTo(200);
            assertThat(calls.get("/back")).isEqualTo(429);
            assertThat(calls.get("/")).isEqualTo(REJECTED);
        });
    }

    private void answerWithQuota(String url, int remaining) {
        answer(
                url,
                200,
                "X-RateLimit-Limit",
                "10",
                "X-RateLimit-Remaining",
                String.valueOf(remaining),
                "X-RateLimit-Reset",
                "30");
    }

    /** The service has counted the redirect, whatever it leads to. */
    @ParameterizedTest
    @CsvSource({
        "BLOCKING, https://cdn.partner.example/x",
        "REACTIVE, https://cdn.partner.example/x",
        "BLOCKING, https://partner.example/blob",
        "REACTIVE, https://partner.example/blob"
    })
    void aResponseBehindARedirectThatStatesNothingEndsNoQuota(Stack stack, String target) {
        answer(PARTNER + "/export", 302, "Location", target);
        with(stack, calls -> {
            answerWithQuota(PARTNER + "/users", 9);
            assertThat(calls.get("/users")).isEqualTo(200);
            answerWithQuota(PARTNER + "/orders", 8);
            assertThat(calls.get("/orders")).isEqualTo(200);
            assertThat(calls.get("/export")).isEqualTo(200);
            answerWithQuota(PARTNER + "/orders", 0);
            assertThat(calls.get("/orders")).isEqualTo(200);
            assertThat(calls.get("/export")).isEqualTo(REJECTED);
        });
    }

    @ParameterizedTest
    @EnumSource
    void aQuotaOfAnotherHostBehindARedirectIsNotThatOfTheHostThatWasCalled(Stack stack) {
        answer(PARTNER + "/export", 302, "Location", "https://cdn.partner.example/x");
        answerWithQuota("https://cdn.partner.example/x", 9);
        with(stack, calls -> {
            answerWithQuota(PARTNER + "/users", 2);
            assertThat(calls.get("/users")).isEqualTo(200);
            answerWithQuota(PARTNER + "/orders", 1);
            ticker.advance(Duration.ofSeconds(10));
            assertThat(calls.get("/orders")).isEqualTo(200);
            ticker.advance(Duration.ofSeconds(15));
            assertThat(calls.get("/export")).isEqualTo(200);
            assertThat(calls.get("/users")).isEqualTo(REJECTED);
        });
    }

    /** As of a service that redirects each call to the encrypted address, or to where a resource has moved. */
    @ParameterizedTest
    @CsvSource({
        "BLOCKING, http://partner.example",
        "REACTIVE, http://partner.example",
        "BLOCKING, https://partner.example",
        "REACTIVE, https://partner.example"
    })
    void aQuotaOfTheSameHostBehindARedirectHoldsTheCalls(Stack stack, String base) {
        answer(base + "/old", 301, "Location", PARTNER + "/new");
        answerWithQuota(PARTNER + "/new", 0);
        with(stack, calls -> {
            assertThat(calls.make(HttpMethod.GET, base + "/old")).isEqualTo(200);
            assertThat(calls.make(HttpMethod.GET, base + "/old")).isEqualTo(REJECTED);
        });
    }

    @ParameterizedTest
    @EnumSource
    void aRetryBehindTheLimitsIsAnsweredByWhomItAsks(Stack stack) {
        answer(PARTNER + "/a", 302, "Location", FOREIGN + "/x");
        inner = (request, body, execution) -> {
            execution.execute(request, body).close();
            answer(PARTNER + "/a", 429, "Retry-After", "30");
            return execution.execute(request, body);
        };
        innerFilter = (request, next) -> next.exchange(request)
                .flatMap(response -> response.releaseBody())
                .then(Mono.defer(() -> {
                    answer(PARTNER + "/a", 429, "Retry-After", "30");
                    return next.exchange(request);
                }));
        with(stack, calls -> {
            assertThat(calls.get("/a")).isEqualTo(429);
            assertThat(calls.get("/")).isEqualTo(REJECTED);
        });
    }

    @ParameterizedTest
    @EnumSource
    void aLoopOfRedirectsIsOneCall(Stack stack) {
        answer(PARTNER + "/loop", 302, "Location", "/loop");
        with(
                stack,
                calls -> {
                    assertThat(calls.get("/loop")).isEqualTo(302);
                    assertThat(sent).hasSize(21);
                    assertThat(calls.get("/")).isEqualTo(200);
                    assertThat(calls.get("/")).isEqualTo(REJECTED);
                },
                "rate-limit.limits.calls.rate=2/h",
                "rate-limit.clients.partner.limits=calls");
    }

    @ParameterizedTest
    @EnumSource
    void aRequestThatFailsBehindARedirectEndsTheCallOnce(Stack stack) {
        answer(PARTNER + "/a", 302, "Location", FOREIGN + "/broken");
        answer(FOREIGN + "/broken", 0);
        with(
                stack,
                calls -> {
                    for (int i = 0; i < 3; i++) {
                        assertThatThrownBy(() -> calls.get("/a")).hasMessageContaining("broken");
                        assertThat(calls.get("/")).isEqualTo(200);
                    }
                },
                "rate-limit.limits.calls.algorithm=concurrency",
                "rate-limit.limits.calls.max-concurrent=1",
                "rate-limit.clients.partner.limits=calls");
    }

    /** As a load balancer does, which knows no instance by its address. */
    @ParameterizedTest
    @EnumSource
    void whatStandsBehindTheLimitsSeesOneCallAndItsHostIsThatOfTheClient(Stack stack) {
        List<String> seen = new ArrayList<>();
        inner = (request, body, execution) -> {
            ClientHttpResponse response = execution.execute(at(request), body);
            seen.add(request.getURI().getHost() + " " + response.getStatusCode().value());
            return response;
        };
        innerFilter = (request, next) -> next.exchange(ClientRequest.from(request)
                        .url(URI.create("http://10.0.0.5:8080/a"))
                        .build())
                .doOnNext(response -> seen.add(
                        request.url().getHost() + " " + response.statusCode().value()));
        answer("http://10.0.0.5:8080/a", 302, "Location", "/b");
        answer("http://10.0.0.5:8080/b", 503, "Retry-After", "30");
        with(stack, calls -> {
            assertThat(calls.make(HttpMethod.GET, "http://orders/a")).isEqualTo(503);
            assertThat(seen).containsExactly("orders 503");
            assertThat(calls.make(HttpMethod.GET, "http://orders/a")).isEqualTo(REJECTED);
        });
    }

    private static HttpRequest at(HttpRequest request) {
        return new HttpRequestWrapper(request) {

            @Override
            public URI getURI() {
                return URI.create("http://10.0.0.5:8080/a");
            }
        };
    }

    /** Such as the one for a token. */
    @ParameterizedTest
    @EnumSource
    void aCallThatIsMadeWithinALimitedOneIsACallOfItsOwn(Stack stack) {
        answer(PARTNER + "/a", 429, "Retry-After", "30");
        answer("https://other.example/t", 302, "Location", FOREIGN + "/x");
        with(stack, calls -> {
            String[] inside = {FOREIGN + "/token", "https://other.example/t"};
            inner = (request, body, execution) -> {
                inner = (inRequest, inBody, inExecution) -> inExecution.execute(inRequest, inBody);
                for (String url : inside) {
                    assertThat(calls.make(HttpMethod.GET, url)).isEqualTo(200);
                }
                return execution.execute(request, body);
            };
            innerFilter = (request, next) -> {
                innerFilter = (inRequest, inNext) -> inNext.exchange(inRequest);
                return webClient
                        .get()
                        .uri(inside[0])
                        .retrieve()
                        .toBodilessEntity()
                        .then(webClient.get().uri(inside[1]).retrieve().toBodilessEntity())
                        .then(next.exchange(request));
            };
            assertThat(calls.get("/a")).isEqualTo(429);
            assertThat(sent)
                    .extracting(line -> line.substring(0, line.indexOf('\'')))
                    .containsExactly(
                            "usual GET " + inside[0] + " ",
                            "still GET " + inside[1] + " ",
                            "still GET " + FOREIGN + "/x ",
                            "still GET " + PARTNER + "/a ");
            assertThat(calls.get("/b")).as("its own host has answered").isEqualTo(REJECTED);
        });
    }

    @Test
    void aCallThatIsCancelledBehindARedirectGivesItsPlaceBack() {
        answer(PARTNER + "/a", 302, "Location", FOREIGN + "/hangs");
        answer(FOREIGN + "/hangs", 1);
        with(
                Stack.REACTIVE,
                calls -> {
                    Disposable call = webClient
                            .get()
                            .uri(PARTNER + "/a")
                            .retrieve()
                            .toBodilessEntity()
                            .subscribe();
                    assertThat(sent).hasSize(2);
                    assertThat(calls.get("/")).isEqualTo(REJECTED);
                    call.dispose();
                    assertThat(calls.get("/")).isEqualTo(200);
                },
                "rate-limit.limits.calls.algorithm=concurrency",
                "rate-limit.limits.calls.max-concurrent=1",
                "rate-limit.clients.partner.limits=calls");
    }

    @Test
    void bothLibrariesAreClosedIfBothWereMade() throws Exception {
        HttpLibrary<ClientHttpRequestFactory> library = new HttpLibrary<>(factory("usual"), () -> factory("still"));
        library.close();
        assertThat(closed).isEqualTo(1);
        assertThat(library.still()).isSameAs(library.still()).isNotSameAs(library.usual());
        library.close();
        assertThat(closed).isEqualTo(3);
    }
}
