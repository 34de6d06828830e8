package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.RateLimits;
import io.ratelimited.spring.internals.web.RunningServer.Kind;
import jakarta.servlet.Filter;
import jakarta.servlet.http.HttpServlet;
import jakarta.servlet.http.HttpServletRequest;
import jakarta.servlet.http.HttpServletResponse;
import java.lang.reflect.UndeclaredThrowableException;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;
import java.util.stream.Stream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.springframework.boot.autoconfigure.EnableAutoConfiguration;
import org.springframework.boot.web.servlet.FilterRegistrationBean;
import org.springframework.boot.web.servlet.ServletRegistrationBean;
import org.springframework.context.annotation.Bean;
import org.springframework.context.annotation.Configuration;
import org.springframework.context.annotation.Import;
import org.springframework.core.annotation.Order;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.ExceptionHandler;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.bind.annotation.RestControllerAdvice;
import org.springframework.web.context.request.async.DeferredResult;
import org.springframework.web.server.ResponseStatusException;
import org.springframework.web.server.ServerWebExchange;
import org.springframework.web.server.WebExceptionHandler;
import org.springframework.web.server.WebFilter;
import org.springframework.web.servlet.ModelAndView;
import org.springframework.web.servlet.function.RouterFunction;
import org.springframework.web.servlet.function.RouterFunctions;
import org.springframework.web.servlet.function.ServerRequest;
import org.springframework.web.servlet.function.ServerResponse;
import org.springframework.web.servlet.handler.SimpleMappingExceptionResolver;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * An exception of the application that a rejection has caused is answered as the same exception with any other cause; only where
 * that would be a plain 500 it is answered as the rejection.
 */
@Tag("spring-boot")
@Tag("slow")
class RejectionMappingTest {

    @RegisterExtension
    static final SharedServers SERVERS = new SharedServers();

    private static final String BROWSER = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

    /** How a rejection is thrown: itself, or as the cause of something. */
    enum How {
        PLAIN,
        ADVISED,
        ADVISED_DEEPER,
        ANNOTATED,
        ANNOTATED_DEEPER,
        RESPONSE_STATUS,
        LOCAL,
        RESOLVED,
        UNMAPPED,
        COMPLETION,
        EXECUTION,
        UNDECLARED;

        private Throwable of(Throwable cause) {
            return switch (this) {
                case PLAIN -> cause;
                case ADVISED -> new PaymentFailed(cause);
                case ADVISED_DEEPER -> new CompletionException(new PaymentFailed(cause));
                case ANNOTATED -> new Unreachable(cause);
                case ANNOTATED_DEEPER -> new CompletionException(new Unreachable(cause));
                case RESPONSE_STATUS -> new ResponseStatusException(HttpStatus.BAD_GATEWAY, "shop", cause);
                case LOCAL -> new SoldOut(cause);
                case RESOLVED -> new OfAnotherAge(cause);
                case UNMAPPED -> new IllegalStateException("shop", cause);
                case COMPLETION -> new CompletionException(cause);
                case EXECUTION -> new ExecutionException(cause);
                case UNDECLARED -> new UndeclaredThrowableException(cause);
            };
        }

        /** The status where a controller throws it. */
        private int status(Kind kind) {
            return switch (this) {
                case ADVISED, ADVISED_DEEPER, ANNOTATED, RESPONSE_STATUS -> 502;
                // Spring Boot's handler of errors on WebFlux looks at the outer exception only.
                case ANNOTATED_DEEPER -> kind == Kind.REACTOR_NETTY ? 500 : 502;
                case LOCAL -> 409;
                case RESOLVED -> 410;
                default -> 429;
            };
        }
    }

    private static final List<String> HANDLERS =
            List.of("plain", "callable", "future", "deferred", "mono", "flux", "functional", "functional-own");

    private static final List<String> OTHERS = List.of("filter-early", "filter-late", "servlet");

    static Stream<Arguments> handlers() {
        return rows(HANDLERS);
    }

    static Stream<Arguments> others() {
        return rows(OTHERS);
    }

    private static Stream<Arguments> rows(List<String> places) {
        return Stream.of(Kind.values())
                .flatMap(kind ->
                        places.stream().filter(place -> isOf(kind, place)).map(place -> Arguments.of(kind, place)));
    }

    private static boolean isOf(Kind kind, String place) {
        return kind != Kind.REACTOR_NETTY
                || !List.of("servlet", "callable", "deferred").contains(place);
    }

