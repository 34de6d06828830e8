package io.ratelimited.spring.test;

import org.springframework.http.ResponseEntity;
import org.springframework.test.web.reactive.server.WebTestClient;
import org.springframework.test.web.servlet.MvcResult;
import org.springframework.test.web.servlet.assertj.MockMvcTester.MockMvcRequestBuilder;
import org.springframework.test.web.servlet.assertj.MvcTestResult;
import org.springframework.test.web.servlet.client.RestTestClient;

/**
 * Assertions on decisions, calls and responses, for static imports: {@code
 * assertThat(response).isRateLimited().retryAfter(Duration.ofMinutes(1))}. You can import them next to those of AssertJ.
 */
public final class RateLimitAssertions extends DecisionAssertions {

    private RateLimitAssertions() {}

    /** Starts an assertion on a response of {@code TestRestTemplate}, {@code RestClient} or {@code RestTemplate}. */
    public static <T> ResponseAssert<ResponseEntity<T>> assertThat(ResponseEntity<T> actual) {
        return new ResponseAssert<>(
                actual, actual.getStatusCode().value(), actual.getHeaders()::getFirst, actual::getBody);
    }

    /** Starts an assertion on a request of {@code MockMvcTester}, which is made immediately. */
    public static MvcResponseAssert assertThat(MockMvcRequestBuilder actual) {
        return new MvcResponseAssert(actual.exchange());
    }

    /**
     * Starts an assertion on a response to {@code MockMvcTester}. After {@code asyncExchange()}, the response of an asynchronous
     * handler is still to come, and the assertion fails.
     */
    public static MvcResponseAssert assertThat(MvcTestResult actual) {
        return new MvcResponseAssert(actual);
    }

    /**
     * Starts an assertion on a result of {@code MockMvc}: {@code mvc.perform(get("/")).andReturn()}. If the handler returns a
     * {@code Mono}, a future or another asynchronous result, the response is still to come, and the assertion fails: then assert
     * on the result of {@code mvc.perform(asyncDispatch(result))}, or use {@code MockMvcTester}.
     */
    public static ResponseAssert<MvcResult> assertThat(MvcResult actual) {
        return new ResponseAssert<>(
                actual,
                actual.getRequest().isAsyncStarted() && !actual.getResponse().isCommitted(),
                actual.getResponse().getStatus(),
                name -> actual.getResponse().getHeader(name),
                () -> actual.getResponse().getContentAsByteArray());
    }

    /** Starts an assertion on a response to {@code WebTestClient}: {@code client.get().uri("/").exchange()}. */
    public static ResponseAssert<org.springframework.test.web.reactive.server.ExchangeResult> assertThat(
            WebTestClient.ResponseSpec actual) {
        return assertThat(actual.returnResult(byte[].class));
    }

    /** Starts an assertion on a result of {@code WebTestClient}. */
    public static ResponseAssert<org.springframework.test.web.reactive.server.ExchangeResult> assertThat(
            org.springframework.test.web.reactive.server.ExchangeResult actual) {
        return new ResponseAssert<>(
                actual,
                actual.getStatus().value(),
                name -> actual.getResponseHeaders().getFirst(name),
                actual::getResponseBodyContent);
    }

    /**
     * Starts an assertion on a response to {@code RestTestClient}: {@code client.get().uri("/").exchange()}. Bound to {@code
     * MockMvc}, this client does not wait for the response to a handler that returns a {@code Mono} or a future: every status is
     * 200, and {@link ResponseAssert#isNotRateLimited()} passes. Use {@code MockMvcTester} there.
     */
    public static ResponseAssert<org.springframework.test.web.servlet.client.ExchangeResult> assertThat(
            RestTestClient.ResponseSpec actual) {
        return assertThat(actual.returnResult(byte[].class));
    }

    /** Starts an assertion on a result of {@code RestTestClient}. */
    public static ResponseAssert<org.springframework.test.web.servlet.client.ExchangeResult> assertThat(
            org.springframework.test.web.servlet.client.ExchangeResult actual) {
        return new ResponseAssert<>(
                actual,
                actual.getStatus().value(),
                name -> actual.getResponseHeaders().getFirst(name),
                actual::getResponseBodyContent);
    }
}
