package io.ratelimited.spring.internals.web;

import static org.assertj.core.api.Assertions.assertThat;

import io.ratelimited.core.Decision;
import io.ratelimited.core.Limit;
import io.ratelimited.core.RateLimitExceededException;
import io.ratelimited.core.Ticker;
import io.ratelimited.core.testing.ManualTicker;
import io.ratelimited.spring.ContextRunner;
import io.ratelimited.spring.LimitChange;
import io.ratelimited.spring.RateLimitOperations;
import io.ratelimited.spring.fields.HeaderStyle;
import io.ratelimited.spring.internals.limit.LimitRegistry;
import io.ratelimited.spring.internals.web.reactive.ReactiveCors;
import io.ratelimited.spring.internals.web.reactive.ReactiveRejections;
import io.ratelimited.spring.internals.web.reactive.ReactiveRequests;
import jakarta.servlet.DispatcherType;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.springframework.context.support.StaticMessageSource;
import org.springframework.http.HttpStatus;
import org.springframework.http.ProblemDetail;
import org.springframework.mock.http.server.reactive.MockServerHttpRequest;
import org.springframework.mock.web.MockHttpServletRequest;
import org.springframework.mock.web.MockHttpServletResponse;
import org.springframework.mock.web.server.MockServerWebExchange;

class RejectionTest {

    @Test
    void theAnswerHasPlainDigitsWhateverTheMachineWrites() {
        Rejection refusal = ofSearch();
        Locale machine = Locale.getDefault();
        Locale.setDefault(Locale.forLanguageTag("ar-EG"));
        try {
            Problems problems = new Problems(new StaticMessageSource(), Object::toString);
            ProblemDetail problem =
                    problems.worded(refusal, Locale::getDefault, "/search").getBody();
            assertThat(new String(problems.json(problem), StandardCharsets.UTF_8))
                    .isEqualTo("{type=" + Rejection.TYPE
                            + ", title=Request cannot be satisfied as assigned quota has been exceeded, status=429,"
                            + " detail=Rate limit 'search' is exceeded; retry after 5 s., instance=/search,"
                            + " violated-policies=[search]}");
        } finally {
            Locale.setDefault(machine);
        }
    }

    @Test
    void aRequestWithoutAKeyIsToldSo() {
        Decision rejection = Decision.withoutKey("login");
        Rejection refusal = new Rejection(new RateLimitExceededException(rejection), 429, false);
        assertThat(refusal.detail())
                .isEqualTo(
                        "The request has no key for rate limit 'login', which rejects such requests; no retry of this"
                                + " request can succeed.");
        assertThat(refusal.attributes()).containsEntry("message", refusal.detail());
        assertThat(refusal.retryAfter()).isNull();
    }

    /** Of an adaptive limit, which would otherwise have the client retry in a few seconds. */
    @Test
    void aRequestThatAnOverloadedServiceCanNeverAdmitIsNotToldToRetry() {
        Decision never =
                new Decision("calls", false, Duration.ZERO, null, true, 0, Duration.ZERO, Decision.Source.MEMORY);
        Rejection rejection = new Rejection(new RateLimitExceededException(never), 503, true);
        assertThat(rejection.retryAfter()).isNull();
        assertThat(rejection.fields()).doesNotContainKey("Retry-After");
        assertThat(rejection.detail()).endsWith("no retry of this request can succeed.");
    }

    /** It was made on a thread that did not know the request, so nobody knows whose numbers applied. */
    @Test
    void aRejectionIsNotReportedWhereCallersMayHaveOtherNumbersThanTheLimit() {
        Rejection rejection = ofSearch();
        ContextRunner.limited()
                .withPropertyValues("rate-limit.limits.search.rate=5/s")
                .run(context -> {
                    RateLimitOperations operations = context.getBean(RateLimitOperations.class);
                    List<Limit> reported = new ArrayList<>();
                    Runnable report = () -> rejection.report(
                            context.getBean(LimitRegistry.class), limit -> false, (limit, of) -> reported.add(limit));
                    report.run();
                    operations.override("search", "ann", LimitChange.rate("9/s"), null);
                    report.run();
                    assertThat(reported)
                            .containsExactly(operations.limit("search").limit());
                });
    }