    private static List<String> advised(Kind kind) {
        return Stream.of("plain", "callable", "future", "deferred", "mono", "flux", "filter-late")
                .filter(place -> isOf(kind, place))
                .toList();
    }

    private static RunningServer server(Kind kind, Class<?>... more) {
        Class<?> stack = kind == Kind.REACTOR_NETTY ? Reactive.class : Servlets.class;
        List<Class<?>> sources = Stream.concat(Stream.of(App.class, Advice.class, stack), Stream.of(more))
                .toList();
        return SERVERS.get(kind, sources, "rate-limit.limits.shop.rate=1/d");
    }

    @ParameterizedTest
    @MethodSource
    void handlers(Kind kind, String place) {
        RunningServer server = server(kind);
        for (How how : How.values()) {
            HttpResponse<String> other = server.get("/" + place + "/" + how + "?cause=other");
            HttpResponse<String> rejection = server.get("/" + place + "/" + how);
            if (other.statusCode() == 500 && !isMapped(kind, how)) {
                requireProblem(rejection, how);
            } else {
                assertThat(rejection.statusCode()).as(how.name()).isEqualTo(other.statusCode());
                assertThat(withoutTime(rejection)).as(how.name()).isEqualTo(withoutTime(other));
            }
        }
    }

    /** Spring Boot answers it 500 whatever it is mapped to; it is the application's all the same. */
    private static boolean isMapped(Kind kind, How how) {
        return kind == Kind.REACTOR_NETTY && how == How.ANNOTATED_DEEPER;
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void aControllersExceptionsAreAnsweredAsTheApplicationMapsThem(Kind kind) {
        RunningServer server = server(kind);
        for (How how : How.values()) {
            HttpResponse<String> answer = server.get("/plain/" + how);
            assertThat(answer.statusCode()).as(how.name()).isEqualTo(how.status(kind));
            if (how == How.ADVISED || how == How.ADVISED_DEEPER) {
                assertThat(answer.body()).isEqualTo("payment");
            }
        }
    }

    /** There nobody else answers exceptions: they are answered as where a handler throws them. */
    @ParameterizedTest
    @MethodSource
    void others(Kind kind, String place) {
        RunningServer server = server(kind);
        for (How how : How.values()) {
            HttpResponse<String> rejection = server.get("/" + place + "/" + how);
            if (how == How.LOCAL || how.status(kind) == 429) {
                requireProblem(rejection, how);
            } else {
                assertThat(rejection.statusCode()).as(how.name()).isEqualTo(how.status(kind));
            }
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void aBrowserGetsThePageOfTheSameStatus(Kind kind) {
        RunningServer server = server(kind);
        Stream.of(HANDLERS, OTHERS)
                .flatMap(List::stream)
                .filter(place -> isOf(kind, place))
                .forEach(place -> {
                    for (How how : List.of(How.PLAIN, How.UNMAPPED)) {
                        HttpResponse<String> page = server.get("/" + place + "/" + how, "Accept", BROWSER);
                        assertThat(page.statusCode()).as(place).isEqualTo(429);
                        assertThat(page.body()).as(place).contains("Whitelabel Error Page", "429");
                        assertThat(page.headers().allValues("Retry-After"))
                                .as(place)
                                .containsExactly("86400");
                    }
                });
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void aHandlerForEveryExceptionSeesRejectionsAsOthers(Kind kind) {
        RunningServer server = server(kind, CatchAll.class);
        for (String place : advised(kind)) {
            HttpResponse<String> answer = server.get("/" + place + "/PLAIN");
            assertThat(answer.statusCode()).as(place).isEqualTo(500);
            assertThat(answer.body()).as(place).isEqualTo("failed");
            assertThat(answer.headers().allValues("Retry-After")).as(place).containsExactly("86400");
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void aHandlerForEveryExceptionThatThrowsRejectionsAgainLeavesThemToTheStarter(Kind kind) {
        RunningServer server = server(kind, CatchOthers.class);
        for (String place : advised(kind)) {
            requireProblem(server.get("/" + place + "/PLAIN"), How.PLAIN);
            assertThat(server.get("/" + place + "/UNMAPPED").body()).as(place).isEqualTo("failed");
        }
    }

    @ParameterizedTest
    @EnumSource(Kind.class)
    void aHandlerForRejectionsSeesThoseThatCausedOthers(Kind kind) {
        RunningServer server = server(kind, ForRejections.class);
        for (String place : advised(kind)) {
            for (How how : List.of(How.PLAIN, How.UNMAPPED, How.COMPLETION, How.EXECUTION, How.UNDECLARED)) {
                HttpResponse<String> answer = server.get("/" + place + "/" + how);
                assertThat(answer.statusCode()).as(place).isEqualTo(418);
                assertThat(answer.body()).as(place).isEqualTo("shop");
                assertThat(answer.headers().allValues("Retry-After")).as(place).containsExactly("86400");
            }
            assertThat(server.get("/" + place + "/ADVISED").body()).as(place).isEqualTo("payment");
        }
    }

    /** As an advice: for rejections, and for every exception. */
    @ParameterizedTest
    @EnumSource(Kind.class)
    void aFunctionalEndpointMapsRejectionsByOnError(Kind kind) {
        RunningServer server = server(kind);
        for (String place : List.of("functional-rejections", "functional-all")) {
            HttpResponse<String> answer = server.get("/" + place + "/PLAIN");
            assertThat(answer.statusCode()).as(place).isEqualTo(418);
            assertThat(answer.body()).as(place).isEqualTo("mapped");
        }
        assertThat(server.get("/functional-all/UNMAPPED").statusCode()).isEqualTo(418);
        requireProblem(server.get("/functional-rejections/UNMAPPED"), How.UNMAPPED);
    }

    private static void requireProblem(HttpResponse<String> rejection, How how) {
        assertThat(rejection.statusCode()).as(how + " " + rejection.body()).isEqualTo(429);
        assertThat(rejection.headers().firstValue("Content-Type"))
                .as(how.name())
                .contains("application/problem+json");
        assertThat(rejection.headers().allValues("Retry-After")).as(how.name()).containsExactly("86400");
        assertThat(rejection.headers().allValues("RateLimit")).as(how.name()).hasSize(1);
        assertThat(rejection.body()).as(how.name()).contains("\"violated-policies\":[\"shop\"]");
    }

    private static String withoutTime(HttpResponse<String> response) {
        return response.body().replaceAll("\"(timestamp|requestId|trace)\":\"[^\"]*\"", "");
    }

    /** Asks the limit, which rejects. */
    static class Shop {

        private final RateLimits limits;

        Shop(RateLimits limits) {
            this.limits = limits;
        }

        Throwable failure(How how, String cause) {
            if (cause.equals("other")) {
                return how.of(new IllegalArgumentException("other"));
            }
            try {
                limits.execute("shop", null, () -> "the one of the day");
                limits.execute("shop", null, () -> "another one");
                throw new AssertionError("admitted");
            } catch (RateLimitExceededException rejection) {
                return how.of(rejection);
            }
        }

        String fail(How how, String cause) {
            return Shop.<RuntimeException>sneak(failure(how, cause));
        }

        @SuppressWarnings("unchecked")
        private static <T extends Throwable> String sneak(Throwable failure) throws T {
            throw (T) failure;
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

        @Bean
        Shop shop(RateLimits limits) {
            return new Shop(limits);
        }
    }

    @RestController
    static class Api {

        private final Shop shop;

        Api(Shop shop) {
            this.shop = shop;
        }

        @GetMapping("/plain/{how}")
        String plain(@PathVariable How how, @RequestParam(defaultValue = "rejection") String cause) {
            return shop.fail(how, cause);
        }

        @GetMapping("/future/{how}")
        CompletableFuture<String> future(
                @PathVariable How how, @RequestParam(defaultValue = "rejection") String cause) {
            return CompletableFuture.failedFuture(shop.failure(how, cause));
        }

        @GetMapping("/mono/{how}")
        Mono<String> mono(@PathVariable How how, @RequestParam(defaultValue = "rejection") String cause) {
            return Mono.defer(() -> Mono.error(shop.failure(how, cause)));
        }

        @GetMapping("/flux/{how}")
        Flux<String> flux(@PathVariable How how, @RequestParam(defaultValue = "rejection") String cause) {
            return Flux.defer(() -> Flux.error(shop.failure(how, cause)));
        }

        @ExceptionHandler
        ResponseEntity<String> soldOut(SoldOut failure) {
            return ResponseEntity.status(409).body("sold out");
        }
    }

    @RestControllerAdvice
    static class Advice {

        @ExceptionHandler
        ResponseEntity<String> failed(PaymentFailed failure) {
            return ResponseEntity.status(502).body("payment");
        }
    }

    @RestControllerAdvice
    static class CatchAll {

        @ExceptionHandler(Exception.class)
        ResponseEntity<String> failed() {
            return ResponseEntity.internalServerError().body("failed");
        }
    }

    @RestControllerAdvice
    static class CatchOthers {

        @ExceptionHandler(Exception.class)
        ResponseEntity<String> failed(Exception failure) throws Exception {
            if (failure instanceof RateLimitExceededException) {
                throw failure;
            }
            return ResponseEntity.internalServerError().body("failed");
        }
    }

    @RestControllerAdvice
    static class ForRejections {

        @ExceptionHandler
        ResponseEntity<String> rejected(RateLimitExceededException rejection) {
            return ResponseEntity.status(418).body(rejection.limit());
        }
    }

    @Configuration(proxyBeanMethods = false)
    @Import(ServletApi.class)
    static class Servlets {

        @Bean
        RouterFunction<ServerResponse> functional(Shop shop) {
            return RouterFunctions.route()
                    .GET("/functional/{how}", request -> answer(shop, request))
                    .build()
                    .and(RouterFunctions.route()
                            .GET("/functional-own/{how}", request -> answer(shop, request))
                            .onError(
                                    PaymentFailed.class,
                                    (failure, request) ->
                                            ServerResponse.status(402).body("payment"))
                            .onError(
                                    SoldOut.class,
                                    (failure, request) ->
                                            ServerResponse.status(409).body("sold out"))
                            .build())
                    .and(mapping("/functional-rejections/{how}", RateLimitExceededException.class, shop))
                    .and(mapping("/functional-all/{how}", Exception.class, shop));
        }

        private static RouterFunction<ServerResponse> mapping(
                String path, Class<? extends Throwable> mapped, Shop shop) {
            return RouterFunctions.route()
                    .GET(path, request -> answer(shop, request))
                    .onError(
                            mapped,
                            (failure, request) -> ServerResponse.status(418).body("mapped"))
                    .build();
        }

        private static ServerResponse answer(Shop shop, ServerRequest request) {
            return ServerResponse.ok()
                    .body(shop.fail(
                            How.valueOf(request.pathVariable("how")),
                            request.param("cause").orElse("rejection")));
        }

        @Bean
        SimpleMappingExceptionResolver resolver() {
            SimpleMappingExceptionResolver resolver = new SimpleMappingExceptionResolver() {
                @Override
                protected ModelAndView doResolveException(
                        HttpServletRequest request, HttpServletResponse response, Object handler, Exception failure) {
                    if (failure instanceof OfAnotherAge) {
                        response.setStatus(410);
                        return new ModelAndView();
                    }
                    return null;
                }
            };
            return resolver;
        }

        @Bean
        FilterRegistrationBean<Filter> early(Shop shop) {
            return failing("/filter-early/*", -1000, shop);
        }

        @Bean
        FilterRegistrationBean<Filter> late(Shop shop) {
            return failing("/filter-late/*", 10, shop);
        }

        private static FilterRegistrationBean<Filter> failing(String path, int order, Shop shop) {
            FilterRegistrationBean<Filter> filter = new FilterRegistrationBean<>((request, response, chain) -> {
                HttpServletRequest http = (HttpServletRequest) request;
                String uri = http.getRequestURI();
                shop.fail(How.valueOf(uri.substring(uri.lastIndexOf('/') + 1)), "rejection");
            });
            filter.addUrlPatterns(path);
            filter.setOrder(order);
            return filter;
        }

        @Bean
        ServletRegistrationBean<HttpServlet> servlet(Shop shop) {
            return new ServletRegistrationBean<>(
                    new HttpServlet() {
                        @Override
                        protected void doGet(HttpServletRequest request, HttpServletResponse response) {
                            shop.fail(How.valueOf(request.getPathInfo().substring(1)), "rejection");
                        }
                    },
                    "/servlet/*");
        }
    }

    @RestController
    static class ServletApi {

        private final Shop shop;

        ServletApi(Shop shop) {
            this.shop = shop;
        }

        @GetMapping("/callable/{how}")
        Callable<String> callable(@PathVariable How how, @RequestParam(defaultValue = "rejection") String cause) {
            return () -> shop.fail(how, cause);
        }

        @GetMapping("/deferred/{how}")
        DeferredResult<String> deferred(@PathVariable How how, @RequestParam(defaultValue = "rejection") String cause) {
            DeferredResult<String> result = new DeferredResult<>();
            result.setErrorResult(shop.failure(how, cause));
            return result;
        }

        @ExceptionHandler
        ResponseEntity<String> soldOut(SoldOut failure) {
            return ResponseEntity.status(409).body("sold out");
        }
    }

    @Configuration(proxyBeanMethods = false)
    static class Reactive {

        @Bean
        org.springframework.web.reactive.function.server.RouterFunction<
                        org.springframework.web.reactive.function.server.ServerResponse>
                functional(Shop shop) {
            return org.springframework.web.reactive.function.server.RouterFunctions.route()
                    .GET("/functional/{how}", request -> answer(shop, request))
                    .build()
                    .and(org.springframework.web.reactive.function.server.RouterFunctions.route()
                            .GET("/functional-own/{how}", request -> answer(shop, request))
                            .onError(
                                    PaymentFailed.class,
                                    (failure, request) ->
                                            org.springframework.web.reactive.function.server.ServerResponse.status(402)
                                                    .bodyValue("payment"))
                            .onError(
                                    SoldOut.class,
                                    (failure, request) ->
                                            org.springframework.web.reactive.function.server.ServerResponse.status(409)
                                                    .bodyValue("sold out"))
                            .build())
                    .and(mapping("/functional-rejections/{how}", RateLimitExceededException.class, shop))
                    .and(mapping("/functional-all/{how}", Exception.class, shop));
        }

        private static org.springframework.web.reactive.function.server.RouterFunction<
                        org.springframework.web.reactive.function.server.ServerResponse>
                mapping(String path, Class<? extends Throwable> mapped, Shop shop) {
            return org.springframework.web.reactive.function.server.RouterFunctions.route()
                    .GET(path, request -> answer(shop, request))
                    .onError(
                            mapped,
                            (failure, request) ->
                                    org.springframework.web.reactive.function.server.ServerResponse.status(418)
                                            .bodyValue("mapped"))
                    .build();
        }

        private static Mono<org.springframework.web.reactive.function.server.ServerResponse> answer(
                Shop shop, org.springframework.web.reactive.function.server.ServerRequest request) {
            return Mono.error(shop.failure(
                    How.valueOf(request.pathVariable("how")),
                    request.queryParam("cause").orElse("rejection")));
        }

        @Bean
        @Order(-2)
        WebExceptionHandler resolver() {
            return (exchange, failure) -> {
                if (failure instanceof OfAnotherAge) {
                    exchange.getResponse().setStatusCode(HttpStatus.GONE);
                    return exchange.getResponse().setComplete();
                }
                return Mono.error(failure);
            };
        }

        @Bean
        @Order(-1000)
        WebFilter early(Shop shop) {
            return (exchange, chain) ->
                    failing("/filter-early/", exchange, shop).then(chain.filter(exchange));
        }

        @Bean
        @Order(10)
        WebFilter late(Shop shop) {
            return (exchange, chain) -> failing("/filter-late/", exchange, shop).then(chain.filter(exchange));
        }

        private static Mono<Void> failing(String path, ServerWebExchange exchange, Shop shop) {
            String uri = exchange.getRequest().getPath().value();
            return uri.startsWith(path)
                    ? Mono.defer(() -> Mono.error(shop.failure(How.valueOf(uri.substring(path.length())), "rejection")))
                    : Mono.empty();
        }
    }

    static class PaymentFailed extends RuntimeException {

        private static final long serialVersionUID = 1L;

        PaymentFailed(Throwable cause) {
            super(cause);
        }
    }

    @ResponseStatus(HttpStatus.BAD_GATEWAY)
    static class Unreachable extends RuntimeException {

        private static final long serialVersionUID = 1L;

        Unreachable(Throwable cause) {
            super(cause);
        }
    }

    static class SoldOut extends RuntimeException {

        private static final long serialVersionUID = 1L;

        SoldOut(Throwable cause) {
            super(cause);
        }
    }

    /** Mapped by a resolver, or a handler of exceptions, of the application. */
    static class OfAnotherAge extends RuntimeException {

        private static final long serialVersionUID = 1L;

        OfAnotherAge(Throwable cause) {
            super(cause);
        }
    }
}
