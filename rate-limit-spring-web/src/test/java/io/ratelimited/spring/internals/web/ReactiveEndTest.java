package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Decision;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.internals.overload.RecordingBackend;
import io.ratelimited.spring.internals.request.CurrentRequest;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.springframework.http.HttpStatusCode;
import org.springframework.mock.http.server.reactive.MockServerHttpRequest;
import org.springframework.mock.web.server.MockServerWebExchange;
import org.springframework.web.server.ResponseStatusException;
import org.springframework.web.server.ServerWebExchange;
import reactor.core.publisher.Mono;

/** How a request on WebFlux ends for its route if its response is made of an exception, behind the filter. */
class ReactiveEndTest {

    /** A rejection by a limit of the application is no overload, whatever its status is. */
    @ParameterizedTest
    @CsvSource({"503, false, OVERLOADED", "504, false, OVERLOADED", "404, false, FAILED", "503, true, FAILED"})
    void theStatusOfAnExceptionSaysHowItHasEnded(int status, boolean rejected, String end) {
        RecordingBackend backend = new RecordingBackend();
        RouteFilters.limited(
                        new ManualTicker(),
                        "rate-limit.limits.place.algorithm=concurrency",
                        "rate-limit.limits.place.max-concurrent=1",
                        "rate-limit.limits.place.backend=recording")
                .withBean(RecordingBackend.class, () -> backend)
                .run(context -> {
                    ServerWebExchange exchange = MockServerWebExchange.from(MockServerHttpRequest.get("/"));
                    RouteFilters.reactive(context, "place")
                            .filter(exchange, limited -> {
                                if (rejected) {
                                    request(limited).rejected(Decision.withoutKey("other"), false);
                                }
                                return Mono.error(new ResponseStatusException(HttpStatusCode.valueOf(status)));
                            })
                            .onErrorComplete()
                            .block();
                    assertThat(backend.ends).containsExactly(end);
                });
    }

    private static CurrentRequest request(ServerWebExchange exchange) {
        return exchange.getAttributes().values().stream()
                .filter(CurrentRequest.class::isInstance)
                .map(CurrentRequest.class::cast)
                .findFirst()
                .orElseThrow();
    }
}