    @Test
    void aRejectionIsNotReportedWhereTheLimitShowsNoHeaders() {
        Rejection rejection = ofSearch();
        ContextRunner.limited()
                .withPropertyValues("rate-limit.limits.search.rate=5/s", "rate-limit.limits.search.http-headers=none")
                .run(context -> {
                    List<Limit> reported = new ArrayList<>();
                    rejection.report(
                            context.getBean(LimitRegistry.class), limit -> false, (limit, of) -> reported.add(limit));
                    assertThat(reported).isEmpty();
                });
    }

    @Test
    void anErrorPageThatIsRejectedItselfHasNoOtherPage() {
        RouteFilters.limited(new ManualTicker(), "rate-limit.limits.pages.rate=0/m")
                .run(context -> {
                    MockHttpServletRequest request = new MockHttpServletRequest("GET", "/error");
                    request.setDispatcherType(DispatcherType.ERROR);
                    request.addHeader("Accept", "text/html");
                    MockHttpServletResponse response = new MockHttpServletResponse();
                    RouteFilters.servlet(context, "pages").doFilter(request, response, (served, of) -> {});
                    assertThat(response.getContentType()).isEqualTo("application/problem+json");
                    assertThat(response.getErrorMessage()).isNull();
                });
    }

    @Test
    void aProblemHasNoContentHeadersOfTheResponseThatItReplaces() {
        RouteFilters.limited(new ManualTicker(), "rate-limit.limits.any.rate=1/m")
                .run(context -> {
                    LimitRegistry limits = context.getBean(LimitRegistry.class);
                    ReactiveRejections rejections = new ReactiveRejections(
                            429,
                            new ReactiveRequests(
                                    ClientAddress.of(64, null),
                                    null,
                                    new LimitHeaders.Style(HeaderStyle.STANDARD, Ticker.system())),
                            limits,
                            new Problems(context, Object::toString),
                            new ReactiveCors(Stream::empty, () -> {
                                throw new IllegalStateException("no dispatcher");
                            }),
                            new InvalidCallLog(Ticker.system()),
                            context);
                    MockServerWebExchange exchange = MockServerWebExchange.from(MockServerHttpRequest.get("/"));
                    exchange.getResponse().getHeaders().set("Content-Encoding", "gzip");
                    rejections
                            .handle(exchange, new RateLimitExceededException(Decision.withoutKey("any")))
                            .block();
                    assertThat(exchange.getResponse().getStatusCode()).isEqualTo(HttpStatus.TOO_MANY_REQUESTS);
                    assertThat(exchange.getResponse().getHeaders().containsHeader("Content-Encoding"))
                            .isFalse();
                });
    }

    /** Of two rejections of a request, each is answered as itself. */
    @Test
    void anExceptionHasTheRejectionThatHasCausedItAndNoOther() {
        RateLimitExceededException exceeded = new RateLimitExceededException(Decision.withoutKey("login"));
        Rejection rejection = new Rejection(exceeded, 429, false);
        assertThat(rejection.isIn(exceeded)).isTrue();
        assertThat(rejection.isIn(new IllegalStateException(exceeded))).isTrue();
        assertThat(rejection.isIn(new RateLimitExceededException(Decision.withoutKey("login"))))
                .isFalse();
        assertThat(rejection.isIn(new IllegalStateException())).isFalse();
    }

    @Test
    void whoSendsNoListOfMediaTypesIsNoBrowser() {
        assertThat(Rejection.isPageWanted("text/html;q=x")).isFalse();
        assertThat(Rejection.isPageWanted("application/problem+xml,text/html;q=0.5"))
                .isFalse();
        assertThat(Rejection.isPageWanted("text/html" + ",a/b".repeat(60))).isFalse();
        assertThat(Rejection.isPageWanted("text/html;q=0")).isFalse();
        assertThat(Rejection.isPageWanted(null)).isFalse();
    }

    private static Rejection ofSearch() {
        return new Rejection(
                new RateLimitExceededException(new Decision(
                        "search",
                        false,
                        Duration.ZERO,
                        Duration.ofSeconds(5),
                        false,
                        0,
                        Duration.ofSeconds(5),
                        Decision.Source.MEMORY)),
                429,
                false);
    }
}
